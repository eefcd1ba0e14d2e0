/* normal.c: see normal.h. libunistring composes, in time that does not grow with the square of a
 * run of marks.
 *
 * The NFC of `tokenizers` is that of Unicode 9: later marks have no combining class there and
 * compose with nothing. Ids must equal its ids, whatever the version of libunistring. So the text
 * is cut at every such code point, and only the text between is composed. A character that neither
 * combines nor composes ends everything before it, so a cut there changes nothing else.
 */
#include "libref/text/normal.h"

#include "libref/base/alloc.h"
#include "libref/base/utf8.h"
#include "libref/text/unicode.h"

#include <stdbool.h>
#include <stdlib.h>
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
