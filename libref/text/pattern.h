/* pattern.h: translates a tokenizer's regular expression to PCRE2.
 *
 * Tokenizer files have expressions for Oniguruma, with which `tokenizers` runs them. What means the
 * same in both is copied, what PCRE2 spells differently is translated, and what could change its
 * meaning is rejected with an error that names it.
 */
#ifndef VN_LIBREF_TEXT_PATTERN_H
#define VN_LIBREF_TEXT_PATTERN_H

#include "libref/base/error.h"

#include <stddef.h>

/* For options PCRE2_UTF and PCRE2_UCP. pattern: well-formed UTF-8. *out: NUL-terminated, freed by
 * the caller. The error says what is not supported, and at which byte of the pattern. */
vn_status vn_pattern_translate(const char *pattern, size_t bytes, char **out, vn_error *err);

#endif
