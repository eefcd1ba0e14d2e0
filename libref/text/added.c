/* added.c: see added.h. */
#include "libref/text/added.h"

#include "libref/base/alloc.h"
#include "libref/base/order.h"
#include "libref/base/utf8.h"
#include "libref/text/unicode.h"

#include <stdlib.h>
#include <string.h>

void vn_added_finish(vn_added *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->token[i].text);
	free(a->token);
	*a = (vn_added) { 0 };
}

vn_status vn_added_put(vn_added *a, const vn_added_token *token, const char *text, size_t n, vn_error *err)
{
	if (n == 0 || n > VN_LONGEST_ADDED || memchr(text, '\0', n))
		return vn_fail(err, VN_ERR_UNSUPPORTED,
		               "an added token has %zu bytes; expected 1 to %d bytes, none of them zero", n, VN_LONGEST_ADDED);
	a->token = vn_alloc_grown(a->token, (size_t)a->n, sizeof *a->token);
	vn_added_token *t = &a->token[a->n];
	*t = *token;
	t->n = n;
	t->order = a->n;
	t->text = vn_alloc(n + 1, 1);
	memcpy(t->text, text, n);
	t->text[n] = '\0';
	a->n++;
	return VN_OK;
}

VN_ORDER_BY(by_text, vn_added_token, memcmp(x->text, y->text, x->n < y->n ? x->n : y->n), VN_ORDER(x->n, y->n),
            VN_ORDER(x->order, y->order))

void vn_added_settle(vn_added *a)
{
	size_t kept = 0;

	if (a->n)
		qsort(a->token, a->n, sizeof *a->token, by_text);
	for (size_t i = 0; i < a->n; i++) {
		if (kept && strcmp(a->token[kept - 1].text, a->token[i].text) == 0) /* no text holds a zero byte */
			free(a->token[i].text);
		else
			a->token[kept++] = a->token[i];
	}
	a->n = kept;
	for (size_t b = 0, i = 0; b <= 256; b++) {
		while (i < a->n && (unsigned char)a->token[i].text[0] < b)
			i++;
		a->first[b] = i;
	}
}

/* ---- searching ------------------------------------------------------------------- */

/* Among tokens [low, high), which share their first k bytes, the first whose byte k is at least c.
 * A token that ends at k comes first. */
static size_t find_bound(const vn_added *a, size_t low, size_t high, size_t k, unsigned c)
{
	while (low < high) {
		const size_t          middle = (low + high) / 2;
		const vn_added_token *t = &a->token[middle];
		if (t->n <= k || (unsigned char)t->text[k] < c)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The longest token at the start of text, or NULL. */
static const vn_added_token *find_longest(const vn_added *a, const char *text, size_t n)
{
	const vn_added_token *found = NULL;
	size_t                low = a->first[(unsigned char)*text], high = a->first[(unsigned char)*text + 1];

	for (size_t k = 1; low < high; k++) {
		if (a->token[low].n == k)
			found = &a->token[low];
		if (k == n)
			break;
		const unsigned c = (unsigned char)text[k];
		low = find_bound(a, low, high, k, c);
		high = find_bound(a, low, high, k, c + 1);
	}
	return found;
}

static bool word_at(const char *text, size_t n)
{
	return vn_utf8_length(text, n) > 0 && vn_unicode_word(vn_utf8_point(text));
}

static bool word_before(const char *text, size_t n)
{
	const int k = vn_utf8_length_before(text, n);
	return k > 0 && vn_unicode_word(vn_utf8_point(text + n - k));
}

static size_t spaces_at(const char *text, size_t n)
{
	size_t at = 0;
	for (int k; (k = vn_utf8_length(text + at, n - at)) > 0 && vn_unicode_space(vn_utf8_point(text + at));)
		at += (size_t)k;
	return at;
}

/* Start of the spaces at the end of text, not before `least`. */
static size_t spaces_before(const char *text, size_t n, size_t least)
{
	for (int k; n > least && (k = vn_utf8_length_before(text, n)) > 0 && vn_unicode_space(vn_utf8_point(text + n - k));)
		n -= (size_t)k;
	return n;
}

const vn_added_token *vn_added_next(const vn_added *a, const char *text, size_t n, vn_added_search *s, size_t *from,
                                    size_t *to)
{
	for (; a->n && s->at < n; s->at++) {
		const vn_added_token *t = find_longest(a, text + s->at, n - s->at);
		if (!t)
			continue;
		*from = s->at;
		*to = s->at + t->n;
		s->at = *to - 1; /* a match inside a word is skipped as a whole */
		if (t->single_word && (word_before(text, *from) || word_at(text + *to, n - *to)))
			continue;
		if (t->lstrip && *from > s->done)
			*from = spaces_before(text, *from, s->done);
		if (t->rstrip)
			*to += spaces_at(text + *to, n - *to);
		if (t->lstrip && *to <= s->done) /* as in `tokenizers`: the previous token already consumed this one's
		                                  * white space */
			continue;
		s->at++;
		s->done = *to;
		return t;
	}
	return NULL;
}
