/* unicode.h: character classes and NFC as in `tokenizers`.
 *
 * `tokenizers` mixes several versions of Unicode: regular expressions and words use Unicode 16, NFC
 * uses Unicode 9. Ids must be equal to its ids, whatever version our libraries use. So tables
 * (unicode_tables.inc) hold the differences to Debian 12's libraries.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "libref/base/error.h"

typedef struct vn_code_range {
	uint32_t first, last;
} vn_code_range;

/* Returns what was added to \p{L}, \p{M} or \p{N} (category: that letter) since Unicode 14, sorted;
 * n ranges. */
const vn_code_range *vn_unicode_later(char category, size_t *n);
/* Is it a mark or a letter that NFC may move or compose since Unicode 10? */
bool                 vn_unicode_after9(uint32_t point);
/* Is it matched by \w? Is it White_Space? */
bool                 vn_unicode_word(uint32_t point);
bool                 vn_unicode_space(uint32_t point);

/* Unicode's canonical composition (NFC), as `tokenizers` does it. text: well-formed UTF-8. *out is
 * text itself if a quick check shows that it is composed already; else new memory in *owned, which
 * the caller frees. */
void vn_nfc(const char *text, size_t bytes, const char **out, size_t *n, char **owned);
