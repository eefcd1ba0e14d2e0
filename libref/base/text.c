/* text.c: see text.h. */
#include "libref/base/text.h"

#include "libref/base/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *vn_text_digits(const char *text, int64_t *x)
{
	char *end;

	if (!isdigit((unsigned char)text[text[0] == '-'])) /* strtoll would accept blanks and a plus sign */
		return NULL;
	errno = 0;
	const long long n = strtoll(text, &end, 10);
	if (errno)
		return NULL;
	*x = n;
	return end;
}

bool vn_text_whole(const char *text, int64_t low, int64_t high, int64_t *x)
{
	int64_t     n;
	const char *end = vn_text_digits(text, &n);

	if (!end || *end || n < low || n > high)
		return false;
	*x = n;
	return true;
}

bool vn_text_real(const char *text, double low, double high, double *x)
{
	char *end;

	if (!*text || text[strspn(text, "0123456789+-.eE")] || !strpbrk(text, "0123456789"))
		return false;
	const double r = strtod(text, &end);
	if (*end || !(r >= low && r <= high))
		return false;
	*x = r;
	return true;
}

void vn_text_add(char *text, size_t size, const char *format, ...)
{
	const size_t used = strlen(text);
	va_list      args;

	va_start(args, format);
	vsnprintf(text + used, size - used, format, args);
	va_end(args);
}

char *vn_text_number(double x, char text[32])
{
	int digits = 1;
	do
		snprintf(text, 32, "%.*g", digits, x);
	while (strtod(text, NULL) != x && ++digits <= 17);
	if (fabs(x) >= 1 && fabs(x) < 1e15) /* 500000, not 5e+05 */
		snprintf(text, 32, "%.*g", digits > 15 ? digits : 15, x);
	char *at = strchr(text, 'e');
	if (!at)
		return text;
	char *zeros = at + 1 + (at[1] == '-'); /* e-06: e-6; e+20: e20 */
	memmove(zeros, zeros + strspn(zeros, "+0"), strlen(zeros + strspn(zeros, "+0")) + 1);
	return text;
}

char *vn_text_new_args(const char *format, va_list args)
{
	va_list again;

	va_copy(again, args);
	const int n = vsnprintf(NULL, 0, format, again);
	va_end(again);
	char *text = n >= 0 ? malloc((size_t)n + 1) : NULL;
	if (text)
		vsnprintf(text, (size_t)n + 1, format, args);
	return text;
}

char *vn_text_new(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	char *text = vn_text_new_args(format, args);
	va_end(args);
	return text;
}

const char *vn_text_file(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

bool vn_text_ends(const char *text, const char *end)
{
	const size_t n = strlen(text), m = strlen(end);
	return n >= m && strcasecmp(text + n - m, end) == 0;
}

const char *vn_text_find(const char *text, const char *word)
{
	const size_t n = strlen(word);

	while (*text && strncasecmp(text, word, n) != 0)
		text++;
	return *text ? text : NULL;
}

static size_t count_digits(const char *text)
{
	return strspn(text, "0123456789");
}

int vn_text_order(const char *a, const char *b)
{
	const char *const x = a, *const y = b;

	while (*a && *b) {
		if (!count_digits(a) || !count_digits(b)) {
			if (*a != *b)
				break;
			a++, b++;
			continue;
		}
		a += strspn(a, "0");
		b += strspn(b, "0");
		const size_t n = count_digits(a), m = count_digits(b);
		const int    order = n != m ? (n > m) - (n < m) : strncmp(a, b, n);
		if (order)
			return order;
		a += n;
		b += m;
	}
	return *a != *b ? (unsigned char)*a - (unsigned char)*b : strcmp(x, y);
}

int vn_text_word(const char *words, const char *word)
{
	const size_t n = strlen(word);

	for (int i = 0; words && *words; i++) {
		const size_t length = strcspn(words, "|");
		if (length == n && memcmp(words, word, n) == 0)
			return i;
		words += length + (words[length] == '|');
	}
	return -1;
}

bool vn_text_is_word(const char *words, const char *word)
{
	return vn_text_word(words, word) >= 0;
}

const char *vn_text_words(const char *words, char *text, size_t room)
{
	*text = '\0';
	for (const char *word = words; *word;) {
		const int   length = (int)strcspn(word, "|");
		const char *next = word + length + (word[length] == '|');
		vn_text_add(text, room, "%s%.*s", word == words ? "" : *next ? ", " : " or ", length, word);
		word = next;
	}
	return text;
}

bool vn_text_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

size_t vn_text_put(char *line, size_t at, const char *text)
{
	const size_t n = strlen(text);
	memcpy(line + at, text, n);
	return at + n;
}

char *vn_text_clean(char *text, size_t room)
{
	int    marks = 0;
	size_t left = strlen(text);
	char  *to = text + vn_utf8_plain(text, left, &marks);

	left -= (size_t)(to - text);
	if (left == 0)
		return text;
	/* The rest of the text is moved to the end of the buffer. The output reaches it only if the
	 * whole does not fit, where it ends anyway. */
	char *from = memmove(text + room - 1 - left, to, left);
	while (left > 0) {
		char         code[VN_UTF8_CODE];
		const size_t n = vn_utf8_code(from, left, code), k = strlen(code);
		if (to + k > from + n)
			break;
		memcpy(to, code, k);
		to += k;
		from += n;
		left -= n;
		const size_t plain = vn_utf8_plain(from, left, &marks);
		memmove(to, from, plain);
		to += plain;
		from += plain;
		left -= plain;
	}
	*to = '\0';
	return text;
}

char *vn_text_print(char *text, size_t room, const char *format, va_list args)
{
	const int n = vsnprintf(text, room, format, args);

	if (n >= 0 && (size_t)n >= room) { /* do not cut inside a character */
		size_t end = room - 1;
		while (end > 0 && room - 1 - end < 3 && vn_utf8_length_before(text, end) == 0)
			end--;
		if (vn_utf8_length_before(text, end))
			text[end] = '\0';
	}
	return vn_text_clean(text, room);
}

char *vn_text_bytes(int64_t bytes, char text[24])
{
	static const char *const unit[] = { "kB", "MB", "GB", "TB" };
	double                   n = (double)bytes / 1e3;
	size_t                   i = 0;

	while (n >= 999.95 && i + 1 < sizeof unit / sizeof *unit) {
		n /= 1e3;
		i++;
	}
	if (bytes < 1000)
		snprintf(text, 24, "%d bytes", (int)bytes);
	else
		snprintf(text, 24, "%.1f %s", n, unit[i]);
	return text;
}
