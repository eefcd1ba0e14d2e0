/* listen.c: see listen.h. */
#include "capture/run/listen.h"

#include "capture/run/interrupt.h"
#include "libref/base/alloc.h"

#include <stdlib.h>
#include <string.h>

vn_status vn_listener_init(vn_listener *l, const vn_plan *plan, int n_values, const vn_taps *asked, bool scores,
                           vn_error *err)
{
	*l = (vn_listener) { .plan = plan, .asked = *asked, .logits = -1 };
	l->want = vn_alloc_zero((size_t)(n_values > plan->n_values ? n_values : plan->n_values), sizeof *l->want);
	if (!scores)
		return VN_OK;
	l->logits = vn_plan_find(plan, vn_point_get(VN_POINT_LOGITS)->name);
	if (l->logits >= 0)
		l->logits = vn_plan_root(plan, l->logits);
	if (l->logits < 0 || vn_value_row(&plan->value[l->logits]) != plan->vocab)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "the model has no logits over its tokens to choose from");
	l->row = vn_alloc((size_t)plan->vocab, sizeof(double));
	return VN_OK;
}

void vn_listener_finish(vn_listener *l)
{
	VN_FREE(l->want, l->row);
	*l = (vn_listener) { 0 };
}

/* ---- the sink ------------------------------------------------------------------ */

/* The axis that counts tokens; -1: none. */
static int token_axis(const vn_value *v)
{
	for (int i = 0; i < v->rank; i++)
		if (v->size[i] == VN_T)
			return i;
	return -1;
}

static vn_status begin_value(void *ctx, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	vn_listener *l = ctx;
	const int    axis = token_axis(&l->plan->value[value]);
	vn_shape     cut = *shape;

	if (vn_interrupted())
		return vn_fail(err, VN_ERR_INTERRUPTED, "interrupted");
	l->pass = l->asked.want[value] && l->to_count > 0;
	l->keep = value == l->logits && l->hear;
	l->cut = axis >= 0 && l->count != l->to_count;
	l->inner = 1;
	for (int i = axis + 1; i < shape->rank; i++)
		l->inner *= shape->dim[i];
	l->at = 0;
	l->width = vn_dtype_size(dtype);
	if (l->keep)
		l->dtype = dtype;
	if (l->cut)
		cut.dim[axis] = l->to_count;
	return l->pass ? l->asked.sink.begin(l->asked.sink.ctx, value, dtype, &cut, err) : VN_OK;
}

/* The part of elements [from, to) inside the piece [at, at + n). */
typedef struct span {
	int64_t start, n;
} span;

static span intersect_span(int64_t from, int64_t to, int64_t at, int64_t n)
{
	const int64_t low = from > at ? from : at, high = to < at + n ? to : at + n;
	return (span) { low, high > low ? high - low : 0 };
}

/* Passes the requested rows of every run (one run, or one for each head) to the store. */
static vn_status pass_on(const vn_listener *l, const char *data, int64_t n, vn_error *err)
{
	const vn_sink *to = &l->asked.sink;
	const int64_t  run = l->count * l->inner, from = (l->to_first - l->first) * l->inner;
	vn_status      st = VN_OK;

	if (!l->cut)
		return to->write(to->ctx, data, (size_t)n, err);
	for (int64_t base = l->at - l->at % run; !st && base < l->at + n; base += run) {
		const span s = intersect_span(base + from, base + from + l->to_count * l->inner, l->at, n);
		if (s.n > 0)
			st = to->write(to->ctx, data + (size_t)(s.start - l->at) * l->width, (size_t)s.n, err);
	}
	return st;
}

static void keep_row(vn_listener *l, const char *data, int64_t n)
{
	const int64_t from = (l->count - 1) * l->inner;
	const span    s = intersect_span(from, from + l->inner, l->at, n);

	if (s.n > 0)
		memcpy((char *)l->row + (size_t)(s.start - from) * l->width, data + (size_t)(s.start - l->at) * l->width,
		       (size_t)s.n * l->width);
	l->heard = l->at + n == from + l->inner;
}

static vn_status take_piece(void *ctx, const void *data, size_t elements, vn_error *err)
{
	vn_listener  *l = ctx;
	const int64_t n = (int64_t)elements;
	vn_status     st = VN_OK;

	if (l->keep)
		keep_row(l, data, n);
	if (l->pass)
		st = pass_on(l, data, n, err);
	l->at += n;
	return st;
}

static vn_status end_value(void *ctx, vn_error *err)
{
	vn_listener *l = ctx;
	return l->pass ? l->asked.sink.end(l->asked.sink.ctx, err) : VN_OK;
}

/* ---- a call ---------------------------------------------------------------------- */

vn_taps vn_listener_taps(vn_listener *l, int64_t past, int64_t tokens, bool scores)
{
	vn_taps_select(&l->asked, past, tokens, &l->to_first, &l->to_count);
	l->first = l->to_first;
	l->count = l->to_count;
	l->heard = false;
	l->hear = scores && l->logits >= 0;
	for (int v = 0; v < l->plan->n_values; v++)
		l->want[v] = l->asked.want[v] && l->to_count > 0;
	if (l->hear) {
		l->want[l->logits] = true;
		l->first = l->to_count ? l->to_first : tokens - 1;
		l->count = tokens - l->first;
	}
	return (vn_taps) { .want = l->want,
		               .rows = VN_ROWS_RANGE,
		               .first = past + l->first,
		               .last = past + l->first + l->count - 1,
		               .sink = { .ctx = l, .begin = begin_value, .write = take_piece, .end = end_value } };
}
