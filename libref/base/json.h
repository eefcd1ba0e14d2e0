/* json.h: reads and writes JSON with Jansson, safely if memory runs out.
 *
 * Without memory, Jansson 2.14 reads and writes beyond its buffers while loading, and may still
 * report success: a key that lost a byte, a text cut in the middle, an object that lacks a member.
 * So a load or a dump is abandoned at the first allocation that fails; what it had allocated by
 * then leaks, in a process that is out of memory. While a value is built, a failed allocation sets
 * a flag of the thread, which dump and print test: what they write is complete, or NULL. No other
 * file may call json_load* or json_dump* (tests/source/includes.sh).
 */
#pragma once

#include "libref/base/freed.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

static inline void vn_json_end(json_t *const *j)
{
	json_decref(*j);
}

/* A reference that is given back when the variable's block is left (freed.h). */
#define VN_OWNED VN_ENDS(vn_json_end)

/* A tree takes up to 75 times the memory of its text. One of more bytes is not loaded. */
#define VN_JSON_MOST ((size_t)1 << 30)

/* Parses a text. Returns NULL on failure, with the reason in *why (may be NULL), for example "not
 * enough memory". */
json_t *vn_json_load(const char *text, size_t bytes, size_t flags, json_error_t *why);
json_t *vn_json_parse(const char *text, size_t flags); /* NUL-terminated; NULL gives NULL */

/* An object whose members are read one at a time: as a whole, a usual tree takes ten times the
 * memory of its text. Starts as { text, bytes }. */
typedef struct vn_json_members {
	const char *text;
	size_t      bytes, at;
	bool        begun;
} vn_json_members;

/* Reads the next member: a string and a value, which the caller frees. Returns false after the last
 * one (why->text is empty), or if the text is not an object (why->text, why->position). Does not
 * notice that a name comes twice in this object. Looks for NUL bytes in the whole text first. */
bool    vn_json_next(vn_json_members *m, json_t **name, json_t **value, json_error_t *why);
/* The same in two steps: the name of the next member; its value, NULL on failure. */
bool    vn_json_key(vn_json_members *m, json_t **name, json_error_t *why);
json_t *vn_json_value(vn_json_members *m, json_error_t *why);
/* Instead of vn_json_value, where the value is a list: its next element, which the caller frees.
 * *begun: false before the first. Returns false behind the last one (why->text is empty), or if it
 * is no list. */
bool    vn_json_element(vn_json_members *m, bool *begun, json_t **value, json_error_t *why);

/* Writes a value as a text, which the caller frees. NULL: no memory, now or while the value was
 * built (then j may be NULL). */
char *vn_json_dump(const json_t *j, size_t flags);
/* Same to a stream. Returns false if there was no memory (j may be NULL) or writing failed.
 * Characters that a terminal would obey (vn_utf8_printable refuses them) are written as \uXXXX,
 * which means the same to every reader. */
bool  vn_json_print(const json_t *j, FILE *out, size_t flags);

/* Returns the member of an object, borrowed; NULL: it is absent or null, or o is no object. */
json_t *vn_json_field(const json_t *o, const char *key);

/* Returns a text as a new reference. JSON is UTF-8: other bytes are written as \xff. NULL gives
 * null. */
json_t *vn_json_text(const char *s);
