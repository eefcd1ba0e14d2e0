/* unicode.c: see unicode.h. */
#include "libref/text/unicode.h"
#include "libref/base/alloc.h"
#include "libref/base/utf8.h"
#include "libref/text/unicode_tables.inc"

#include <stdbool.h>
#include <stdlib.h>
#include <unictype.h>
#include <uninorm.h>

/* Below U+0300 every character is composed, and none combines. */
enum { FIRST_LEAD = 0xcc };

static bool may_change(const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if ((unsigned char)text[i] >= FIRST_LEAD)
			return true;
	return false;
}

/* Number of bytes before the first unknown character. */
static size_t known_bytes(const char *text, size_t bytes)
{
	size_t at = 0;

	while (at < bytes && !vn_unicode_after9(vn_utf8_point(text + at)))
		at += (size_t)vn_utf8_length(text + at, bytes - at);
	return at;
}

void vn_nfc(const char *text, size_t bytes, const char **out, size_t *n, char **owned)
{
	*out = text;
	*n = bytes;
	*owned = NULL;
	if (!may_change(text, bytes))
		return;

	const size_t room = 3 * bytes; /* NFC expands a byte to at most three */
	uint8_t     *to = vn_alloc(bytes, 3);
	size_t       length = 0;
	for (size_t at = 0; at < bytes;) {
		const size_t known = known_bytes(text + at, bytes - at);
		size_t       m = room - length;
		/* It fits, so the result is there. */
		vn_alloc_check(u8_normalize(UNINORM_NFC, (const uint8_t *)text + at, known, to + length, &m));
		length += m;
		at += known;
		for (int k = vn_utf8_length(text + at, bytes - at); k > 0; k--) /* copies the unknown character */
			to[length++] = (uint8_t)text[at++];
	}
	*out = *owned = (char *)to;
	*n = length;
}

#define COUNT(table) (sizeof(table) / sizeof *(table))

static bool is_in_ranges(const vn_code_range *r, size_t n, uint32_t point)
{
	size_t low = 0, high = n;

	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (r[middle].last < point)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n && r[low].first <= point;
}

const vn_code_range *vn_unicode_later(char category, size_t *n)
{
	*n = category == 'L' ? COUNT(later_letters) : category == 'M' ? COUNT(later_marks) : COUNT(later_numbers);
	return category == 'L' ? later_letters : category == 'M' ? later_marks : later_numbers;
}

bool vn_unicode_after9(uint32_t point)
{
	return is_in_ranges(after_unicode9, COUNT(after_unicode9), point);
}

/* Alphabetic, marks, decimal digits, connectors, joiners. Beyond letters, marks and letter numbers,
 * only circled letters are Alphabetic. */
bool vn_unicode_word(uint32_t c)
{
	static const vn_code_range circled[] = {
		{ 0x24b6, 0x24e9 }, { 0x1f130, 0x1f149 }, { 0x1f150, 0x1f169 }, { 0x1f170, 0x1f189 }
	};

	if (uc_is_general_category_withtable(c, UC_CATEGORY_MASK_L | UC_CATEGORY_MASK_M | UC_CATEGORY_MASK_Nd |
	                                            UC_CATEGORY_MASK_Nl | UC_CATEGORY_MASK_Pc))
		return true;
	if (c == 0x200c || c == 0x200d || is_in_ranges(circled, COUNT(circled), c))
		return true;
	/* All later numbers except these are digits. */
	return is_in_ranges(later_letters, COUNT(later_letters), c) || is_in_ranges(later_marks, COUNT(later_marks), c) ||
	       (is_in_ranges(later_numbers, COUNT(later_numbers), c) && (c < 0x1d2c0 || c > 0x1d2d3));
}

bool vn_unicode_space(uint32_t c)
{
	return (c >= 9 && c <= 13) || c == 0x85 || uc_is_general_category_withtable(c, UC_CATEGORY_MASK_Z);
}
