/* json.h: reading and writing JSON with Jansson, memory included.
 *
 * Where memory runs out, Jansson 2.14 reads and writes beyond its buffers while it loads, and may report success all
 * the same: a key that lost a byte, a text cut in the middle, an object without a member that nobody checked. So a
 * load or a dump is left at the first allocation that fails, and whatever it had allocated by then is lost: a leak
 * in a process that has no memory. While a value is built, the allocator raises a flag of the thread, which dump and
 * print test: what is written is whole or NULL. Nobody else calls json_load* or json_dump* (tests/includes.sh).
 */
#ifndef VN_LIBREF_BASE_JSON_H
#define VN_LIBREF_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* A text as a value. NULL: what is wrong is in *why (may be NULL), "not enough memory" for one. */
json_t *vn_json_load(const char *text, size_t bytes, size_t flags, json_error_t *why);
json_t *vn_json_parse(const char *text, size_t flags); /* to its NUL; NULL: NULL */
/* A value as a text, by malloc. NULL: no memory, now or while it was built (then j may be NULL, too). */
char   *vn_json_dump(const json_t *j, size_t flags);
/* The same into a stream; false: that, or it could not be written. j may be NULL: false. Characters that a terminal
 * would obey (vn_utf8_printable refuses them) are written as \uXXXX, which every reader makes the same character of. */
bool    vn_json_print(const json_t *j, FILE *out, size_t flags);

/* Did this thread's memory run out in Jansson since this was last asked, by these functions too? */
bool    vn_json_lost(void);
/* It did, beside Jansson: what was put in has a piece missing. */
void    vn_json_lose(void);

#endif
