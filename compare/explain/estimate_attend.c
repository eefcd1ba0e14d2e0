/* estimate_attend.c: see estimate_attend.h. A few queries select the likely mistake, which is
 * then computed in full. */
#include "compare/explain/estimate_attend.h"
#include "compare/explain/attend.h"
#include "compare/explain/score.h"

#include <math.h>
#include <stdlib.h>

enum { ATTEND_QUERIES = 12 }; /* queries that are asked */
#define ALL_OF_SOFTMAX(format) .scores = format, .exps = format, .sum = format, .probs = format
#define PROMISES               0.25 /* of the error: the most that a likely mistake may leave */

typedef struct asked {
	vn_explain_trial *t;
	vn_attend         a;
	double           *y, *is;      /* (width) each: a row made, and recorded */
	int64_t           T, R, width; /* width: of a row, all heads */
} asked;

static void row_of(const asked *x, const vn_tensor *t, int64_t row, double *y)
{
	const int64_t each = vn_attend_width(&x->a);

	for (int h = 0; h < x->a.n->c.attention.heads; h++)
		vn_to_f64(y + h * each,
		          (const char *)t->data + (size_t)vn_attend_at(&x->a, x->T, row, h) * vn_dtype_size(t->dtype), t->dtype,
		          (size_t)each);
}

/* The error of the selected rows under the edit. NULL: of the unmodified operation. */
static double left_with(asked *x, const vn_attend_edit *edit)
{
	double left = 0;

	for (int64_t r = 0; r < x->R; r++) {
		const int64_t row = x->R < 2 ? 0 : (x->T - 1) * (r + 1) / x->R;
		if (edit)
			vn_attend_row(&x->a, edit, x->t->site->first + row, NULL, x->y);
		else
			row_of(x, &x->t->own, row, x->y);
		row_of(x, &x->t->site->cand, row, x->is);
		for (int64_t i = 0; i < x->width; i++)
			left += (x->y[i] - x->is[i]) * (x->y[i] - x->is[i]);
	}
	return left;
}

/* The first row in error: where the second call began. 0: none, or the first row. */
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

/* The edits that are tried; those of calls only where it is known how many tokens a call has, which they get. */
static const struct {
	vn_finding     finding;
	vn_attend_edit edit;
} edits[] = {
	{ VN_PADDING_SEEN, { .kind = VN_ATTEND_PADDING } },
	{ VN_MASK_FROM_CALL, { .kind = VN_ATTEND_CALLS_FROM_ZERO } },
	{ VN_CALLS_ALONE, { .kind = VN_ATTEND_CALLS_ALONE } },
	{ VN_CALLS_SEE_FUTURE, { .kind = VN_ATTEND_CALLS_FUTURE } },
	{ VN_SOFTMAX_SINK, { .kind = VN_ATTEND_SINK } }, /* softmax_one: one is added to the sum of exponentials */
	{ VN_SUM_PLUS, { .kind = VN_ATTEND_SUM_PLUS, .number = 1 } },
	{ VN_SCORE_CAP, { .kind = VN_ATTEND_CAP, .number = 10 } },
	{ VN_SCORE_CAP, { .kind = VN_ATTEND_CAP, .number = 15 } },
	{ VN_SCORE_CAP, { .kind = VN_ATTEND_CAP, .number = 20 } },
	{ VN_SCORE_CAP, { .kind = VN_ATTEND_CAP, .number = 30 } },
	{ VN_SCORE_CAP, { .kind = VN_ATTEND_CAP, .number = 50 } },
	{ VN_SCORE_CAP, { .kind = VN_ATTEND_CAP, .number = 100 } },
	{ VN_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .scores = VN_FORMAT_F16 } },
	{ VN_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .scores = VN_FORMAT_BF16 } },
	{ VN_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .scores = VN_FORMAT_F16, .probs = VN_FORMAT_F16 } },
	{ VN_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .scores = VN_FORMAT_BF16, .probs = VN_FORMAT_BF16 } },
	{ VN_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .exps = VN_FORMAT_F16 } },
	{ VN_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .exps = VN_FORMAT_BF16 } },
	{ VN_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .sum = VN_FORMAT_F16 } },
	{ VN_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .sum = VN_FORMAT_BF16 } },
	{ VN_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, ALL_OF_SOFTMAX(VN_FORMAT_F16) } },
	{ VN_SOFTMAX_ROUNDED, { .kind = VN_ATTEND_ROUNDED, ALL_OF_SOFTMAX(VN_FORMAT_BF16) } },
	{ VN_PROBS_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .probs = VN_FORMAT_F16 } },
	{ VN_PROBS_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .probs = VN_FORMAT_BF16 } },
	{ VN_ATTENTION_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .inputs = VN_FORMAT_TF32 } },
	{ VN_ATTENTION_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .inputs = VN_FORMAT_TF32_AWAY } },
	{ VN_ATTENTION_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .inputs = VN_FORMAT_TF32_CUT } },
	{ VN_ATTENTION_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .inputs = VN_FORMAT_F16 } },
	{ VN_ATTENTION_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .inputs = VN_FORMAT_BF16 } },
	{ VN_CACHE_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .cache = VN_FORMAT_BF16 } },
	{ VN_CACHE_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .cache = VN_FORMAT_INT8, .scaled = true } },
	{ VN_CACHE_ROUNDED, { .kind = VN_ATTEND_ROUNDED, .cache = VN_FORMAT_E4M3, .scaled = true } },
};
enum { N_EDITS = sizeof edits / sizeof *edits, PADDING = 0, FIRST_OF_CALLS = 1, LAST_OF_CALLS = 3 };

static bool is_of_calls(int i)
{
	return i >= FIRST_OF_CALLS && i <= LAST_OF_CALLS;
}

static vn_attend_edit edit_for(int i, int call)
{
	vn_attend_edit edit = edits[i].edit;
	edit.call = is_of_calls(i) ? call : 0;
	return edit;
}

/* The edit that leaves the least error, *least. call: tokens of a call; 0: not known. */
static vn_status find_best(asked *x, int call, int *best, double *least, vn_error *err)
{
	const vn_step *own = vn_recording_step(x->t->c->opened.cand, x->t->c->result.point[x->t->x->point].step);
	const bool     later = own && own->position > 0; /* calls that read what others cached */

	*best = PADDING;
	*least = (double)INFINITY;
	for (int i = 0; i < N_EDITS; i++) {
		if ((i == PADDING && !x->a.padding) || (is_of_calls(i) && !call) ||
		    (edits[i].finding == VN_CACHE_ROUNDED && !later))
			continue;
		const vn_attend_edit edit = edit_for(i, call);
		const vn_status      st = vn_attend_prepare(&x->a, &edit, err);
		if (st)
			return st;
		const double left = left_with(x, &edit);
		*best = left < *least ? i : *best;
		*least = fmin(*least, left);
	}
	return VN_OK;
}

static vn_status try_best(asked *x, vn_error *err)
{
	const vn_step *step;
	/* A recording that knows of one call may be of several. */
	const int64_t  off = vn_recording_steps(x->t->c->opened.cand, &step) == 1 && !x->t->site->first ? first_off(x) : 0;
	const int      call = x->a.later ? VN_OWN_CALLS : off > 1 ? (int)off : 0;
	int            best;
	double         least;
	vn_status      st = find_best(x, call, &best, &least, err);

	if (st || !(least <= PROMISES * left_with(x, NULL)))
		return st;
	vn_hypothesis h = { .finding = edits[best].finding,
		                .node = x->t->site->plan->value[x->t->site->target].node,
		                .change = { .kind = VN_BY_ATTEND,
		                            .attend = edit_for(best, call),
		                            .later = edits[best].finding == VN_CACHE_ROUNDED } };
	return vn_try_format(x->t, &h, &h.change.attend.inputs, VN_FORMAT_TF32, err);
}

static bool may_attend_otherwise(const vn_explain_trial *t, int node)
{
	const vn_node *n = &t->site->plan->node[node];

	return n->op == VN_OP_ATTENTION && n->c.attention.causal && !t->part && t->consumed != VN_CONSUMED_OTHERS &&
	       !t->x->unmodified.local.bad;
}

vn_status vn_estimate_seen_keys(vn_explain_trial *t, vn_error *err)
{
	static const struct {
		vn_finding     finding;
		vn_attend_kind kind;
		bool           later;
	} ways[] = {
		{ VN_LARGEST_ALONE, VN_ATTEND_LARGEST, false },      { VN_FIRST_KEY_ALONE, VN_ATTEND_FIRST_KEY, false },
		{ VN_CALLS_ALONE, VN_ATTEND_ONE_OWN, true },         { VN_MASK_FROM_CALL, VN_ATTEND_ONE_FIRST, true },
		{ VN_NOTHING_APPENDED, VN_ATTEND_ONE_PROMPT, true },
	};
	const int node = t->site->plan->value[t->site->target].node;
	vn_status st = VN_OK;

	for (size_t i = 0; !st && may_attend_otherwise(t, node) && i < sizeof ways / sizeof *ways; i++) {
		vn_hypothesis h = { .finding = ways[i].finding,
			                .node = node,
			                .change = { .kind = VN_BY_ATTEND, .attend.kind = ways[i].kind, .later = ways[i].later } };
		st = vn_try(t, &h, err);
	}
	if (!st && vn_answered(t) && t->x->by[0].change.kind == VN_BY_ATTEND &&
	    t->x->by[0].change.attend.kind == VN_ATTEND_ONE_OWN) {
		vn_hypothesis window = { .finding = VN_WINDOW, .node = node };
		vn_constant_put(&window, "window", 1);
		st = vn_try(t, &window, err);
	}
	return st;
}

vn_status vn_estimate_attend(vn_explain_trial *t, vn_error *err)
{
	const vn_plan *p = t->site->plan;
	const int      node = p->value[t->site->target].node;
	asked          x = { .t = t };
	bool           made;
	vn_status      st;

	if (!may_attend_otherwise(t, node))
		return VN_OK;
	if ((st = vn_attend_open(&x.a, t, node, &made, err)) || !made)
		return st;
	x.width = x.a.n->c.attention.heads * vn_attend_width(&x.a);
	x.T = vn_shape_count(&t->site->cand.shape) / x.width;
	x.R = x.T < ATTEND_QUERIES ? x.T : ATTEND_QUERIES;
	x.y = malloc((size_t)x.width * sizeof *x.y + 1);
	x.is = malloc((size_t)x.width * sizeof *x.is + 1);
	st = x.y && x.is ? try_best(&x, err) : vn_fail(err, VN_ERR_NOMEM, "no memory for attention");
	free(x.y);
	free(x.is);
	vn_attend_close(&x.a);
	return st;
}
