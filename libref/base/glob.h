/* glob.h: patterns that select checkpoint names.
 *
 * `*` any characters, `?` any one character, `{a,b}` either (may be nested), anything else itself.
 * A pattern matches the whole name.
 */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>

/* For patterns of at most VN_GLOB_MAX bytes the time is bounded. */
#define VN_GLOB_MAX 256

/* fails unless braces balance, and 0 < length <= VN_GLOB_MAX */
vn_status vn_glob_check(const char *pattern, vn_error *err);
bool      vn_glob_match(const char *pattern, const char *name);
