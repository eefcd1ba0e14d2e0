/* utf8.c: see utf8.h. */
#include "libref/base/utf8.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unictype.h>
#include <unistr.h>

int vn_utf8_length(const char *text, size_t bytes)
{
	const unsigned char *p = (const unsigned char *)text;

	if (bytes == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;
	const int n = p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
	if (n == 0 || bytes < (size_t)n)
		return 0;
	for (int i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* overlong, surrogate, overlong, beyond the last code point */
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
	    (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

uint32_t vn_utf8_point(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	if (p[0] < 0x80)
		return p[0];
	if (p[0] < 0xe0)
		return (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
	if (p[0] < 0xf0)
		return (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
	return (p[0] & 0x07u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
}

int vn_utf8_length_before(const char *text, size_t bytes)
{
	for (int n = 1; n <= 4 && (size_t)n <= bytes; n++)
		if (vn_utf8_length(text + bytes - n, (size_t)n) == n)
			return n;
	return 0;
}

size_t vn_utf8_good(const char *text, size_t bytes)
{
	size_t at = 0;
	for (int n; (n = vn_utf8_length(text + at, bytes - at)) > 0;)
		at += (size_t)n;
	return at;
}

size_t vn_utf8_bad(const char *text, size_t bytes)
{
	size_t at = 0;
	while (at < bytes && vn_utf8_length(text + at, bytes - at) == 0)
		at++;
	return at;
}

char *vn_utf8_clean(char *text)
{
	const size_t n = strlen(text);

	for (size_t at = 0; (at += vn_utf8_good(text + at, n - at)) < n; at++)
		text[at] = '?';
	return text;
}

/* Excludes controls, format characters (which may reverse a line), surrogates, private and
 * unassigned code points, line separators, spaces other than U+0020, and characters without
 * width: variation selectors, fillers, tags. */
bool vn_utf8_printable(uint32_t point)
{
	if (point < 0x7f)
		return point >= ' ';
	return !uc_is_general_category_withtable(point, UC_CATEGORY_MASK_C | UC_CATEGORY_MASK_Z) &&
	       !uc_is_property_default_ignorable_code_point(point);
}

/* Combining marks stack, and a hundred of them would cover the lines around. No language uses more
 * than three on a letter. */
enum { MOST_MARKS = 4 };

static bool is_mark(uint32_t point)
{
	return point >= 0x300 && uc_is_general_category_withtable(point, UC_CATEGORY_MASK_Mn | UC_CATEGORY_MASK_Me);
}

size_t vn_utf8_plain(const char *text, size_t bytes, int *marks)
{
	size_t at = 0;
	for (int n; at < bytes; at += (size_t)n) {
		if ((n = vn_utf8_length(text + at, bytes - at)) == 0)
			break;
		const uint32_t point = vn_utf8_point(text + at);
		if (!vn_utf8_printable(point))
			break;
		if (!is_mark(point))
			*marks = 0;
		else if (++*marks > MOST_MARKS)
			break;
	}
	return at;
}

size_t vn_utf8_code(const char *text, size_t bytes, char code[VN_UTF8_CODE])
{
	static const char plain[] = "\n\r\t", name[] = "nrt";
	const int         n = vn_utf8_length(text, bytes);
	const char       *known = n == 1 && *text ? strchr(plain, *text) : NULL;

	if (known)
		snprintf(code, VN_UTF8_CODE, "\\%c", name[known - plain]);
	else if (n == 0)
		snprintf(code, VN_UTF8_CODE, "\\x%02x", (unsigned char)*text);
	else
		snprintf(code, VN_UTF8_CODE, "\\u{%x}", vn_utf8_point(text));
	return n ? (size_t)n : 1;
}

/* backslash: doubles it, so that an escape differs from text that looks like one. */
static char *escape_text(const char *text, size_t bytes, bool backslash)
{
	enum { MOST = 6 }; /* bytes for one: \u{1b} */
	char *out = bytes < SIZE_MAX / 8 ? malloc(MOST * bytes + VN_UTF8_CODE) : NULL, *p = out;
	int   marks = 0;

	if (!out)
		return NULL;
	for (size_t at = 0; at < bytes;) {
		const size_t n = vn_utf8_plain(text + at, bytes - at, &marks);
		for (const char *c = text + at; c < text + at + n; c++) {
			if (backslash && *c == '\\')
				*p++ = '\\';
			*p++ = *c;
		}
		if ((at += n) < bytes) {
			char code[VN_UTF8_CODE];
			at += vn_utf8_code(text + at, bytes - at, code);
			p = stpcpy(p, code);
		}
	}
	*p = '\0';
	return out;
}

char *vn_utf8_escape(const char *text, size_t bytes)
{
	return escape_text(text, bytes, true);
}

char *vn_utf8_shown(const char *text, size_t bytes)
{
	return escape_text(text, bytes, false);
}

/* Reads up to `most` hexadecimal digits; returns their number. */
static int read_hex(const char *p, int most, uint32_t *x)
{
	int n = 0;

	for (*x = 0; n < most && isxdigit((unsigned char)p[n]); n++)
		*x = *x << 4 | (uint32_t)(isdigit((unsigned char)p[n]) ? p[n] - '0' : (p[n] | 0x20) - 'a' + 10);
	return n;
}

/* Decodes one escape at p into to; returns the bytes of text used, 0 if it is no escape. */
static int read_escape(const char *p, char **to)
{
	static const char plain[] = "\\\n\r\t", name[] = "\\nrt";
	const char       *known = p[0] == '\\' && p[1] ? strchr(name, p[1]) : NULL;
	uint32_t          x;

	if (known) {
		*(*to)++ = plain[known - name];
		return 2;
	}
	if (p[0] == '\\' && p[1] == 'x' && read_hex(p + 2, 2, &x) == 2) {
		*(*to)++ = (char)x;
		return 4;
	}
	if (p[0] == '\\' && p[1] == 'u' && p[2] == '{') {
		const int n = read_hex(p + 3, 6, &x);
		const int k = n > 0 && p[3 + n] == '}' ? u8_uctomb((uint8_t *)*to, x, 4) : -1;
		*to += k > 0 ? k : 0;
		return k > 0 ? n + 4 : 0;
	}
	return 0;
}

size_t vn_utf8_unescape(char *text)
{
	char *to = text; /* never overtakes the input: no escape is shorter than its result */

	for (const char *p = text; *p;) {
		const int n = read_escape(p, &to);
		if (n == 0)
			*to++ = *p;
		p += n ? n : 1;
	}
	*to = '\0';
	return (size_t)(to - text);
}
