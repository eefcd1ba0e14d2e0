/* text.c: see text.h. */
#include "libref/base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *vn_text_digits(const char *text, int64_t *x)
{
	char *end;

	if (!isdigit((unsigned char)text[text[0] == '-'])) /* strtoll would take blanks and a plus */
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
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, size - used, format, args);
	va_end(args);
}

bool vn_text_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

char *vn_text_clean(char *text)
{
	for (char *c = text; *c; c++)
		if (vn_text_control(*c))
			*c = '?';
	return text;
}
