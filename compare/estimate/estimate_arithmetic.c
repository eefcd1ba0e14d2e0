/* estimate_arithmetic.c: see estimate.h. */
#include "compare/estimate/estimate.h"
#include "compare/trial/trial_apply.h"
#include "compare/trial/score.h"

#include "libref/base/alloc.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* ---- squares beyond float32 ------------------------------------------------------------------ */

static bool is_too_large(const vn_tensor *in, int64_t from, int64_t C)
{
	double sum = 0;

	for (int64_t i = 0; i < C; i++) {
		const double x = vn_tensor_number(in, from + i);
		sum += x * x;
	}
	return isfinite(sum) && sum > (double)FLT_MAX;
}

/* Fills *made with the unmodified result, and 0 (or the bias) in the rows whose squares pass
 * float32. Returns how many rows that are. */
static int64_t make_rows(const vn_case *t, const vn_node *n, const vn_tensor *in, int64_t C, vn_made *made)
{
	const vn_tensor *bias = n->op == VN_OP_LAYER_NORM && n->w[1] >= 0 ? &t->site->weights[n->w[1]] : NULL;
	const int64_t    all = vn_shape_count(&t->site->cand.shape);
	const int64_t    before = t->site->first * (all / t->site->cand.shape.dim[0]);
	double          *own = (double *)made->own.data, *fine = (double *)made->fine.data;
	int64_t          rows = 0;

	vn_tensor_numbers(&t->own, 0, all, own);
	vn_tensor_numbers(&t->fine, 0, all, fine);
	for (int64_t at = 0; at < all; at += C) {
		if (!is_too_large(in, before + at, C))
			continue;
		rows++;
		for (int64_t i = 0; i < C; i++)
			own[at + i] = fine[at + i] = bias ? vn_tensor_number(bias, i) : 0;
	}
	return rows;
}

void vn_estimate_squares(vn_case *t)
{
	const vn_plan *p = t->site->plan;
	const int      node = vn_case_node(t);
	const vn_node *n = &p->node[node];
	vn_trial       h = VN_TRIAL(SQUARES_OVERFLOW, node, .kind = VN_BY_RESULT);
	vn_made        made = { 0 };
	vn_tensor      in;

	if ((n->op != VN_OP_RMS_NORM && n->op != VN_OP_LAYER_NORM) || t->site->n_span != 1)
		return;
	const vn_value *out = &p->value[t->site->target];
	const int64_t   C = out->size[out->rank - 1];
	if (!vn_case_input(t, 0, VN_FINE_WIDTH, &in))
		return;
	vn_made_room(t, &made);
	if (make_rows(t, n, &in, C, &made)) {
		vn_score_numbers(t, &made.own, &made.fine, &h);
		if (vn_case_fits(t, &h))
			vn_case_keep(t->x, &h);
	}
	vn_made_finish(&made);
}

/* ---- a narrower format ----------------------------------------------------------------------- */

static bool has_format(const vn_tensor *x, vn_rounding_format format)
{
	const int64_t n = vn_shape_count(&x->shape);

	for (int64_t i = 0; i < n; i++) {
		const double y = vn_tensor_number(x, i);
		if (!(vn_in_format(y, format) == y))
			return false;
	}
	return true;
}

/* Tries to round only the result, and to compute the whole operation in the format. Keeps the try
 * that leaves fewer numbers off. */
static void try_format(vn_case *t, vn_rounding_format format, double *y)
{
	vn_trial   h = { .finding = VN_FINDING_NARROW,
		             .node = vn_case_node(t),
		             .recorder_fault = t->consumed == VN_CONSUMED_OTHERS,
		             .applied = { .kind = VN_BY_NARROW } };
	int64_t    least = -1;
	const bool router = t->site->plan->value[t->site->target].point == VN_POINT_ROUTER_LOGITS;

	for (int whole = 0; whole < (t->site->n_span == 1 && !h.recorder_fault ? 2 : 1); whole++) {
		const vn_applied_format edit = { .format = format, .whole = whole, .router = router };
		const int64_t           off = vn_narrow_make(t, &edit, y);
		if (off < 0 || (least >= 0 && off >= least + router)) /* a router's inputs may be in the format already */
			continue;
		least = off;
		h.applied.narrow = edit;
	}
	if (least >= 0)
		vn_try(t, &h);
}

void vn_estimate_narrow(vn_case *t)
{
	static const vn_rounding_format formats[] = { VN_FORMAT_BF16, VN_FORMAT_F16 };
	const vn_dtype   storage = vn_policy_dtype(t->opened->policy, vn_value_wide(t->site->plan, t->site->target));
	const vn_tensor *cand = &t->site->cand;
	/* a 16-bit result can only have lost digits to bfloat16 */
	const int        n = storage == VN_BF16 ? 0 : storage == VN_F16 ? 1 : 2;

	const vn_node *node = &t->site->plan->node[vn_case_node(t)];
	if (t->part || t->x->unmodified.residual.bad || !n || node->out[0] != t->site->target)
		return; /* scores and probabilities in another format: estimate_attention.c */
	VN_FREED double *y = vn_alloc((size_t)vn_shape_count(&cand->shape), sizeof *y);
	for (int i = 0; i < n && !vn_case_answered(t); i++)
		if (has_format(cand, formats[i]))
			try_format(t, formats[i], y);
}

/* ---- another activation ---------------------------------------------------------------------- */

#define PROMISES 0.1 /* the most that a likely mistake may leave, of the error */

/* Is the checkpoint made by an activation? Of the others and of other gates, a cap or a format, the
 * catalogue has faults. */
static bool is_activation(const vn_case *t)
{
	const vn_node *n = &t->site->plan->node[vn_case_node(t)];

	return (n->op == VN_OP_GATED || n->op == VN_OP_ACT) && n->c.act.act <= VN_QUICK_GELU &&
	       (n->op == VN_OP_ACT || n->x.act.form == VN_GATE_USUAL) && n->out[0] == t->site->target;
}

/* What a few tokens leave by the plan; NaN: that cannot be computed. */
static double estimate_plan(const vn_case *t, const vn_plan *plan)
{
	double off = (double)NAN;

	vn_case_made(t, vn_recompute_estimate_tokens(t->recompute, plan, t->site->weights, &off, vn_case_error(t)));
	return off;
}

void vn_estimate_activation(vn_case *t)
{
	vn_trial h = VN_TRIAL(OTHER_ACTIVATION, vn_case_node(t), .kind = VN_BY_ACTIVATION);
	double   least = (double)INFINITY;
	vn_plan *plan;

	if (t->part || t->x->unmodified.residual.bad || t->consumed == VN_CONSUMED_OTHERS || !is_activation(t) ||
	    !(plan = vn_case_clone(t)))
		return;
	const double unmodified = estimate_plan(t, plan);
	for (int act = VN_SIGMOID; act <= VN_EXP; act = act == VN_SIGMOID ? VN_TANH : act + 1) {
		plan->node[h.node].c.act.act = (vn_act)act;
		const double left = estimate_plan(t, plan);
		h.applied.activation = left < least ? act : h.applied.activation;
		least = fmin(left, least);
	}
	vn_plan_destroy(plan);
	if (least <= PROMISES * unmodified)
		vn_try(t, &h);
}
