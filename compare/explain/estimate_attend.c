/* estimate_attend.c: see estimate_attend.h. A few queries select the likely mistake, which is then
 * computed in full. */
#include "compare/explain/estimate_attend.h"
#include "compare/explain/attend.h"
#include "compare/explain/score.h"

#include <math.h>
#include <stdlib.h>

enum { ROWS = 12 };      /* queries that are asked */
#define PROMISES 0.25    /* of the error, that what may be it leaves at most */

typedef struct asked {
	vn_explain_trial *t;
	vn_attend         a;
	double           *q, *k, *v, *y, *is; /* y, is: (H,K) */
	int               output; /* which of the operation's is the checkpoint */
	int64_t           T, R, width; /* width: of a row, all heads */
} asked;

static double *numbers_of(const vn_tensor *t, int64_t n)
{
	double *x = malloc((size_t)n * sizeof *x + 1);
	if (x)
		vn_to_f64(x, t->data, t->dtype, (size_t)n);
	return x;
}

static vn_status read_inputs(asked *x, vn_error *err)
{
	const vn_node *n = x->a.n;
	const int64_t  S = x->t->site->tokens, K = n->c.attention.head_dim;
	vn_tensor      q, k, v;
	vn_status      st;

	if ((st = vn_recompute_input(x->t->recompute, VN_ATTN_Q, VN_FINE_WIDTH, &q, err)) || (st = vn_recompute_input(x->t->recompute, VN_ATTN_K, VN_FINE_WIDTH, &k, err)) ||
	    (st = vn_recompute_input(x->t->recompute, VN_ATTN_V, VN_FINE_WIDTH, &v, err)))
		return st;
	x->a.S = S;
	x->width = n->c.attention.heads * vn_attend_width(&x->a, x->output);
	x->T = vn_shape_count(&x->t->site->cand.shape) / x->width;
	x->R = x->T < ROWS ? x->T : ROWS;
	x->q = numbers_of(&q, S * n->c.attention.heads * K);
	x->k = numbers_of(&k, S * n->c.attention.kv_heads * K);
	x->v = numbers_of(&v, S * n->c.attention.kv_heads * K);
	x->y = malloc((size_t)x->width * sizeof *x->y + 1);
	x->is = malloc((size_t)x->width * sizeof *x->is + 1);
	x->a.s = malloc((size_t)S * sizeof *x->a.s + 1);
	x->a.q = x->q;
	x->a.k = x->k;
	x->a.v = x->v;
	return x->q && x->k && x->v && x->y && x->is && x->a.s ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for queries, keys and values");
}

static void row_of(const asked *x, const vn_tensor *t, int64_t row, double *y)
{
	const int64_t each = vn_attend_width(&x->a, x->output);

	for (int h = 0; h < x->a.n->c.attention.heads; h++)
		vn_to_f64(y + h * each, (const char *)t->data + (size_t)vn_attend_at(&x->a, x->output, x->T, row, h) * vn_dtype_size(t->dtype), t->dtype, (size_t)each);
}

/* The error of the rows that are asked, where the edit is made; NULL: of the unmodified operation. */
static double left_with(asked *x, const vn_attend_edit *edit)
{
	double left = 0;

	for (int64_t r = 0; r < x->R; r++) {
		const int64_t row = x->R < 2 ? 0 : (x->T - 1) * (r + 1) / x->R;
		if (edit)
			vn_attend_row(&x->a, edit, x->t->site->first + row, x->output, x->y);
		else
			row_of(x, &x->t->own, row, x->y);
		row_of(x, &x->t->site->cand, row, x->is);
		for (int64_t i = 0; i < x->width; i++)
			left += (x->y[i] - x->is[i]) * (x->y[i] - x->is[i]);
	}
	return left;
}

/* The first row that is off: where the second call began. 0: none, or the first. */
static int64_t first_off(asked *x)
{
	const double limit = VN_PEAK_LIMIT * x->t->x->unmodified.local.floor_token;

	for (int64_t row = 0; row < x->T; row++) {
		double dd = 0, yy = 0;
		row_of(x, &x->t->own, row, x->y);
		row_of(x, &x->t->site->cand, row, x->is);
		for (int64_t i = 0; i < x->width; i++) {
			dd += (x->y[i] - x->is[i]) * (x->y[i] - x->is[i]);
			yy += x->y[i] * x->y[i];
		}
		if (!(dd <= limit * yy))
			return row;
	}
	return 0;
}

static vn_status try_best(asked *x, vn_error *err)
{
	const vn_step *step;
	/* Of several steps each shows its own call: what a buffer of so many slots forgets would look like this. */
	const int64_t off = vn_recording_steps(x->t->c->opened.cand, &step) == 1 && !x->t->site->first ? first_off(x) : 0;
	const int     call = off > 1 ? (int)off : 0;
	const struct { vn_finding finding; vn_attend_edit edit; } edits[] = {
		{ VN_MASK_FROM_CALL, { .kind = VN_ATTEND_CALLS_FROM_ZERO, .call = call } },
		{ VN_CALLS_ALONE, { .kind = VN_ATTEND_CALLS_ALONE, .call = call } },
		{ VN_SOFTMAX_SINK, { .kind = VN_ATTEND_SINK } }, /* softmax_one: the sum of exponentials, and one */
		{ VN_SCORE_CAP, { .kind = VN_ATTEND_CAP, .number = 10 } }, { VN_SCORE_CAP, { .kind = VN_ATTEND_CAP, .number = 15 } },
		{ VN_SCORE_CAP, { .kind = VN_ATTEND_CAP, .number = 20 } }, { VN_SCORE_CAP, { .kind = VN_ATTEND_CAP, .number = 30 } },
		{ VN_SCORE_CAP, { .kind = VN_ATTEND_CAP, .number = 50 } }, { VN_SCORE_CAP, { .kind = VN_ATTEND_CAP, .number = 100 } },
		{ VN_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .scores = VN_FORMAT_F16 } },
		{ VN_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .scores = VN_FORMAT_BF16 } },
		{ VN_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .scores = VN_FORMAT_F16, .probs = VN_FORMAT_F16 } },
		{ VN_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .scores = VN_FORMAT_BF16, .probs = VN_FORMAT_BF16 } },
	};
	enum { N_EDITS = sizeof edits / sizeof *edits, OF_CALLS = 2 };
	double least = (double)INFINITY;
	int    best = 0;

	for (int i = call ? 0 : OF_CALLS; i < N_EDITS; i++) {
		const double left = left_with(x, &edits[i].edit);
		best = left < least ? i : best;
		least = fmin(least, left);
	}
	if (!(least <= PROMISES * left_with(x, NULL)))
		return VN_OK;
	vn_hypothesis h = { .finding = edits[best].finding, .node = x->t->site->plan->value[x->t->site->target].node,
	                    .change = { .kind = VN_BY_ATTEND, .attend = edits[best].edit } };
	return vn_try(x->t, &h, err);
}

vn_status vn_estimate_attend(vn_explain_trial *t, vn_error *err)
{
	const vn_plan *p = t->site->plan;
	const int      target = t->site->target;
	asked          x = { .t = t, .a.n = &p->node[p->value[target].node] };
	vn_status      st;

	if (x.a.n->op != VN_OP_ATTENTION || !x.a.n->c.attention.causal || t->part || t->went == VN_NOT_WENT_ON || t->x->unmodified.local.bad)
		return VN_OK;
	x.output = x.a.n->out[VN_ATTN_SCORES] == target ? VN_ATTN_SCORES : x.a.n->out[VN_ATTN_PROBS] == target ? VN_ATTN_PROBS : VN_ATTN_CONTEXT;
	if (x.a.n->out[x.output] != target)
		return VN_OK;
	if (!(st = read_inputs(&x, err)))
		st = try_best(&x, err);
	free(x.q);
	free(x.k);
	free(x.v);
	free(x.y);
	free(x.is);
	free(x.a.s);
	return st;
}
