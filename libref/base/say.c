/* say.c: see say.h. */
#include "libref/base/say.h"

#include "libref/base/freed.h"
#include "libref/base/utf8.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

const char vn_say_colour[VN_SAY_COLOURS][8] = { "\033[0m", "\033[1m", "\033[2m", "\033[31m", "\033[32m" };

/* One conversion, such as %-*.3s, and the arguments. */
typedef struct conversion {
	va_list args;
	char    flags[8]; /* "-" and others */
	char    size[3];  /* "", "l", "ll", "z", ... */
	char    kind;
	int     width, precision; /* -1: none */
} conversion;

static int put_string(const conversion *c, FILE *out, const char *text, size_t n)
{
	const int  pad = c->width > (int)n ? c->width - (int)n : 0;
	const bool left = strchr(c->flags, '-') != NULL;

	fprintf(out, "%*s%.*s%*s", left ? 0 : pad, "", (int)n, text, left ? pad : 0, "");
	return pad + (int)n;
}

static bool is_colour(const char *text)
{
	for (int i = 0; i < VN_SAY_COLOURS; i++)
		if (text == vn_say_colour[i])
			return true;
	return false;
}

static int say_string(const conversion *c, FILE *out, const char *text)
{
	int    marks = 0;
	size_t n;

	if (!text)
		text = "(null)";
	n = c->precision < 0 ? strlen(text) : strnlen(text, (size_t)c->precision);
	if (c->precision >= 0 && text[n]) /* do not cut inside a character */
		for (size_t back = 1; back < 4 && back <= n; back++)
			if (vn_utf8_cut(text + n - back, back)) {
				n -= back;
				break;
			}
	if (is_colour(text) || vn_utf8_plain(text, n, &marks) == n)
		return put_string(c, out, text, n);
	VN_FREED char *shown = vn_utf8_shown(text, n);
	text = shown ? shown : "(no memory)";
	return put_string(c, out, text, strlen(text));
}

/* Reads digits, or * and its argument. */
static const char *read_number(conversion *c, const char *at, int *x)
{
	if (*at == '*') {
		*x = va_arg(c->args, int);
		return at + 1;
	}
	for (*x = 0; isdigit((unsigned char)*at); at++)
		*x = 10 * *x + (*at - '0');
	return at;
}

/* Reads a conversion that starts after its %; returns what follows it. */
static const char *read_conversion(conversion *c, const char *at)
{
	size_t n = strspn(at, "-+ #0'");

	n = n < sizeof c->flags - 2 ? n : sizeof c->flags - 2;
	memcpy(c->flags, at, n);
	c->flags[n] = '\0';
	at = read_number(c, at + n, &c->width);
	if (c->width < 0) { /* an argument: means the flag */
		c->width = -c->width;
		memcpy(c->flags + n, "-", 2);
	}
	c->precision = -1;
	if (*at == '.')
		at = read_number(c, at + 1, &c->precision);
	n = strspn(at, "hlzjt");
	n = n < sizeof c->size - 1 ? n : sizeof c->size - 1;
	memcpy(c->size, at, n);
	c->size[n] = '\0';
	c->kind = at[n];
	return at + n + (at[n] != '\0');
}

static intmax_t signed_argument(conversion *c)
{
	switch (c->size[0]) {
	case 'l': return c->size[1] ? va_arg(c->args, long long) : va_arg(c->args, long);
	case 'z': return va_arg(c->args, ssize_t);
	case 'j': return va_arg(c->args, intmax_t);
	case 't': return va_arg(c->args, ptrdiff_t);
	default: return va_arg(c->args, int);
	}
}

static uintmax_t unsigned_argument(conversion *c)
{
	switch (c->size[0]) {
	case 'l': return c->size[1] ? va_arg(c->args, unsigned long long) : va_arg(c->args, unsigned long);
	case 'z': return va_arg(c->args, size_t);
	case 'j': return va_arg(c->args, uintmax_t);
	default: return va_arg(c->args, unsigned);
	}
}

static int say_conversion(conversion *c, FILE *out)
{
	char format[32], one[2] = { 0 };

	snprintf(format, sizeof format, "%%%s*.*%s%c", c->flags, strchr("diuxXo", c->kind) ? "j" : "", c->kind);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	switch (c->kind) {
	case '%': return fputc('%', out) == '%';
	case 's': return say_string(c, out, va_arg(c->args, const char *));
	case 'c': one[0] = (char)va_arg(c->args, int); return say_string(c, out, one);
	case 'd':
	case 'i': return fprintf(out, format, c->width, c->precision, signed_argument(c));
	case 'u':
	case 'x':
	case 'X':
	case 'o': return fprintf(out, format, c->width, c->precision, unsigned_argument(c));
	case 'e':
	case 'E':
	case 'f':
	case 'F':
	case 'g':
	case 'G':
	case 'a':
	case 'A': return fprintf(out, format, c->width, c->precision, va_arg(c->args, double));
	case 'p': return fprintf(out, "%p", va_arg(c->args, void *));
	default: abort(); /* the compiler checks formats, and say.h names what is not known */
	}
#pragma GCC diagnostic pop
}

int vn_say_args(FILE *out, const char *format, va_list args)
{
	conversion c;
	int        all = 0;

	if (ferror(out))
		return 0; /* a part is lost: the rest without it would say something else */
	va_copy(c.args, args);
	while (*format) {
		const size_t plain = strcspn(format, "%");
		if (fwrite(format, 1, plain, out) != plain)
			break;
		format += plain;
		all += (int)plain;
		if (*format) {
			format = read_conversion(&c, format + 1);
			all += say_conversion(&c, out);
		}
	}
	va_end(c.args);
	return all;
}

int vn_say(FILE *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	const int all = vn_say_args(out, format, args);
	va_end(args);
	return all;
}
