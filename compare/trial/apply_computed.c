/* apply_computed.c: see trial_apply.h. */
#include "compare/trial/trial_apply.h"
#include "compare/trial/attend.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- attention ------------------------------------------------------------------------------- */

/* Attention is computed here, in double, from everything that it read. */
void vn_apply_attend(const vn_case *t, const vn_trial *h, vn_made *made)
{
	const vn_applied_attention *edit = &h->applied.attend;
	vn_attend_case              a;

	if (vn_attend_open(&a, t, h->node) && vn_attend_applies(&a, edit)) {
		const int64_t width = vn_attend_width(&a), H = a.n->c.attention.heads,
					  T = vn_shape_count(&t->site->cand.shape) / (width * H);
		double *y = vn_alloc((size_t)(2 * width * H), sizeof *y), *is = y + width * H;
		vn_attend_prepare(&a, edit);
		vn_made_room(t, made);
		double *all = (double *)made->fine.data;
		for (int64_t row = 0; row < T; row++) {
			for (int head = 0; head < (int)H; head++)
				vn_tensor_numbers(&t->site->cand, vn_attend_at(&a, T, row, head), width, is + head * width);
			vn_attend_row(&a, edit, t->site->first + row, is, y);
			for (int head = 0; head < (int)H; head++)
				memcpy(all + vn_attend_at(&a, T, row, head), y + head * width, (size_t)width * sizeof *y);
		}
		vn_made_round(t, made);
		free(y);
	}
	vn_attend_close(&a);
}

/* ---- another formula ------------------------------------------------------------------------- */

/* Are these the numbers of the unmodified operation? */
static bool is_unmodified(const vn_case *t, const vn_tensor *fine)
{
	return t->fine.data && fine->dtype == t->fine.dtype && vn_shape_equal(&fine->shape, &t->fine.shape) &&
	       memcmp(fine->data, t->fine.data, vn_dtype_bytes(fine->dtype, (size_t)vn_shape_count(&fine->shape))) == 0;
}

void vn_apply_formula(const vn_case *t, const vn_trial *h, vn_made *made)
{
	vn_plan  *plan = vn_case_node(t) == h->node ? vn_case_clone(t) : NULL;
	vn_tensor fine;

	if (!plan)
		return;
	if (h->applied.kind == VN_BY_ROTATION)
		plan->node[h->node].x.rope.other = h->applied.rotate;
	else
		plan->node[h->node].c.act.act = (vn_act)h->applied.activation;
	if (vn_case_run(t, plan, t->site->weights, VN_FINE_WIDTH, &fine)) {
		if (!is_unmodified(t, &fine)) {
			vn_made_room(t, made);
			vn_tensor_numbers(&fine, 0, vn_shape_count(&t->site->cand.shape), (double *)made->fine.data);
			vn_made_round(t, made);
		}
		vn_tensor_free(&fine);
	}
	vn_plan_destroy(plan);
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

/* Returns as vn_narrow_make. */
static int64_t settle_ties(const double *is, vn_rounding_format format, int64_t n, double slack, double *y)
{
	int64_t off = 0;

	for (int64_t i = 0; i < n; i++) {
		off += is[i] != y[i];
		if (is[i] != y[i] && !(fabs(is[i] - y[i]) <= last_place(fmax(fabs(is[i]), fabs(y[i])), format) + slack))
			return -1;
	}
	if (off && off <= n / OFF_BY_ONE_IN)
		memcpy(y, is, (size_t)n * sizeof *y);
	return off > n / OFF_BY_ONE_IN ? -1 : off;
}

/* Computes the operation in the format. Inputs and weights of a product are first rounded to the
 * run's, in which an engine has them. */
static bool run_narrow(const vn_case *t, vn_rounding_format format, vn_tensor *z)
{
	const int node = vn_case_node(t);

	if (t->site->plan->node[node].op != VN_OP_LINEAR)
		return vn_case_run(t, t->site->plan, t->site->weights, format == VN_FORMAT_BF16 ? VN_IN_BF16 : VN_IN_F16, z);
	vn_plan *plan = vn_case_clone(t);
	if (plan)
		plan->node[node].x.linear.format = format;
	const bool made = plan && vn_case_run(t, plan, t->site->weights, VN_OWN_WIDTH, z);
	vn_plan_destroy(plan);
	return made;
}

int64_t vn_narrow_make(const vn_case *t, const vn_applied_format *edit, double *y)
{
	const int64_t n = vn_shape_count(&t->site->cand.shape);
	vn_tensor     z = t->own;

	if (edit->whole && !run_narrow(t, edit->format, &z))
		return -2;
	double *is = vn_case_all_doubles_of(&t->site->cand);
	vn_tensor_numbers(&z, 0, n, y);
	for (int64_t i = 0; i < n; i++)
		y[i] = vn_in_format(y[i], edit->format);
	const int64_t off = settle_ties(is, edit->format, n, cancelled_error(t), y);
	free(is);
	if (edit->whole)
		vn_tensor_free(&z);
	return off;
}

void vn_apply_narrow(const vn_case *t, const vn_trial *h, vn_made *made)
{
	vn_made_room(t, made);
	if (vn_narrow_make(t, &h->applied.narrow, (double *)made->own.data) < -1)
		vn_made_finish(made);
	else
		memcpy((double *)made->fine.data, made->own.data, (size_t)vn_shape_count(&made->own.shape) * sizeof(double));
}
