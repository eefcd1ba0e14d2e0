/* glob.h: which checkpoint names a pattern selects.
 *
 * `*` any run of characters, `?` any one, `{a,b}` either (may nest), anything
 * else itself. A pattern matches the whole name.
 */
#ifndef VN_LIBREF_BASE_GLOB_H
#define VN_LIBREF_BASE_GLOB_H

#include "libref/base/error.h"

#include <stdbool.h>

/* Time is bounded for any pattern of at most VN_GLOB_MAX bytes. */
#define VN_GLOB_MAX 256

vn_status vn_glob_check(const char *pattern, vn_error *err); /* braces balanced, not too long, not empty */
bool      vn_glob_match(const char *pattern, const char *name);

#endif
