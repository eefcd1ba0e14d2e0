/* split.c: see split.h. Only this file uses PCRE2.
 *
 * Every position is tried separately (PCRE2_ANCHORED), since only then does PCRE2 count the steps
 * of a whole search and not of each of its starts. The patterns of real tokenizers match
 * everywhere, so this costs nothing.
 *
 * Patterns come from untrusted models, and run in vernier's own process. So they are interpreted,
 * never compiled to machine code (PCRE2's JIT), within limits on steps and memory.
 */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "libref/text/split.h"

#include "libref/base/alloc.h"
#include "libref/base/utf8.h"
#include "libref/text/unicode.h"

#include <ctype.h>
#include <pcre2.h>
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

/* Free allowance at each position, in PCRE2 steps and bytes looked at, and the factor by which it
 * grows when it was too small. A run of n blanks takes about n of both, once. An expression that
 * looks n bytes ahead at every position, or backtracks exponentially, soon uses up the reserve. */
enum { FREE_STEPS = 1000, FREE_BYTES = 4096, MORE = 16 };
static const uint64_t RESERVE = 20000000, RESERVE_A_BYTE = 256;

enum { LONGEST_PATTERN = 65536, MOST_STACK = 65536 /* KiB, for the interpreter */ };

struct vn_split_work {
	pcre2_match_data    *data;
	pcre2_match_context *context;
	uint64_t             reserve;
};

vn_status vn_split_create(const char *pattern, size_t bytes, bool literal, vn_split **split, vn_error *err)
{
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	VN_FREED char         *ours = NULL;
	vn_status              st = VN_OK;
	int                    code = 0;
	PCRE2_SIZE             at = 0;

	*split = NULL;
	if (!context)
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for the pattern");
	else if (bytes == 0 || bytes > LONGEST_PATTERN)
		st = vn_fail(err, VN_ERR_UNSUPPORTED, "the pattern has %zu bytes, expected 1 to %d", bytes, LONGEST_PATTERN);
	else if (!literal)
		st = vn_pattern_translate(pattern, bytes, &ours, err);
	if (st) {
		pcre2_compile_context_free(context);
		return st;
	}
	pcre2_set_newline(context, PCRE2_NEWLINE_LF);
	*split = pcre2_compile((PCRE2_SPTR)(ours ? ours : pattern), ours ? PCRE2_ZERO_TERMINATED : bytes,
	                       PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED | (literal ? PCRE2_LITERAL : PCRE2_UCP),
	                       &code, &at, context);
	pcre2_compile_context_free(context);
	if (!*split && code == PCRE2_ERROR_HEAP_FAILED)
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for the pattern");
	else if (!*split) {
		PCRE2_UCHAR why[128];
		pcre2_get_error_message(code, why, sizeof why);
		/* The offset is one in the translation, so quote the translation. */
		const char *there = ours ? ours + (at > 12 ? at - 12 : 0) : "";
		st = vn_fail(err, VN_ERR_FORMAT, "the pattern does not compile: %s, near '%.24s'", (const char *)why, there);
	}
	return st;
}

void vn_split_destroy(vn_split *s)
{
	pcre2_code_free(s);
}

vn_split_work *vn_split_work_create(size_t bytes)
{
	vn_split_work *w = vn_alloc_zero(1, sizeof *w);

	w->data = vn_alloc_check(pcre2_match_data_create(1, NULL));
	w->context = vn_alloc_check(pcre2_match_context_create(NULL));
	pcre2_set_heap_limit(w->context, MOST_STACK);
	w->reserve = RESERVE + RESERVE_A_BYTE * bytes;
	return w;
}

void vn_split_work_destroy(vn_split_work *w)
{
	if (!w)
		return;
	pcre2_match_data_free(w->data);
	pcre2_match_context_free(w->context);
	free(w);
}

/* Takes the possible cost of the next, larger allowance from the reserve. */
static bool charge_reserve(vn_split_work *w, uint64_t *allowance)
{
	*allowance *= MORE;
	if (*allowance > w->reserve || *allowance > UINT32_MAX)
		return false;
	w->reserve -= *allowance;
	return true;
}

/* End of the bytes that a search from `at` may look at, rounded to whole characters. */
static size_t find_horizon(const char *text, size_t bytes, size_t at, uint64_t looked)
{
	size_t end = looked < bytes - at ? at + (size_t)looked : bytes;

	while (end < bytes && ((unsigned char)text[end] & 0xc0) == 0x80)
		end++;
	return end;
}

static const size_t NO_MATCH = SIZE_MAX;

/* The end of the match that begins at byte `at`, or NO_MATCH. */
static vn_status match_at(const vn_split *s, vn_split_work *w, vn_split_text x, size_t at, size_t *end, vn_error *err)
{
	uint64_t       steps = FREE_STEPS, looked = FREE_BYTES;
	const uint32_t options = PCRE2_NO_UTF_CHECK;

	for (;;) {
		const size_t sight = find_horizon(x.text, x.bytes, at, looked);
		bool         paid = true;
		pcre2_set_match_limit(w->context, (uint32_t)steps);
		/* PARTIAL_HARD reports when the match looked at the end of the visible bytes. */
		const int rc = pcre2_match(s, (PCRE2_SPTR)x.text, sight, at,
		                           options | (sight < x.bytes ? PCRE2_PARTIAL_HARD : 0), w->data, w->context);
		if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH) {
			*end = rc >= 0 ? pcre2_get_ovector_pointer(w->data)[1] : NO_MATCH;
			return VN_OK;
		}
		if (rc == PCRE2_ERROR_PARTIAL)
			paid = charge_reserve(w, &looked);
		else if (rc == PCRE2_ERROR_MATCHLIMIT)
			paid = charge_reserve(w, &steps);
		else
			return vn_fail(err, VN_ERR_UNSUPPORTED,
			               "the pattern cannot be matched at byte %zu of the text: PCRE2 error %d", at, rc);
		if (!paid)
			return vn_fail(err, VN_ERR_UNSUPPORTED, "matching the pattern takes too many steps at byte %zu of the text",
			               at);
	}
}

vn_status vn_split_next(const vn_split *s, vn_split_work *w, vn_split_text x, size_t at, size_t *end, vn_error *err)
{
	size_t    match = at;
	vn_status st = match_at(s, w, x, at, &match, err);

	*end = match;
	if (st || (match != NO_MATCH && match > at))
		return st;
	/* No match here: the piece extends to the next position with a match, even an empty one. */
	*end = at;
	for (match = NO_MATCH; !st && match == NO_MATCH && *end < x.bytes;) {
		*end += (size_t)vn_utf8_length(x.text + *end, x.bytes - *end);
		st = match_at(s, w, x, *end, &match, err);
	}
	return st;
}
