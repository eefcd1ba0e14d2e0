/* recorded_text.c: see recorded_text.h. */
#include "compare/evaluate/recorded_text.h"

#include "capture/recording/logit_rows.h"
#include "libref/base/alloc.h"
#include "libref/base/progress.h"

#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 32 }; /* tokens read and scored at a time */

typedef struct text_side {
	vn_recording  *r;
	vn_logit_row  *at;    /* (tokens) */
	int64_t        width; /* V */
	int            held;  /* entry read last, or -1 */
	unsigned char *data;  /* (BATCH, width), at most 8 bytes each */
	vn_dtype       dtype[BATCH];
} text_side;

/* The tokens of a pair of recordings: token 0 is token `begin` of the text, which already has the
 * first `from`. */
typedef struct text_window {
	const int32_t *ids;
	int64_t        tokens, begin, from;
} text_window;

/* Tokens that are scored together, and the window's begin. */
typedef struct token_batch {
	int64_t token[BATCH], begin;
	int     n;
} token_batch;

static vn_status find_rows(text_side *s, int64_t tokens, vn_error *err)
{
	const vn_status st = vn_logit_rows_of(s->r, tokens, &s->at, &s->width, err);

	return st || s->width ? st
	                      : vn_fail(err, VN_ERR_MISMATCH, "%s: has no logits (record the point \"logits\")",
	                                vn_recording_path(s->r));
}

/* ---- do they belong together? --------------------------------------------------------- */

static vn_status check_complete(const vn_recording *r, vn_error *err)
{
	const int64_t prompts = vn_recording_batch(r);
	if (!vn_recording_complete(r))
		return vn_fail(err, VN_ERR_MISMATCH, "%s: is incomplete: its run was interrupted", vn_recording_path(r));
	if (prompts > 1)
		return vn_fail(err, VN_ERR_MISMATCH, "%s: holds a batch of %" PRId64 " prompts; record one prompt per file",
		               vn_recording_path(r), prompts);
	return VN_OK;
}

#define SAME_TOKENS "record both with the same tokens (vernier capture --ids-from REC, --force-ids-from REC)"

static vn_status same_tokens(const text_side *s, const int32_t **ids, int64_t *tokens, vn_error *err)
{
	const int32_t *of[2];
	int64_t        n[2];
	vn_status      st = VN_OK;

	for (int i = 0; !st && i < 2; i++) {
		n[i] = vn_recording_tokens(s[i].r, &of[i], NULL);
		st = check_complete(s[i].r, err);
	}
	if (st)
		return st;
	for (int64_t i = 0; i < n[0] && i < n[1]; i++)
		if (of[0][i] != of[1][i])
			return vn_fail(err, VN_ERR_MISMATCH,
			               "token %" PRId64 " is %" PRId32 " in %s and %" PRId32 " in %s: " SAME_TOKENS, i, of[0][i],
			               vn_recording_path(s[0].r), of[1][i], vn_recording_path(s[1].r));
	if (n[0] != n[1])
		return vn_fail(err, VN_ERR_MISMATCH, "%s has %" PRId64 " tokens, %s has %" PRId64 ": " SAME_TOKENS,
		               vn_recording_path(s[0].r), n[0], vn_recording_path(s[1].r), n[1]);
	*ids = of[0];
	*tokens = n[0];
	return VN_OK;
}

static vn_status same_width(const text_side *s, const int32_t *ids, int64_t tokens, vn_error *err)
{
	if (s[0].width != s[1].width)
		return vn_fail(err, VN_ERR_MISMATCH, "a row of logits has %" PRId64 " scores in %s and %" PRId64 " in %s",
		               s[0].width, vn_recording_path(s[0].r), s[1].width, vn_recording_path(s[1].r));
	for (int64_t i = 0; i < tokens; i++)
		if (ids[i] < 0 || ids[i] >= s[0].width)
			return vn_fail(err, VN_ERR_MISMATCH,
			               "%s: token %" PRId64 " is %" PRId32 "; its logits have %" PRId64 " scores",
			               vn_recording_path(s[0].r), i, ids[i], s[0].width);
	return VN_OK;
}

/* Appends the new tokens. *begin: position in the text of the window's first token. *from: first
 * new token of the window. */
static vn_status join_text(vn_recorded_text *x, const char *path, int64_t stride, text_window *w, vn_error *err)
{
	const int32_t *ids = w->ids;
	const int64_t  tokens = w->tokens;
	int64_t       *begin = &w->begin, *from = &w->from;

	*begin = stride ? x->windows * stride : x->n;
	*from = x->n - *begin;
	if (*from < 0)
		return vn_fail(err, VN_ERR_MISMATCH,
		               "%s: with --stride %" PRId64 " it begins at token %" PRId64
		               ", but the files before it end after token %" PRId64,
		               path, stride, *begin, x->n - 1);
	if (*from > tokens)
		*from = tokens;
	for (int64_t i = 0; i < *from; i++)
		if (x->ids[*begin + i] != ids[i])
			return vn_fail(err, VN_ERR_MISMATCH,
			               "%s: its token %" PRId64 " is %" PRId32 ", but token %" PRId64 " of the text is %" PRId32
			               ": it is not the next window at --stride %" PRId64,
			               path, i, ids[i], *begin + i, x->ids[*begin + i], stride);
	x->ids = vn_alloc_resized(x->ids, (size_t)(x->n + tokens - *from), sizeof *x->ids);
	x->score = vn_alloc_resized(x->score, (size_t)(x->m + tokens - *from), sizeof *x->score);
	memcpy(x->ids + x->n, ids + *from, (size_t)(tokens - *from) * sizeof *ids);
	x->n += tokens - *from;
	return VN_OK;
}

/* ---- scoring -------------------------------------------------------------------------- */

static vn_status read_row(text_side *s, int slot, int64_t token, vn_error *err)
{
	const vn_logit_row *at = &s->at[token];
	if (s->held >= 0 && s->held != at->entry)
		vn_recording_release(s->r, s->held);
	s->held = at->entry;
	s->dtype[slot] = vn_recording_entry(s->r, at->entry)->dtype;
	return vn_recording_read(s->r, at->entry, at->row * s->width, s->width,
	                         s->data + (size_t)slot * (size_t)s->width * 8, err);
}

/* Scores tokens token[0..n) of a window, each by the row before it. */
static vn_status score_batch(vn_recorded_text *x, text_side *s, const token_batch *b, int threads, vn_error *err)
{
	vn_token_score *to = x->score + x->m;
	for (int i = 0; i < b->n; i++)
		for (int k = 0; k < 2; k++) {
			const vn_status st = read_row(&s[k], i, b->token[i] - 1, err);
			if (st)
				return st;
		}
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
	for (int i = 0; i < b->n; i++) {
		const int64_t  token = b->begin + b->token[i];
		const size_t   at = (size_t)i * (size_t)s[0].width * 8;
		const void    *row[2] = { s[0].data + at, s[1].data + at };
		const vn_dtype dtype[2] = { s[0].dtype[i], s[1].dtype[i] };
		to[i] = vn_token_score_of(row, dtype, s[0].width, x->ids[token], token);
	}
	x->m += b->n;
	return VN_OK;
}

static vn_status score_window(vn_recorded_text *x, text_side *s, const text_window *w, int threads, vn_error *err)
{
	token_batch b = { .begin = w->begin };
	vn_progress bar;
	vn_status   st = VN_OK;

	for (int k = 0; k < 2; k++)
		s[k].data = vn_alloc((size_t)s[k].width, BATCH * 8);
	vn_progress_start(&bar, "token", w->tokens);
	for (int64_t i = w->from > 1 ? w->from : 1; i < w->tokens && !st; i++) {
		if (s[0].at[i - 1].entry < 0 || s[1].at[i - 1].entry < 0) {
			x->unscored++;
			continue;
		}
		b.token[b.n++] = i;
		if (b.n == BATCH) {
			st = score_batch(x, s, &b, threads, err);
			b.n = 0;
			vn_progress_at(&bar, i + 1);
		}
	}
	if (!st && b.n)
		st = score_batch(x, s, &b, threads, err);
	vn_progress_stop(&bar);
	return st;
}

vn_status vn_recorded_text_add(vn_recorded_text *x, vn_recording *ref, vn_recording *cand, int64_t stride, int threads,
                               vn_error *err)
{
	text_side      s[2] = { { .r = ref, .held = -1 }, { .r = cand, .held = -1 } };
	const int32_t *ids = NULL;
	int64_t        tokens = 0;
	vn_status      st = same_tokens(s, &ids, &tokens, err);
	text_window    w = { ids, tokens, 0, 0 };

	for (int k = 0; !st && k < 2; k++)
		st = find_rows(&s[k], tokens, err);
	if (!st && !(st = same_width(s, ids, tokens, err)) && !(st = join_text(x, vn_recording_path(ref), stride, &w, err)))
		st = score_window(x, s, &w, threads > 0 ? threads : omp_get_num_procs(), err);
	for (int k = 0; k < 2; k++) {
		if (s[k].held >= 0)
			vn_recording_release(s[k].r, s[k].held);
		VN_FREE(s[k].at, s[k].data);
	}
	x->vocab = s[0].width;
	x->windows++;
	x->longest = tokens > x->longest ? tokens : x->longest;
	return st;
}

void vn_recorded_text_free(vn_recorded_text *x)
{
	VN_FREE(x->ids, x->score);
	*x = (vn_recorded_text) { 0 };
}
