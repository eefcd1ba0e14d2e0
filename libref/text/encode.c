/* encode.c: text to ids: see tokenizer.h. The order is that of `tokenizers`: find added tokens in
 * the raw text; normalise the text between them; find added tokens in that; split the text between
 * them into pieces; merge each piece. */
#include "libref/text/tokenizer_internal.h"

#include "libref/base/alloc.h"
#include "libref/base/utf8.h"
#include "libref/text/normal.h"

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
	char           *longer = NULL;

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
		if (!st)
			st = encode_piece(j, stage + 1, text + at, end - at, joined && at == 0);
	}
	free(longer);
	return st;
}

/* Encodes valid UTF-8 that contains no token of `raw`. */
static vn_status encode_ordinary(encode_job *j, const char *text, size_t n, bool joined)
{
	vn_added_search       s = { 0 };
	const vn_added_token *found;
	size_t                from, to, begin = 0;
	char                 *owned = NULL;
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
	free(owned);
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
	if (!st)
		st = encode_between(j, text + begin, n - begin);
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
