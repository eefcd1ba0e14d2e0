/* json.h: what reports in JSON have in common.
 *
 * JSON has no NaN or infinity: a number that is not finite is written as null, and a neighbouring
 * `flags` object may say which one it was. json_object_set_new leaves a member out if its value is
 * NULL. A json_t that a function returns is the caller's to release.
 */
#pragma once

#include "compare/text/lines.h"
#include "libref/base/json.h"

#include <stdint.h>

json_t *vn_json_real(double x);
json_t *vn_json_integers(const int64_t *x, int n);
json_t *vn_json_lines(const vn_lines *l); /* strings */

json_t *vn_json_letter(char c);                                 /* a string of one ASCII character */
enum { VN_JSON_LINE = JSON_COMPACT | JSON_REAL_PRECISION(17) }; /* one line, numbers of 17 digits */
/* Writes j with these flags of Jansson, and releases it. Returns false if there was no memory (j
 * may be NULL) or writing failed. */
bool vn_json_print_value(json_t *j, FILE *out, size_t flags);
/* Same for the members of an object, without its braces: one on each line, commas between them,
 * `end` after the last. Keys are literals. */
bool vn_json_print_members(json_t *object, FILE *out, size_t flags, const char *end);

/* Returns "nan", "inf" or "-inf"; and the number of such a word, NaN of any other. */
const char *vn_json_not_finite(double x);
double      vn_json_word_value(const char *word);
/* Sets object[key] = x. If x is not finite, sets it to null, and flags[key] to the word. */
void        vn_json_put_real(json_t *object, const char *key, double x, json_t *flags);
/* Sets object[key] = flags if flags is not empty. Takes the reference to flags. */
void        vn_json_put_flags(json_t *object, const char *key, json_t *flags);
