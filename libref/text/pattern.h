/* pattern.h: a tokenizer's regular expression in the words of PCRE2.
 *
 * Tokenizer files hold expressions for Oniguruma, with which `tokenizers` runs
 * them. What both mean alike is copied, what PCRE2 says otherwise is said
 * otherwise, and what could mean something else here is refused by name. */
#ifndef VN_LIBREF_TEXT_PATTERN_H
#define VN_LIBREF_TEXT_PATTERN_H

#include "libref/base/error.h"

#include <stddef.h>

/* For options PCRE2_UTF, PCRE2_UCP. pattern: well-formed UTF-8. *out: NUL-terminated, the
 * caller's to free. A complaint says what is not supported and at which byte of the pattern. */
vn_status vn_pattern_translate(const char *pattern, size_t bytes, char **out, vn_error *err);

#endif
