/* apply_computed.c: see apply_computed.h. */
#include "compare/trial/apply_computed.h"
#include "compare/trial/attend.h"
#include "compare/trial/apply_matrix.h"
#include "compare/trial/case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- attention ------------------------------------------------------------------------------- */

/* Attention is computed here, in double, from everything that it read. */
vn_status vn_apply_attend(const vn_case *t, const vn_trial *h, vn_made *made, vn_error *err)
{
	const vn_applied_attention *edit = &h->applied.attend;
	bool                        makes;
	vn_attend_case              a;
	vn_status                   st = vn_attend_open(&a, t, h->node, &makes, err);

	if (st || !makes)
		return st;
	const int64_t width = vn_attend_width(&a), H = a.n->c.attention.heads,
				  T = vn_shape_count(&t->site->cand.shape) / (width * H);
	double *y = malloc((size_t)(width * H) * sizeof *y + 1), *is = malloc((size_t)(width * H) * sizeof *is + 1);
	if (!y || !is)
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for attention");
	else if (vn_attend_applies(&a, edit) && !(st = vn_attend_prepare(&a, edit, err)) &&
	         !(st = vn_made_room(t, made, err))) {
		double *all = (double *)made->fine.data;
		for (int64_t row = 0; row < T; row++) {
			for (int head = 0; head < (int)H; head++)
				vn_tensor_numbers(&t->site->cand, vn_attend_at(&a, T, row, head), width, is + head * width);
			vn_attend_row(&a, edit, t->site->first + row, is, y);
			for (int head = 0; head < (int)H; head++)
				memcpy(all + vn_attend_at(&a, T, row, head), y + head * width, (size_t)width * sizeof *y);
		}
		vn_made_round(t, made);
	}
	free(y);
	free(is);
	vn_attend_close(&a);
	return st;
}

/* ---- another formula ------------------------------------------------------------------------- */

/* The node with the formula of the trial. */
static vn_status set_formula(vn_node *n, const vn_applied *by, vn_error *err)
{
	if (by->kind == VN_BY_ROTATION) {
		n->x.rope.other = by->rotate;
		return VN_OK;
	}
	return vn_const_set(n, "act", by->activation, err);
}

/* Are these the numbers of the unmodified operation? */
static bool is_unmodified(const vn_case *t, const vn_tensor *fine)
{
	return t->fine.data && fine->dtype == t->fine.dtype && vn_shape_equal(&fine->shape, &t->fine.shape) &&
	       memcmp(fine->data, t->fine.data, vn_dtype_bytes(fine->dtype, (size_t)vn_shape_count(&fine->shape))) == 0;
}

vn_status vn_apply_formula(const vn_case *t, const vn_trial *h, vn_made *made, vn_error *err)
{
	const int64_t n = vn_shape_count(&t->site->cand.shape);
	vn_error      none = { "" };
	vn_tensor     fine;
	vn_plan      *plan;
	vn_status     st;

	if (vn_case_node(t) != h->node)
		return VN_OK;
	if ((st = vn_plan_clone(t->site->plan, &plan, err)))
		return st;
	if (!(st = set_formula(&plan->node[h->node], &h->applied, &none)) &&
	    !(st = vn_recompute_run(t->recompute, plan, t->site->weights, VN_FINE_WIDTH, &fine, &none))) {
		if (!is_unmodified(t, &fine) && !(st = vn_made_room(t, made, &none))) {
			vn_tensor_numbers(&fine, 0, n, (double *)made->fine.data);
			vn_made_round(t, made);
		}
		vn_tensor_free(&fine);
	}
	vn_plan_destroy(plan);
	return vn_unless_unsupported(st, &none, err);
}

/* ---- a narrower format ----------------------------------------------------------------------- */

enum { OFF_BY_ONE_IN = 4 }; /* at most one number in 4 may differ by one last place */

/* The distance between numbers of the format near x. */
static double last_place(double x, vn_rounding_format format)
{
	int e;

	frexp(x, &e);
	return ldexp(1, format == VN_FORMAT_BF16 ? e - 8 : (e < -13 ? -13 : e) - 11);
}

/* How far two engines that sum in float32 may be apart before they round, in a sum that nearly
 * cancels: a few times the largest difference between the operation in float32 and in float64. The
 * numbers of an operation in 16 bits do not show that difference: there, a few roundings to float32
 * of the largest number. */
static double cancelled_error(const vn_case *t)
{
	enum { TIMES = 4 };
	const vn_dtype storage = t->opened->policy.storage;
	const int64_t  n = storage == VN_F64 ? 0 : vn_shape_count(&t->own.shape);
	double         most = 0;

	for (int64_t i = 0; i < n; i++) {
		const double x = vn_tensor_number(&t->own, i);
		most = fmax(most, storage == VN_F32 ? fabs(x - vn_tensor_number(&t->fine, i)) : ldexp(fabs(x), -24));
	}
	return isfinite(most) ? TIMES * most : 0;
}

/* *off as in vn_narrow_make. */
static void settle_ties(const double *is, vn_rounding_format format, int64_t n, double slack, double *y, int64_t *off)
{
	*off = 0;
	for (int64_t i = 0; i < n && *off >= 0; i++) {
		if (is[i] == y[i])
			continue;
		*off = fabs(is[i] - y[i]) <= last_place(fmax(fabs(is[i]), fabs(y[i])), format) + slack ? *off + 1 : -1;
	}
	*off = *off > n / OFF_BY_ONE_IN ? -1 : *off;
	for (int64_t i = 0; *off > 0 && i < n; i++)
		y[i] = is[i];
}

vn_status vn_narrow_make(const vn_case *t, const vn_applied_format *edit, double *y, int64_t *off, vn_error *err)
{
	const vn_tensor      *cand = &t->site->cand;
	const int64_t         n = vn_shape_count(&cand->shape);
	const vn_recompute_as as = edit->format == VN_FORMAT_BF16 ? VN_IN_BF16 : VN_IN_F16;
	vn_tensor             z = t->own;
	vn_status             st = VN_OK;

	if (edit->whole && (st = vn_recompute_run(t->recompute, t->site->plan, t->site->weights, as, &z, err)))
		return st;
	double *is = vn_case_all_doubles_of(cand);
	if (!is)
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for %lld numbers", (long long)n);
	else {
		vn_tensor_numbers(&z, 0, n, y);
		for (int64_t i = 0; i < n; i++)
			y[i] = vn_in_format(y[i], edit->format);
		settle_ties(is, edit->format, n, cancelled_error(t), y, off);
	}
	free(is);
	if (edit->whole)
		vn_tensor_free(&z);
	return st;
}

vn_status vn_apply_narrow(const vn_case *t, const vn_trial *h, vn_made *made, vn_error *err)
{
	vn_error  none = { "" };
	int64_t   off;
	vn_status st = vn_made_room(t, made, err);

	if (st)
		return st;
	if ((st = vn_narrow_make(t, &h->applied.narrow, (double *)made->own.data, &off, &none)) == VN_OK)
		memcpy((double *)made->fine.data, made->own.data, (size_t)vn_shape_count(&made->own.shape) * sizeof(double));
	else
		vn_made_finish(made);
	return vn_unless_unsupported(st, &none, err);
}
