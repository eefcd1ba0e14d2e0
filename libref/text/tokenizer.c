/* tokenizer.c: see tokenizer.h: assembling a tokenizer from its parts, encoding and decoding. */
#include "libref/base/alloc.h"
#include "libref/base/utf8.h"
#include "libref/text/bytelevel.h"
#include "libref/text/unicode.h"
#include "libref/text/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct encode_job {
	const vn_tokenizer *t;
	vn_split_work      *split;
	vn_bpe_work         merge;
	vn_ids              out;
	vn_error           *err;
} encode_job;

/* `joined`: invalid UTF-8 comes directly before, so no blank is inserted. */
static vn_status encode_piece(encode_job *j, int stage, const char *text, size_t n, bool joined)
{
	const vn_stage *s = &j->t->stage[stage];
	vn_status       st = VN_OK;
	VN_FREED char  *longer = NULL;

	if (stage == j->t->n_stages)
		return vn_bpe_encode(j->t->bpe, text, n, &j->merge, &j->out, j->err);
	if (s->blank && !joined && *text != ' ') {
		longer = vn_alloc(n + 1, 1);
		*longer = ' ';
		memcpy(longer + 1, text, n++);
		text = longer;
	}
	for (size_t at = 0, end; !st && at < n; at = end) {
		end = n;
		if (s->split)
			st = vn_split_next(s->split, j->split, (vn_split_text) { text, n }, at, &end, j->err);
		st = st ? st : encode_piece(j, stage + 1, text + at, end - at, joined && at == 0);
	}
	return st;
}

/* Encodes valid UTF-8 that contains no token of `raw`. */
static vn_status encode_ordinary(encode_job *j, const char *text, size_t n, bool joined)
{
	vn_added_search       s = { 0 };
	const vn_added_token *found;
	size_t                from, to, begin = 0;
	VN_FREED char        *owned = NULL;
	vn_status             st = VN_OK;

	if (j->t->nfc)
		vn_nfc(text, n, &text, &n, &owned);
	while (!st && (found = vn_added_next(&j->t->composed, text, n, &s, &from, &to))) {
		if (begin < from)
			st = encode_piece(j, 0, text + begin, from - begin, joined && begin == 0);
		vn_ids_add(&j->out, found->id);
		begin = to;
	}
	if (!st && begin < n)
		st = encode_piece(j, 0, text + begin, n - begin, joined && begin == 0);
	return st;
}

/* Encodes any bytes that contain no token of `raw`. */
static vn_status encode_between(encode_job *j, const char *text, size_t n)
{
	vn_status st = VN_OK;

	for (size_t at = 0; !st && at < n;) {
		const size_t good = vn_utf8_good(text + at, n - at), bad = vn_utf8_bad(text + at + good, n - at - good);
		if (good)
			st = encode_ordinary(j, text + at, good, at > 0);
		if (!st && bad)
			st = vn_bpe_encode(j->t->bpe, text + at + good, bad, &j->merge, &j->out, j->err);
		at += good + bad;
	}
	return st;
}

static void put_all(encode_job *j, const vn_ids *ids)
{
	for (size_t i = 0; i < ids->n; i++)
		vn_ids_add(&j->out, ids->id[i]);
}

static vn_status encode_text(encode_job *j, const char *text, size_t n, bool special)
{
	vn_added_search       s = { 0 };
	const vn_added_token *found;
	size_t                from, to, begin = 0;
	vn_status             st = VN_OK;

	if (special)
		put_all(j, &j->t->before);
	while (!st && (found = vn_added_next(&j->t->raw, text, n, &s, &from, &to))) {
		if (begin < from)
			st = encode_between(j, text + begin, from - begin);
		vn_ids_add(&j->out, found->id);
		begin = to;
	}
	st = st ? st : encode_between(j, text + begin, n - begin);
	if (special)
		put_all(j, &j->t->after);
	return st;
}

vn_status vn_tokenizer_encode(const vn_tokenizer *t, const char *text, size_t bytes, bool special, int32_t **ids,
                              int64_t *n, vn_error *err)
{
	encode_job j = { .t = t, .split = vn_split_work_create(bytes), .err = err };
	vn_status  st;

	*ids = NULL;
	*n = 0;
	if (!(st = encode_text(&j, text, bytes, special))) {
		*ids = j.out.id;
		*n = (int64_t)j.out.n;
		j.out.id = NULL;
	}
	free(j.out.id);
	vn_bpe_work_finish(&j.merge);
	vn_split_work_destroy(j.split);
	return st;
}

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
	VN_FREE(t->before.id, t->after.id, t);
}

vn_status vn_tokenizer_add(vn_tokenizer *t, const vn_added_token *token, bool normalized, const char *text, size_t n,
                           vn_error *err)
{
	size_t         other;
	const char    *there = vn_bpe_text(t->bpe, token->id, &other), *composed = text;
	const int32_t  id = vn_bpe_find(t->bpe, text, n);
	VN_FREED char *owned = NULL;
	vn_status      st;

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
	return vn_added_put(normalized ? &t->composed : &t->raw, token, composed, n, err);
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
	size_t         n, n_bytes;
	const char    *added = vn_bpe_text(t->added, id, &n), *text = added ? added : vn_bpe_text(t->bpe, id, &n);
	VN_FREED char *bytes = vn_alloc(n, 1);
	char          *shown = !added && vn_bytelevel_read(bytes, &n_bytes, text, n) ? vn_utf8_escape(bytes, n_bytes)
	                                                                             : vn_utf8_escape(text, n);
	return vn_alloc_check(shown);
}
