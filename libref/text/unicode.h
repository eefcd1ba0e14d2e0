/* unicode.h: classes of characters as `tokenizers` knows them.
 *
 * It is several editions of Unicode at once: expressions and words are of
 * Unicode 16, NFC is of Unicode 9. Ids must be equal to its and must not depend on
 * the editions our libraries were made with, so tables (unicode_tables.h) hold
 * what came between those and Debian 12's. */
#ifndef VN_LIBREF_TEXT_UNICODE_H
#define VN_LIBREF_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct vn_code_range {
	uint32_t first, last;
} vn_code_range;

/* What \p{L}, \p{M} or \p{N} (category: that letter) have got since Unicode 14, in order; n of them. */
const vn_code_range *vn_unicode_later(char category, size_t *n);
/* A mark or a letter that NFC may move or compose since Unicode 10. */
bool vn_unicode_after9(uint32_t point);
/* \w, and White_Space. */
bool vn_unicode_word(uint32_t point);
bool vn_unicode_space(uint32_t point);

#endif
