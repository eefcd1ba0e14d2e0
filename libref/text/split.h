/* split.h: splits a text into pieces by a regular expression.
 *
 * Matches are pieces, and so is the text between them ("Isolated" in tokenizer.json): the pieces
 * tile the text.
 *
 * Threads  a split is read-only and may be shared; a work belongs to one thread.
 * Time     each position of the text has a share of matching steps and of bytes to look at; a
 *          common reserve is a multiple of the text's length. A pattern that needs more fails. So
 *          no pattern takes exponential time, and none scans the whole text from every position.
 */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pcre2_real_code_8 vn_split; /* PCRE2's own type of an expression */

/* pattern: as in tokenizer.json; literal: matches itself. Fails if it is not supported
 * or does not compile. */
vn_status vn_split_create(const char *pattern, size_t bytes, bool literal, vn_split **split, vn_error *err);
void      vn_split_destroy(vn_split *s); /* NULL is allowed */

/* Memory for matching, and the rest of the reserve of steps. */
typedef struct vn_split_work vn_split_work;
/* bytes: total length of the texts; NULL without memory */
vn_split_work               *vn_split_work_create(size_t bytes);
void                         vn_split_work_destroy(vn_split_work *w);

typedef struct vn_split_text {
	const char *text; /* (bytes), well-formed UTF-8 */
	size_t      bytes;
} vn_split_text;
/* Sets *end to the end of the piece that begins at byte `at` < bytes of the text; the next piece
 * begins there. */
vn_status vn_split_next(const vn_split *s, vn_split_work *w, vn_split_text x, size_t at, size_t *end, vn_error *err);

/* Translates a tokenizer's regular expression to PCRE2.
 *
 * Tokenizer files have expressions for Oniguruma, with which `tokenizers` runs them. What means the
 * same in both is copied, what PCRE2 spells differently is translated, and what could change its
 * meaning is rejected with an error that names it.
 */

/* For options PCRE2_UTF and PCRE2_UCP. pattern: well-formed UTF-8. *out: NUL-terminated, freed by
 * the caller. The error says what is not supported, and at which byte of the pattern. */
vn_status vn_pattern_translate(const char *pattern, size_t bytes, char **out, vn_error *err);
