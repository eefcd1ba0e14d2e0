/* tokenizer.c: see tokenizer.h: assembling a tokenizer from its parts, and decoding. Encoding:
 * encode.c. */
#include "libref/text/tokenizer_internal.h"

#include "libref/base/alloc.h"
#include "libref/base/utf8.h"
#include "libref/text/bytelevel.h"
#include "libref/text/normal.h"

#include <stdlib.h>
#include <string.h>

vn_tokenizer *vn_tokenizer_create(bool whole_first)
{
	vn_tokenizer *t = vn_alloc_zero(1, sizeof *t);

	t->bpe = vn_bpe_create(whole_first);
	t->added = vn_bpe_create(false);
	return t;
}

void vn_tokenizer_close(vn_tokenizer *t)
{
	if (!t)
		return;
	for (int i = 0; i < t->n_stages; i++)
		vn_split_destroy(t->stage[i].split);
	vn_added_finish(&t->raw);
	vn_added_finish(&t->composed);
	vn_bpe_destroy(t->bpe);
	vn_bpe_destroy(t->added);
	free(t->before.id);
	free(t->after.id);
	free(t);
}

vn_status vn_tokenizer_add(vn_tokenizer *t, const vn_added_token *token, bool normalized, const char *text, size_t n,
                           vn_error *err)
{
	size_t        other;
	const char   *there = vn_bpe_text(t->bpe, token->id, &other), *composed = text;
	const int32_t id = vn_bpe_find(t->bpe, text, n);
	char         *owned = NULL;
	vn_status     st;

	if (id >= 0 && id != token->id)
		return vn_fail(err, VN_ERR_FORMAT, "'%.*s' has the id %d, but %d in the vocabulary", vn_bpe_quoted(n), text,
		               token->id, id);
	if (there && id < 0)
		return vn_fail(err, VN_ERR_FORMAT, "'%.*s' has the id %d, which belongs to '%.*s' in the vocabulary",
		               vn_bpe_quoted(n), text, token->id, vn_bpe_quoted(other), there);
	if (vn_utf8_good(text, n) != n)
		return vn_fail(err, VN_ERR_FORMAT, "'%.*s' is not UTF-8", vn_bpe_quoted(n), text);
	if (n && vn_bpe_find(t->added, text, n) == token->id)
		return VN_OK; /* said twice */
	if ((st = vn_bpe_add_token(t->added, text, n, token->id, err)))
		return st;
	if (normalized && t->nfc)
		vn_nfc(text, n, &composed, &n, &owned);
	st = vn_added_put(normalized ? &t->composed : &t->raw, token, composed, n, err);
	free(owned);
	return st;
}

vn_status vn_tokenizer_stage(vn_tokenizer *t, bool blank, const char *pattern, size_t bytes, bool literal,
                             vn_error *err)
{
	vn_stage *s = &t->stage[t->n_stages];

	if (t->n_stages == VN_MOST_STAGES)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "more than %d pre-tokenizer steps", VN_MOST_STAGES);
	*s = (vn_stage) { .blank = blank };
	vn_status st = pattern ? vn_split_create(pattern, bytes, literal, &s->split, err) : VN_OK;
	t->n_stages += !st;
	return st;
}

vn_status vn_tokenizer_merge_line(vn_tokenizer *t, const char *line, size_t n, vn_error *err)
{
	const char  *blank = memchr(line, ' ', n);
	const size_t left = blank ? (size_t)(blank - line) : n;

	if (!blank || memchr(blank + 1, ' ', n - left - 1))
		return vn_fail(err, VN_ERR_FORMAT, "'%.*s': expected two tokens separated by one space", vn_bpe_quoted(n),
		               line);
	return vn_bpe_add_merge(t->bpe, line, left, blank + 1, n - left - 1, err);
}

void vn_tokenizer_settle(vn_tokenizer *t)
{
	vn_added_settle(&t->raw);
	vn_added_settle(&t->composed);
}

/* An added token, or one outside the byte-level alphabet, is shown literally. */
char *vn_tokenizer_show(const vn_tokenizer *t, int32_t id)
{
	size_t      n, n_bytes;
	const char *added = vn_bpe_text(t->added, id, &n), *text = added ? added : vn_bpe_text(t->bpe, id, &n);
	char       *bytes = vn_alloc(n, 1);
	char       *shown = !added && vn_bytelevel_read(bytes, &n_bytes, text, n) ? vn_utf8_escape(bytes, n_bytes)
	                                                                          : vn_utf8_escape(text, n);
	free(bytes);
	return vn_alloc_check(shown);
}
