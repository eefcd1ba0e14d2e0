/* json_write.h: JSON that a terminal may be shown.
 *
 * JSON may hold any character as it is, and a terminal would obey some of them. Those that vn_utf8_printable refuses
 * are written as \uXXXX, which every reader makes the same character of: nothing is lost.
 */
#ifndef VN_LIBREF_BASE_JSON_WRITE_H
#define VN_LIBREF_BASE_JSON_WRITE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* As json_dumpf, flags and all. False: j is NULL, there is no memory, or out cannot be written. */
bool vn_json_write(const json_t *j, FILE *out, size_t flags);

#endif
