/* bytelevel.c: see bytelevel.h. */
#include "libref/text/bytelevel.h"

#include "libref/base/utf8.h"

/* Printable Latin-1 bytes stand for themselves. The other 68 (0-32, 127-160, 173) map, in order,
 * to U+0100 and up. */
static unsigned character_of(unsigned char b)
{
	if (b <= 32)
		return 0x100u + b;
	if (b >= 127 && b <= 160)
		return 0x100u + 33 + (b - 127u);
	return b == 173 ? 0x100u + 67 : b;
}

static int byte_of(unsigned character)
{
	if (character >= 0x100 && character < 0x100 + 33)
		return (int)(character - 0x100);
	if (character >= 0x100 + 33 && character < 0x100 + 67)
		return (int)(character - 0x100 - 33 + 127);
	if (character == 0x100 + 67)
		return 173;
	return character < 0x100 && character_of((unsigned char)character) == character ? (int)character : -1;
}

size_t vn_bytelevel_write(char *to, const char *bytes, size_t n)
{
	char *p = to;

	for (size_t i = 0; i < n; i++) {
		const unsigned c = character_of((unsigned char)bytes[i]);
		if (c >= 0x80)
			*p++ = (char)(0xc0 | c >> 6);
		*p++ = (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c);
	}
	return (size_t)(p - to);
}

bool vn_bytelevel_read(char *to, size_t *length, const char *text, size_t n)
{
	*length = 0;
	for (size_t i = 0; i < n;) {
		const int k = vn_utf8_length(text + i, n - i);
		const int b = k ? byte_of(vn_utf8_point(text + i)) : -1;
		if (b < 0)
			return false;
		to[(*length)++] = (char)b;
		i += (size_t)k;
	}
	return true;
}
