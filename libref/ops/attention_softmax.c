/* attention_softmax.c: the mask of an attention, and the softmax over the visible keys. */
#include "libref/ops/attention_internal.h"

#include "libref/base/clones.h"
#include "libref/ops/exp.h"

#include <math.h>
#include <string.h>

#define ATTN(a) ((a)->c->attention)
#define X(a)    ((a)->x->attention)

/* The keys of the call of a query, which may be one of several that were joined: [*from, *to). */
static void find_call(const REAL(vn_attend) * a, int64_t query, int64_t *from, int64_t *to)
{
	const int64_t begin = a->begins ? a->begins[query] : -1;
	int64_t       end = query + 1;

	while (end < a->tokens && (!a->begins || a->begins[end] == begin))
		end++;
	*from = begin > a->past ? begin : a->past;
	*to = a->past + end;
}

/* As an experiment has them, which counts by blocks or calls. */
static void find_keys_of_call(const REAL(vn_attend) * a, int64_t query, int64_t *from, int64_t *to)
{
	const int64_t p = a->past + query, B = X(a).blocks, W = ATTN(a).window;
	int64_t       first, end;

	find_call(a, query, &first, &end);
	if (B)
		*to = (p / B + 1) * B < end ? (p / B + 1) * B : end;
	if (*to < X(a).prefix)
		*to = X(a).prefix < end ? X(a).prefix : end;
	if (X(a).window_of && W)
		*from = (X(a).window_of == 1 ? first + 1 : end) - W;
	if (first >= X(a).unseen && *from < X(a).unseen)
		*from = X(a).unseen;
	if (first > 0 && X(a).stale && *to > end - X(a).stale)
		*to = end > X(a).stale ? end - X(a).stale : 0;
	*from = *from > 0 ? *from : 0;
}

/* The range of the S keys that the mask lets a query see. */
static void find_allowed_keys(const REAL(vn_attend) * a, int64_t query, int64_t S, int64_t *from, int64_t *to)
{
	const int64_t p = (a->x && X(a).from_zero ? 0 : a->past) + query, behind = p + 1 + (a->x ? X(a).ahead : 0);
	const int64_t n = S < a->past + a->tokens ? S : a->past + a->tokens;

	*to = ATTN(a).causal && behind < n ? (behind > 0 ? behind : 0) : n;
	*from = ATTN(a).window && p - ATTN(a).window + 1 > 0 ? p - ATTN(a).window + 1 : 0;
	if (a->x && (X(a).blocks || X(a).prefix || X(a).window_of || X(a).unseen || X(a).stale))
		find_keys_of_call(a, query, from, to);
	if (*from < ATTN(a).first)
		*from = p < ATTN(a).first ? p : ATTN(a).first;
}

void REAL(vn_visible)(const REAL(vn_attend) * a, int64_t query, int64_t S, int64_t *from, int64_t *to)
{
	find_allowed_keys(a, query, S, from, to);
	if (!a->x)
		return;
	const bool all = X(a).leak || (X(a).blind && *from >= *to);
	*from = all || X(a).sinks ? 0 : *from;
	*to = all || S > a->past + a->tokens ? S : *to;
}

/* For an experiment: masks the scores of keys [from, to), which are visible, though the mask may
 * not allow all of them. */
static void mask_scores(double *s, const REAL(vn_attend) * a, int64_t query, int64_t S, int64_t from, int64_t to)
{
	const int64_t n = S < a->past + a->tokens ? S : a->past + a->tokens;
	int64_t       first, behind;

	find_allowed_keys(a, query, S, &first, &behind);
	if (from == first && to == behind)
		return;
	for (int64_t j = from; j < n; j++)
		if (first >= behind && X(a).blind)
			s[j] = X(a).blind == 1 ? 0.0 : (double)NAN;
		else if (X(a).leak && (j < first || j >= behind))
			s[j] = X(a).leak == 1 ? 0.0 : X(a).leak == 2 ? s[j] + 1.0 : -ATTN(a).cap;
		else if (!X(a).leak && (j >= behind || (j < first && j >= X(a).sinks)))
			s[j] = -(double)INFINITY; /* keys after the tokens are visible, or keys before the window; these are not */
}

/* Sets [*from, *to), of S, to the keys that a query sees, with their scores s (S) as the softmax
 * takes them. */
static void take_visible(double *s, const REAL(vn_attend) * a, int64_t query, int64_t S, int64_t *from, int64_t *to)
{
	REAL(vn_visible)(a, query, S, from, to);
	if (a->x)
		mask_scores(s, a, query, S, *from, *to);
}

/* Softmax in place over n >= 1 numbers, `padding` zeros, of an experiment, and a number that has no
 * place in s (`sink`; -INFINITY: none). Maximum and sum use eight lanes each. */
VN_CLONES
static void softmax_row(double *s, int64_t n, int padding, double sink)
{
	enum { LANES = 8 };
	const int64_t whole = n / LANES * LANES;
	double        top[LANES], sum[LANES];

	for (int l = 0; l < LANES; l++) {
		top[l] = -INFINITY;
		sum[l] = 0.0;
	}
	for (int64_t j = 0; j < whole; j += LANES)
		for (int l = 0; l < LANES; l++)
			top[l] = s[j + l] > top[l] ? s[j + l] : top[l];
	for (int64_t j = whole; j < n; j++)
		top[0] = s[j] > top[0] ? s[j] : top[0];
	for (int l = 1; l < LANES; l++)
		top[0] = top[l] > top[0] ? top[l] : top[0];
	top[0] = sink > top[0] ? sink : top[0];

	for (int64_t j = 0; j < n; j++)
		s[j] = vn_exp(s[j] - top[0]);
	for (int64_t j = 0; j < whole; j += LANES)
		for (int l = 0; l < LANES; l++)
			sum[l] += s[j + l];
	for (int64_t j = whole; j < n; j++)
		sum[0] += s[j];
	double total = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
	if (padding)
		total += padding * vn_exp(-top[0]);
	if (sink > -(double)INFINITY)
		total += vn_exp(sink - top[0]);
	for (int64_t j = 0; j < n; j++)
		s[j] /= total;
}

/* The same without subtracting the maximum: exp(s) in float32 or float16. */
static void softmax_plain(double *s, int64_t n, int padding, double sink, bool half)
{
	double sum = (double)padding + exp(sink);

	for (int64_t j = 0; j < n; j++) {
		s[j] = half ? vn_as_f16(exp(s[j])) : (double)(float)exp(s[j]);
		sum += s[j];
	}
	sum = (double)(float)sum;
	for (int64_t j = 0; j < n; j++)
		s[j] /= sum;
}

/* The same with a maximum of at least 0: exponentials are rounded to float16, their sum is not. */
static void softmax_from_zero(double *s, int64_t n, double sink)
{
	double top = sink > 0.0 ? sink : 0.0, sum;

	for (int64_t j = 0; j < n; j++)
		top = s[j] > top ? s[j] : top;
	sum = exp(sink - top);
	for (int64_t j = 0; j < n; j++) {
		s[j] = exp(s[j] - top);
		sum += s[j];
		s[j] = vn_as_f16(s[j]);
	}
	for (int64_t j = 0; j < n; j++)
		s[j] /= sum;
}

/* Scores beside a sink are stored once more, less their maximum (transformers' gpt-oss). */
static void round_below_top(double *s, int64_t n, double *sink, int rounding)
{
	double top = *sink;

	for (int64_t j = 0; j < n; j++)
		top = s[j] > top ? s[j] : top;
	for (int64_t j = 0; j < n; j++)
		s[j] = vn_in_format(s[j] - top, rounding);
	*sink = vn_in_format(*sink - top, rounding);
}

/* Softmax in place over n >= 1 numbers, as an experiment has it. */
static void softmax_otherwise(double *s, int64_t n, double sink, const vn_experiment *e)
{
	const int form = e->attention.form;
	const int rounding = form == VN_ATTN_PROBS_F16    ? VN_FORMAT_F16
	                     : form == VN_ATTN_PROBS_BF16 ? VN_FORMAT_BF16
	                                                  : e->attention.rounding;

	if (e->attention.rounding && sink > -(double)INFINITY)
		round_below_top(s, n, &sink, e->attention.rounding);
	if (form == VN_ATTN_NO_MAX || form == VN_ATTN_NO_MAX_F16)
		softmax_plain(s, n, e->attention.padding, sink, form == VN_ATTN_NO_MAX_F16);
	else if (form == VN_ATTN_FROM_ZERO_F16)
		softmax_from_zero(s, n, sink);
	else
		softmax_row(s, n, e->attention.padding, sink);
	for (int64_t j = 0; rounding && j < n; j++)
		s[j] = vn_in_format(s[j], rounding);
}

/* Adds the scores [from, to) of one row (S) to the running maximum and the sum of
 * exp(s - maximum). */
static void add_scores(double *top, double *sum, const double *s, int64_t from, int64_t to)
{
	for (int64_t j = from; j < to; j++) {
		const double most = s[j] > top[j] ? s[j] : top[j];
		sum[j] = (top[j] > -INFINITY ? sum[j] * exp(top[j] - most) : 0.0) + exp(s[j] - most);
		top[j] = most;
	}
}

static void clear_sums(double *top, double *sum, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		top[i] = -INFINITY;
		sum[i] = 0.0;
	}
}

static void softmax_over_queries(REAL(vn_attn_room) * m, const REAL(vn_attend) * a, int64_t head, int64_t row,
                                 int64_t rows, int64_t S)
{
	double *top = m->others, *sum = top + S;
	int64_t from, to;

	clear_sums(top, sum, S);
	for (int64_t r = 0; r < a->tokens; r += VN_ATTN_ROWS) {
		const int64_t n = a->tokens - r < VN_ATTN_ROWS ? a->tokens - r : VN_ATTN_ROWS;
		REAL(vn_attn_scores)(m, a, head, r, n, S);
		for (int64_t i = 0; i < n; i++) {
			take_visible(m->s + i * S, a, r + i, S, &from, &to);
			add_scores(top, sum, m->s + i * S, from, to);
		}
	}
	REAL(vn_attn_scores)(m, a, head, row, rows, S);
	for (int64_t i = 0; i < rows; i++) {
		take_visible(m->s + i * S, a, row + i, S, &from, &to);
		for (int64_t j = from; j < to; j++)
			m->s[i * S + j] = exp(m->s[i * S + j] - top[j]) / sum[j];
	}
}

static void softmax_over_heads(REAL(vn_attn_room) * m, const REAL(vn_attend) * a, int64_t head, int64_t row,
                               int64_t rows, int64_t S)
{
	double *top = m->others, *sum = top + rows * S;
	int64_t from, to;

	clear_sums(top, sum, rows * S);
	for (int64_t h = 0; h <= ATTN(a).heads; h++) {
		REAL(vn_attn_scores)
		(m, a, h < ATTN(a).heads ? h : head, row, rows, S); /* its own probabilities, computed last */
		for (int64_t i = 0; i < rows; i++) {
			double *s = m->s + i * S;
			take_visible(s, a, row + i, S, &from, &to);
			if (h < ATTN(a).heads)
				add_scores(top + i * S, sum + i * S, s, from, to);
			for (int64_t j = from; h == ATTN(a).heads && j < to; j++)
				s[j] = exp(s[j] - top[i * S + j]) / sum[i * S + j];
		}
	}
}

bool REAL(vn_softmax_others)(const REAL(vn_attend) * a)
{
	return a->x && (X(a).form == VN_ATTN_OVER_QUERIES || X(a).form == VN_ATTN_OVER_HEADS);
}

static double sink_of(const REAL(vn_attend) * a, int64_t head)
{
	const int64_t of = a->x && X(a).key_sinks ? head / (ATTN(a).heads / ATTN(a).kv_heads) : head;

	return a->sinks ? (double)a->sinks[of] : -(double)INFINITY;
}

void REAL(vn_flash_row)(real *context, REAL(vn_attn_room) * m, const REAL(vn_attend) * a, int64_t head, int64_t query,
                        int64_t r, int64_t S)
{
	const double sink = sink_of(a, head);
	const int    U = vn_attention_value_dim(a->c);
	double      *s = m->s + r * S, *y = m->ctx, top = -(double)INFINITY, sum = 0.0;
	int64_t      from, to;

	take_visible(s, a, query, S, &from, &to);
	memset(y, 0, (size_t)U * sizeof *y);
	for (int64_t j = from; j < to; j++) {
		const double score = (double)(float)s[j], shrink = score > top ? exp(top - score) : 1.0;
		for (int d = 0; d < U && score > top; d++)
			y[d] = vn_as_f16(y[d] * (double)(float)shrink);
		top = score > top ? score : top;
		const double p = (double)(float)exp(score - top);
		for (int d = 0; d < U; d++)
			y[d] = vn_as_f16(y[d] + p * m->kept[1][j * U + d]);
		sum = sum * shrink + p;
	}
	if (sink > top)
		for (int d = 0; d < U; d++)
			y[d] = vn_as_f16(y[d] * (double)(float)exp(top - sink));
	sum = sink > top ? sum * exp(top - sink) + 1.0 : sum + exp(sink - top);
	for (int d = 0; d < U; d++)
		context[d] = (real)(sum > 0.0 ? y[d] / sum : 0.0);
}

void REAL(vn_softmax)(REAL(vn_attn_room) * m, const REAL(vn_attend) * a, int64_t head, int64_t row, int64_t rows,
                      int64_t S)
{
	const bool others = REAL(vn_softmax_others)(a);
	double    *s = m->s;

	if (others)
		(X(a).form == VN_ATTN_OVER_QUERIES ? softmax_over_queries : softmax_over_heads)(m, a, head, row, rows, S);
	for (int64_t r = 0; r < rows; r++, s += S) {
		int64_t from, to;

		if (others) {
			REAL(vn_visible)(a, row + r, S, &from, &to);
		} else {
			take_visible(s, a, row + r, S, &from, &to);
			if (to > from && a->x)
				softmax_otherwise(s + from, to - from, sink_of(a, head), a->x);
			else if (to > from)
				softmax_row(s + from, to - from, 0, sink_of(a, head));
		}
		vn_attn_narrow(s + from, to > from, to - from, a->policy.role[VN_ROLE_SOFTMAX]);
		memset(s, 0, (size_t)(from < to ? from : to) * 8);
		memset(s + to, 0, (size_t)(S - to) * 8);
	}
}
