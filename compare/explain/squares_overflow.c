/* squares_overflow.c: see squares_overflow.h. */
#include "compare/explain/squares_overflow.h"
#include "compare/explain/hypothesis_made.h"
#include "compare/explain/score.h"

#include <float.h>
#include <math.h>

static bool is_too_large(const vn_tensor *in, int64_t from, int64_t C)
{
	double sum = 0;

	for (int64_t i = 0; i < C; i++) {
		const double x = vn_number_at(in, from + i);
		sum += x * x;
	}
	return isfinite(sum) && sum > (double)FLT_MAX;
}

/* Fills *made with the unmodified result, and 0 (or the bias) in the rows whose squares pass float32. Returns how many
 * rows that are. */
static int64_t make_rows(const vn_explain_trial *t, const vn_node *n, const vn_tensor *in, int64_t C, vn_made *made)
{
	const vn_tensor *bias = n->op == VN_OP_LAYER_NORM && n->w[1] >= 0 ? &t->site->weights[n->w[1]] : NULL;
	const int64_t    all = vn_shape_count(&t->site->cand.shape);
	const int64_t    before = t->site->first * (all / t->site->cand.shape.dim[0]);
	double          *own = (double *)made->own.data, *fine = (double *)made->fine.data;
	int64_t          rows = 0;

	vn_to_f64(own, t->own.data, t->own.dtype, (size_t)all);
	vn_to_f64(fine, t->fine.data, t->fine.dtype, (size_t)all);
	for (int64_t at = 0; at < all; at += C) {
		if (!is_too_large(in, before + at, C))
			continue;
		rows++;
		for (int64_t i = 0; i < C; i++)
			own[at + i] = fine[at + i] = bias ? vn_number_at(bias, i) : 0;
	}
	return rows;
}

vn_status vn_try_squares_overflow(vn_explain_trial *t, bool *all, vn_error *err)
{
	const vn_plan *p = t->site->plan;
	const int      node = p->value[t->site->target].node;
	const vn_node *n = &p->node[node];
	vn_hypothesis  h = { .finding = VN_SQUARES_OVERFLOW, .node = node, .change.kind = VN_BY_RESULT };
	vn_made        made = { 0 };
	vn_tensor      in;
	vn_status      st;

	*all = false;
	if ((n->op != VN_OP_RMS_NORM && n->op != VN_OP_LAYER_NORM) || t->site->n_span != 1)
		return VN_OK;
	const vn_value *out = &p->value[t->site->target];
	const int64_t   C = out->size[out->rank - 1], numbers = vn_shape_count(&t->site->cand.shape);
	if ((st = vn_recompute_input(t->recompute, 0, VN_FINE_WIDTH, &in, err)))
		return st;
	if (C <= 0 || numbers % C || numbers / t->site->cand.shape.dim[0] * t->site->tokens != vn_shape_count(&in.shape))
		return VN_OK;
	if (!(st = vn_made_room(t, &made, err)) && make_rows(t, n, &in, C, &made) &&
	    !(st = vn_score_numbers(t, &made.own, &made.fine, &h, err)) && vn_fits(t, &h)) {
		vn_keep(t->x, &h);
		*all = true;
	}
	vn_made_finish(&made);
	return st;
}
