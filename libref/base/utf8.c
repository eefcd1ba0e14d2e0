/* utf8.c: see utf8.h. */
#include "libref/base/utf8.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unictype.h>
#include <unistr.h>

/* Returns the length of the character at the start of text, with its code point; 0: as
 * vn_utf8_length. */
static int read_character(const char *text, size_t bytes, ucs4_t *point)
{
	*point = (unsigned char)*text;
	if (*point < 0x80) /* most are; libunistring's function takes longer */
		return 1;
	const int n = u8_mbtoucr(point, (const uint8_t *)text, bytes);
	return n > 0 ? n : 0;
}

int vn_utf8_length(const char *text, size_t bytes)
{
	ucs4_t point;

	return bytes ? read_character(text, bytes, &point) : 0;
}

bool vn_utf8_cut(const char *text, size_t bytes)
{
	ucs4_t point;

	/* No character starts with a byte above 0xf4, but libunistring waits for more. */
	return (unsigned char)*text <= 0xf4 && u8_mbtoucr(&point, (const uint8_t *)text, bytes) == -2;
}

uint32_t vn_utf8_point(const char *text)
{
	ucs4_t point;

	u8_mbtouc_unsafe(&point, (const uint8_t *)text, 4);
	return point;
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
	const uint8_t *from = (const uint8_t *)text, *bad = u8_check(from, bytes);
	return bad ? (size_t)(bad - from) : bytes;
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

/* Does a command to a runner of CI begin here? "##vso[task.prependpath]" is one of Azure,
 * "##[add-mask]" one of GitHub: runners obey them anywhere in a line of a log. */
static bool is_command(const char *text, size_t bytes)
{
	return bytes >= 3 && text[1] == '#' && (text[2] == '[' || (bytes >= 6 && memcmp(text + 2, "vso[", 4) == 0));
}

size_t vn_utf8_command_begun(const char *text, size_t bytes)
{
	enum { FEW = 6 };
	static const char begun[] = "##vso";
	size_t            n = bytes < strlen(begun) ? bytes : strlen(begun), colons = 0;

	while (n && memcmp(text + bytes - n, begun, n) != 0)
		n--;
	while (colons < bytes && text[bytes - 1 - colons] == ':')
		colons++;
	return n ? n : colons <= FEW ? colons : FEW - 1; /* of more colons, two at the start are not held */
}

size_t vn_utf8_plain(const char *text, size_t bytes, int *marks)
{
	ucs4_t point;
	size_t at = 0;
	for (int n; at < bytes; at += (size_t)n) {
		if ((n = read_character(text + at, bytes - at, &point)) == 0 || !vn_utf8_printable(point) ||
		    (point == '#' && is_command(text + at, bytes - at)))
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
