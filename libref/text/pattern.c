/* pattern.c: see pattern.h.
 *
 *   \s, \S       Oniguruma means Unicode's White_Space; PCRE2 adds U+180E
 *   \p{L} ...    of Unicode 16 there, of the edition PCRE2 was made with here: what
 *                came later is added
 *   \p{Han} ...  the script; PCRE2 would take script extensions too
 */
#include "libref/text/pattern.h"

#include "libref/text/unicode.h"
#include "libref/base/alloc.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_NAME = 31 }; /* of a property */

/* The translation in progress. */
typedef struct translation {
	const char *pattern;
	size_t      bytes, at;
	FILE       *out;
	vn_error   *err;
} translation;

/* Copies n bytes of the pattern. */
static void copy_bytes(translation *w, size_t n)
{
	fwrite(w->pattern + w->at, 1, n, w->out);
	w->at += n;
}

static int peek_byte(const translation *w, size_t ahead)
{
	return w->at + ahead < w->bytes ? (unsigned char)w->pattern[w->at + ahead] : 0;
}

static bool starts_with(const translation *w, const char *with)
{
	const size_t n = strlen(with);
	return w->bytes - w->at >= n && memcmp(w->pattern + w->at, with, n) == 0;
}

static vn_status refuse_syntax(const translation *w, const char *what)
{
	const size_t rest = w->bytes - w->at;
	return vn_fail(w->err, VN_ERR_UNSUPPORTED, "%s at byte %zu ('%.*s') is not supported", what, w->at,
	               rest > 12 ? 12 : (int)rest, w->pattern + w->at);
}

/* ---- \p{...} ------------------------------------------------------------------- */

static void put_later(const translation *w, char category)
{
	size_t               n;
	const vn_code_range *r = vn_unicode_later(category, &n);

	for (size_t i = 0; i < n; i++)
		fprintf(w->out, "\\x{%x}-\\x{%x}", r[i].first, r[i].last);
}

/* \p{NAME}, \p{^NAME}, \P{NAME}. */
static vn_status translate_property(translation *w, bool in_class)
{
	const char *close = memchr(w->pattern + w->at, '}', w->bytes - w->at);
	bool        negated = peek_byte(w, 1) == 'P';

	if (peek_byte(w, 2) != '{' || !close)
		return refuse_syntax(w, "a property without braces");
	const char *name = w->pattern + w->at + 3;
	if (*name == '^') {
		negated = !negated;
		name++;
	}
	const size_t n = (size_t)(close - name);
	if (n == 0 || n > LONGEST_NAME)
		return refuse_syntax(w, "a property");
	for (size_t i = 0; i < n; i++)
		if (!isalpha((unsigned char)name[i]) && name[i] != '_')
			return refuse_syntax(w, "a property");

	const bool whole = n == 1 && strchr("LMN", *name);
	if (whole && negated && in_class)
		return refuse_syntax(w, "a negated property inside a class");
	if (whole && !in_class)
		fputs(negated ? "[^" : "[", w->out);
	/* One or two letters name a category. */
	fprintf(w->out, "\\%c{%s%.*s}", negated && !whole ? 'P' : 'p', n > 2 ? "sc:" : "", (int)n, name);
	if (whole)
		put_later(w, *name);
	if (whole && !in_class)
		fputs("]", w->out);
	w->at = (size_t)(close + 1 - w->pattern);
	return VN_OK;
}

/* ---- escapes, classes, groups ---------------------------------------------------- */

/* \x{...}, \u0041 and, below 0x80, \x41: a code point. */
static vn_status code_point(translation *w)
{
	unsigned long x = 0;
	size_t        n = 2;
	const bool    braces = peek_byte(w, 1) == 'x' && peek_byte(w, 2) == '{';
	const size_t  first = n + braces, most = first + (braces ? 8 : peek_byte(w, 1) == 'u' ? 4 : 2);

	for (n = first; n < most && isxdigit(peek_byte(w, n)); n++)
		x = x * 16 +
		    (unsigned long)(isdigit(peek_byte(w, n)) ? peek_byte(w, n) - '0' : (peek_byte(w, n) | 0x20) - 'a' + 10);
	if (n == first || (braces ? peek_byte(w, n) != '}' : n != most) || x > 0x10ffff ||
	    (peek_byte(w, 1) == 'x' && !braces && x > 0x7f))
		return refuse_syntax(w, "a code point");
	fprintf(w->out, "\\x{%lx}", x);
	w->at += n + braces;
	return VN_OK;
}

static vn_status translate_escape(translation *w, bool in_class)
{
	const int c = peek_byte(w, 1);

	switch (c) {
	case 's':
	case 'S':
		fputs(c == 's' ? "\\p{White_Space}" : "\\P{White_Space}", w->out);
		w->at += 2;
		return VN_OK;
	case 'p':
	case 'P': return translate_property(w, in_class);
	case 'x':
	case 'u': return code_point(w);
	case 'd':
		fputs("\\p{Nd}", w->out);
		w->at += 2;
		return VN_OK;
	case 'r':
	case 'n':
	case 't':
	case 'f':
	case 'a': copy_bytes(w, 2); return VN_OK;
	default:
		if (c < '!' || c > '~' || isalnum(c))
			return refuse_syntax(w, "an escape");
		copy_bytes(w, 2);
		return VN_OK;
	}
}

static vn_status translate_class(translation *w)
{
	vn_status    st;
	const size_t open = w->at, first = open + 1 + (peek_byte(w, 1) == '^');

	copy_bytes(w, first - open);
	while (w->at < w->bytes) {
		if (peek_byte(w, 0) == ']') {
			if (w->at == first)
				return refuse_syntax(w, "an empty class");
			copy_bytes(w, 1);
			return VN_OK;
		}
		if (peek_byte(w, 0) == '[' || starts_with(w, "&&"))
			return refuse_syntax(w, "a class of classes");
		if (peek_byte(w, 0) != '\\')
			copy_bytes(w, 1);
		else if ((st = translate_escape(w, true)))
			return st;
	}
	w->at = open;
	return refuse_syntax(w, "a class without an end");
}

static vn_status translate_group(translation *w)
{
	static const char *const known[] = { "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?-i:" };

	if (peek_byte(w, 1) != '?' && peek_byte(w, 1) != '*') {
		copy_bytes(w, 1);
		return VN_OK;
	}
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (starts_with(w, known[i])) {
			copy_bytes(w, strlen(known[i]));
			return VN_OK;
		}
	return refuse_syntax(w, "a group");
}

/* {3}, {1,3}, {2,}: a following '+' or '?' means something else in the two dialects. */
static vn_status translate_interval(translation *w)
{
	size_t n = 1;

	while (isdigit(peek_byte(w, n)))
		n++;
	if (n > 1 && peek_byte(w, n) == ',')
		for (n++; isdigit(peek_byte(w, n));)
			n++;
	if (n < 2 || peek_byte(w, n) != '}' || peek_byte(w, n + 1) == '+' || peek_byte(w, n + 1) == '?')
		return refuse_syntax(w, "a repetition");
	copy_bytes(w, n + 1);
	return VN_OK;
}

vn_status vn_pattern_translate(const char *pattern, size_t bytes, char **out, vn_error *err)
{
	size_t      n;
	translation w = { .pattern = pattern, .bytes = bytes, .out = open_memstream(out, &n), .err = err };
	vn_status   st = VN_OK;

	vn_alloc_check(w.out);
	while (!st && w.at < w.bytes) {
		switch (pattern[w.at]) {
		case '\\': st = translate_escape(&w, false); break;
		case '[': st = translate_class(&w); break;
		case '(': st = translate_group(&w); break;
		case '{': st = translate_interval(&w); break;
		case '^':
		case '$': st = refuse_syntax(&w, "an anchor"); break;
		case '\0': st = refuse_syntax(&w, "a zero byte"); break;
		default: copy_bytes(&w, 1); break;
		}
	}
	const bool lost = ferror(w.out);
	vn_alloc_check(fclose(w.out) != 0 || lost ? NULL : out);
	if (st) {
		free(*out);
		*out = NULL;
	}
	return st;
}
