/* evaluate.c: runs the windows of a text through two engines, and decodes greedily after its
 * beginning; see evaluate.h. */
#include "compare/evaluate/evaluate.h"
#include "compare/evaluate/routed.h"
#include "compare/metrics/scores.h"

#include "capture/run/run.h"

#include "libref/base/alloc.h"
#include "libref/base/progress.h"
#include "libref/exec/sample.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 32 }; /* candidate rows scored at a time */

/* ---- rows of scores, as an engine hands them over ------------------------------- */

typedef struct window_walk window_walk;

typedef struct collector {
	int64_t        width; /* V */
	int64_t        most;  /* rows that have room */
	unsigned char *data;  /* (most, width), allocated at the first row */
	size_t         bytes;
	vn_dtype       dtype;
	int64_t        have;         /* numbers in data */
	int64_t        before;       /* rows already scored and dropped */
	window_walk   *scorer;       /* scores the rows when the buffer is full; NULL: nobody does */
	vn_routed     *routed;       /* takes the experts; NULL: nobody does */
	int64_t        skip;         /* numbers of logits that are dropped first */
	int64_t        before_first; /* rows before the first that is wanted */
	/* the scores of a multi-token-prediction head, of which only the highest of a row is kept */
	int            head;   /* the value; -1: none */
	bool           drafts; /* it is being handed over */
	int64_t        row;    /* the current one; rows before 0 are not kept */
	int64_t        column;
	vn_dtype       dtype_of_head;
	double         highest;
	int32_t       *draft; /* (rows of a window) */
} collector;

/* One piece of the head's scores. The first of equal scores counts; NaN is no score. */
static void take_drafts(collector *c, const void *data, size_t elements)
{
	const size_t size = vn_dtype_size(c->dtype_of_head);
	int32_t      none = -1;
	double       x;

	for (size_t i = 0; i < elements; i++) {
		int32_t *d = c->row >= 0 ? &c->draft[c->row] : &none;
		vn_to_f64(&x, (const char *)data + i * size, c->dtype_of_head, 1);
		if (c->column == 0 || (x > c->highest && *d >= 0)) {
			*d = (int32_t)c->column;
			c->highest = x;
		}
		if (isnan(x))
			*d = -1;
		if (++c->column == c->width) {
			c->column = 0;
			c->row++;
		}
	}
}

static vn_status begin_value(void *ctx, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	collector   *c = ctx;
	const size_t bytes = (size_t)(c->most * c->width) * vn_dtype_size(dtype);
	(void)shape;
	(void)err;
	if (c->routed && vn_routed_begin(c->routed, value, dtype))
		return VN_OK;
	c->drafts = value == c->head;
	if (c->drafts) {
		c->dtype_of_head = dtype;
		c->row = c->routed ? -c->before_first : 0;
		c->column = 0;
		return VN_OK;
	}
	c->dtype = dtype;
	c->have = c->before = 0;
	if (bytes > c->bytes) {
		free(c->data);
		c->data = vn_alloc(bytes, 1);
		c->bytes = bytes;
	}
	return VN_OK;
}

static void score_batch(window_walk *w);

static void flush_rows(collector *c)
{
	score_batch(c->scorer);
	c->before += c->have / c->width;
	c->have = 0;
}

static vn_status take_piece(void *ctx, const void *data, size_t elements, vn_error *err)
{
	collector   *c = ctx;
	const size_t size = vn_dtype_size(c->dtype);
	const char  *from = data;

	if (c->routed && c->routed->open >= 0) {
		vn_routed_take(c->routed, data, elements);
		return VN_OK;
	}
	if (c->drafts) {
		take_drafts(c, data, elements);
		return VN_OK;
	}
	const size_t dropped = (int64_t)elements < c->skip ? elements : (size_t)c->skip;
	c->skip -= (int64_t)dropped;
	from += dropped * size;
	elements -= dropped;
	while (elements > 0) {
		const int64_t room = c->most * c->width - c->have;
		const size_t  n = (int64_t)elements < room ? elements : (size_t)room;
		if (n == 0)
			return vn_fail(err, VN_ERR_SHAPE, "more rows of logits than were asked for");
		memcpy(c->data + (size_t)c->have * size, from, n * size);
		c->have += (int64_t)n;
		from += n * size;
		elements -= n;
		if (c->scorer && c->have == c->most * c->width)
			flush_rows(c);
	}
	return VN_OK;
}

static vn_status end_value(void *ctx, vn_error *err)
{
	collector *c = ctx;
	(void)err;
	if (c->scorer && c->have > 0 && !c->drafts && !(c->routed && c->routed->open >= 0))
		flush_rows(c);
	c->drafts = false;
	return VN_OK;
}

/* ---- windows ---------------------------------------------------------------------- */

struct window_walk {
	const vn_evaluate_options *o;
	const vn_plan             *plan;
	const vn_engine           *engine[2];
	bool                      *want;   /* (n_values): true for the logits only */
	bool                      *chosen; /* (n_values): for them, and what chooses experts */
	vn_routed                  routed;
	collector                  rows[2]; /* reference rows of a whole window; a batch of candidate rows */
	int                        threads;
	/* (n - 1), the first m are scored: the candidate, and the reference with its experts (NULL) */
	vn_token_score            *t, *by_routing;
	vn_token_score            *into; /* one of them */
	int64_t                    m;
	/* The current window. */
	int64_t                    begin, from; /* first token of the window; first token it scores, stored in into[m] */
};

/* A call, of which rows [first, last] are collected. */
typedef struct engine_call {
	const int32_t *ids;
	int64_t        tokens, first, last;
} engine_call;

static vn_status run_engine(window_walk *w, int s, engine_call call, vn_error *err)
{
	const vn_engine *e = w->engine[s];
	const int64_t    past = e->ops->position(e->self);
	collector       *c = &w->rows[s];
	const vn_taps    taps = { .want = c->routed ? w->chosen : w->want,
		                      .rows = VN_ROWS_RANGE,
		                      .first = past + (c->routed ? 0 : call.first),
		                      .last = past + call.last,
		                      .sink = { .ctx = c, .begin = begin_value, .write = take_piece, .end = end_value } };
	c->skip = c->routed ? call.first * c->width : 0;
	c->before_first = call.first;
	return e->ops->forward(e->self, call.ids, call.tokens, &taps, err);
}

/* The same by the reference with the candidate's experts, which are those of the tokens up to
 * call.last. Rows go where the candidate's went. */
static vn_status run_routed(window_walk *w, engine_call call, vn_error *err)
{
	const vn_taps taps = { .want = w->want,
		                   .rows = VN_ROWS_RANGE,
		                   .first = call.first,
		                   .last = call.last,
		                   .sink = {
							   .ctx = &w->rows[1], .begin = begin_value, .write = take_piece, .end = end_value } };
	vn_status     st;

	w->engine[0]->ops->reset(w->engine[0]->self);
	w->into = w->by_routing;
	w->rows[1].routed = NULL;
	st = vn_routed_forward(&w->routed, w->engine[0], call.ids, call.last + 1, &taps, err);
	w->rows[1].routed = &w->routed;
	w->into = w->t;
	return st;
}

/* Scores row i of the batch, which predicts token `from + before + i`. */
static void score_token(const window_walk *w, int64_t i)
{
	const int64_t at[2] = { w->rows[1].before + i, i }, token = w->from + at[0];
	const void   *row[2];
	vn_dtype      dtype[2];

	for (int s = 0; s < 2; s++) {
		dtype[s] = w->rows[s].dtype;
		row[s] = w->rows[s].data + (size_t)(at[s] * w->rows[s].width) * vn_dtype_size(dtype[s]);
	}
	w->into[w->m + at[0]] = vn_token_score_of(row, dtype, w->rows[1].width, w->o->ids[token], token);
}

static void score_batch(window_walk *w)
{
	const int64_t n = w->rows[1].have / w->rows[1].width;
#pragma omp parallel for schedule(dynamic, 1) num_threads(w->threads)
	for (int64_t i = 0; i < n; i++)
		score_token(w, i);
}

/* Runs tokens [begin, stop) and scores [from, stop), each by the row before it. */
static vn_status one_window(window_walk *w, int64_t stop, vn_error *err)
{
	const int32_t *ids = w->o->ids + w->begin;
	const int64_t  first = w->from - 1 - w->begin, last = stop - 2 - w->begin;
	vn_status      st = VN_OK;

	for (int s = 0; !st && s < 2; s++) {
		w->engine[s]->ops->reset(w->engine[s]->self);
		st = run_engine(w, s, (engine_call) { ids, stop - w->begin, first, last }, err);
	}
	for (int64_t i = 0; !st && w->rows[0].head >= 0 && i < stop - w->from; i++)
		for (int s = 0; s < 2 && first + i > 0; s++) /* the window's first token has none before it */
			w->t[w->m + i].draft[s] = w->rows[s].draft[i];
	if (!st && w->by_routing)
		st = run_routed(w, (engine_call) { ids, stop - w->begin, first, last }, err);
	w->m += stop - w->from;
	return st ? vn_context(err, st, "tokens %" PRId64 " to %" PRId64, w->begin, stop - 1) : VN_OK;
}

static vn_status all_windows(window_walk *w, int64_t *windows, vn_error *err)
{
	const int64_t n = w->o->n, more = n > w->o->window ? (n - w->o->window + w->o->stride - 1) / w->o->stride : 0;
	vn_progress   bar;
	vn_status     st = VN_OK;
	int64_t       stop = 0;

	*windows = 1 + more;
	vn_progress_start(&bar, "window", *windows);
	for (int64_t i = 0; !st && i < *windows; i++) {
		w->begin = i * w->o->stride;
		w->from = stop > w->begin ? stop : w->begin + 1;
		stop = w->begin + w->o->window < n ? w->begin + w->o->window : n;
		st = w->from < stop ? one_window(w, stop, err) : VN_OK; /* a single last token has no row before it */
		vn_progress_at(&bar, i + 1);
	}
	vn_progress_stop(&bar);
	return st;
}

/* ---- greedy decoding ---------------------------------------------------------------- */

/* Both engines continue with the reference's token until the candidate picks another. From there
 * separate decodes would diverge. */
static vn_status decode_greedily(window_walk *w, vn_evaluation *e, vn_error *err)
{
	const int32_t *ids = w->o->ids;
	const int64_t  room = w->plan->context - e->prompt, steps = w->o->decode < room ? w->o->decode : room;
	int64_t        tokens = e->prompt;
	int32_t        last;
	vn_progress    bar;
	vn_status      st = VN_OK;

	e->part_at = -1;
	w->rows[1].scorer = NULL;
	w->rows[1].routed = NULL;
	for (int s = 0; s < 2; s++)
		w->engine[s]->ops->reset(w->engine[s]->self);
	vn_progress_start(&bar, "decoded", steps);
	while (!st && e->steps < steps && e->part_at < 0) {
		for (int s = 0; !st && s < 2; s++)
			if (!(st = run_engine(w, s, (engine_call) { ids, tokens, tokens - 1, tokens - 1 }, err)) &&
			    vn_sample(&(vn_next_scores) { w->rows[s].data, w->rows[s].dtype, w->plan->vocab }, 0, 0, &e->part[s],
			              NULL))
				e->part[s] = -1;
		if (st)
			break;
		vn_progress_at(&bar, ++e->steps);
		if (e->part[0] != e->part[1] || e->part[0] < 0) {
			const vn_pair p = { .kernel = vn_metric_kernel_best(),
				                .data = { w->rows[0].data, w->rows[1].data },
				                .dtype = { w->rows[0].dtype, w->rows[1].dtype } };
			e->part_at = e->steps;
			e->part_tie = vn_scores_sweep_row(&p, 0, w->plan->vocab).tie;
		}
		last = e->part[0];
		ids = &last;
		tokens = 1;
	}
	vn_progress_stop(&bar);
	return st ? vn_context(err, st, "decoding, step %" PRId64, e->steps + 1) : VN_OK;
}

/* ---- all of it -------------------------------------------------------------------------- */

static bool chooses_experts(const vn_plan *p)
{
	bool chooses = false;

	for (int i = 0; i < p->n_nodes; i++)
		chooses = chooses || p->node[i].op == VN_OP_TOP_K;
	return chooses;
}

vn_status vn_evaluate_check(const vn_evaluate_options *o, const vn_plan *plan, vn_error *err)
{
	const int logits = vn_plan_find(plan, vn_point_get(VN_POINT_LOGITS)->name);

	if (logits < 0 || vn_value_row(&plan->value[logits]) != plan->vocab)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "the model has no logits over its tokens");
	if (o->n < 2)
		return vn_fail(err, VN_ERR_USAGE,
		               "a text of %" PRId64 " token: at least two are needed, because the first is not scored", o->n);
	const vn_status st = vn_ids_check(o->ids, o->n, plan, err);
	if (st)
		return st;
	if (o->window < 2 || o->window > plan->context)
		return vn_fail(err, VN_ERR_USAGE, "a window must have 2 to %d tokens (the model's context), not %" PRId64,
		               plan->context, o->window);
	if (o->replay_routing && !chooses_experts(plan))
		return vn_fail(err, VN_ERR_USAGE, "--replay-routing: the model has no experts");
	if (o->stride < 1 || o->stride > o->window)
		return vn_fail(err, VN_ERR_USAGE, "the stride must be from 1 to the window of %" PRId64 ", not %" PRId64,
		               o->window, o->stride);
	return VN_OK;
}

vn_status vn_evaluate(const vn_evaluate_options *o, const vn_plan *plan, const vn_engine *ref, const vn_engine *cand,
                      vn_evaluation *e, vn_error *err)
{
	window_walk w = {
		.o = o, .plan = plan, .engine = { ref, cand }, .threads = o->threads > 0 ? o->threads : omp_get_num_procs()
	};
	const int logits = vn_plan_root(plan, vn_plan_find(plan, vn_point_get(VN_POINT_LOGITS)->name));

	const int head = vn_plan_of_point(plan, VN_POINT_MTP_LOGITS);

	/* a fault may add values to the candidate's plan */
	const size_t values = (size_t)(ref->n_values > cand->n_values ? ref->n_values : cand->n_values);

	*e = (vn_evaluation) { .vocab = plan->vocab, .part_at = -1 };
	w.want = vn_alloc_zero(values, sizeof *w.want);
	w.chosen = vn_alloc_zero(values, sizeof *w.chosen);
	w.into = w.t = vn_alloc((size_t)o->n, sizeof *w.t);
	const int64_t rows = o->window < o->n ? o->window : o->n;
	w.rows[0] = (collector) { .width = plan->vocab, .most = rows, .head = head };
	w.rows[1] = (collector) { .width = plan->vocab, .most = BATCH, .scorer = &w, .head = head };
	w.want[logits] = w.chosen[logits] = true;
	for (int s = 0; head >= 0 && s < 2; s++) {
		w.want[head] = w.chosen[head] = true;
		w.rows[s].draft = vn_alloc((size_t)rows, sizeof *w.rows[s].draft);
	}
	if (o->replay_routing) {
		vn_routed_init(&w.routed, plan, w.chosen);
		w.by_routing = vn_alloc((size_t)o->n, sizeof *w.by_routing);
		w.rows[1].routed = &w.routed;
	}
	e->tokens = o->n;
	vn_status st = all_windows(&w, &e->windows, err);
	if (!st)
		vn_evaluate_sum(o->ids, w.t, w.m, e);
	if (!st && w.by_routing)
		vn_evaluate_routing(w.t, w.by_routing, w.m, e);
	if (!st && o->decode > 0) {
		e->prompt = o->n < o->window / 2 ? o->n : o->window / 2;
		if (head >= 0)
			w.want[head] = false;
		st = decode_greedily(&w, e, err);
	}
	for (int s = 0; s < 2; s++)
		VN_FREE(w.rows[s].data, w.rows[s].draft);
	vn_routed_finish(&w.routed);
	VN_FREE(w.by_routing, w.chosen, w.want, w.t);
	return st;
}
