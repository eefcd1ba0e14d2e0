/* narrow.c: see narrow.h. */
#include "compare/explain/narrow.h"
#include "compare/explain/edit_matrix.h"

#include <math.h>
#include <stdlib.h>

enum { OFF_BY_ONE_IN = 4 }; /* at most one number in 4 may be off by one last place */

/* The distance between numbers of the format near x. */
static double last_place(double x, vn_weight_format format)
{
	int e;

	frexp(x, &e);
	return ldexp(1, format == VN_FORMAT_BF16 ? e - 8 : (e < -13 ? -13 : e) - 11);
}

/* How far two engines in float32 may be apart before they round, in a sum that nearly cancels: a few times the largest
 * difference between the operation in float32 and in float64. Of an operation in 16 bits: 0. */
static double cancelled_error(const vn_explain_trial *t)
{
	enum { TIMES = 4 };
	const vn_dtype own = t->own.dtype, fine = t->fine.dtype;
	const int64_t  n = vn_shape_count(&t->own.shape);
	double         most = 0, x, y;

	for (int64_t i = 0; t->c->opened.policy.storage == VN_F32 && i < n; i++) {
		vn_to_f64(&x, (const char *)t->own.data + (size_t)i * vn_dtype_size(own), own, 1);
		vn_to_f64(&y, (const char *)t->fine.data + (size_t)i * vn_dtype_size(fine), fine, 1);
		most = fmax(most, fabs(x - y));
	}
	return isfinite(most) ? TIMES * most : 0;
}

/* *off as in vn_narrow_make. */
static void settle_ties(const double *is, vn_weight_format format, int64_t n, double slack, double *y, int64_t *off)
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

vn_status vn_narrow_make(const vn_explain_trial *t, const vn_narrow_edit *edit, double *y, int64_t *off, vn_error *err)
{
	const vn_tensor      *cand = &t->site->cand;
	const size_t          n = (size_t)vn_shape_count(&cand->shape);
	const vn_recompute_as as = edit->format == VN_FORMAT_BF16 ? VN_IN_BF16 : VN_IN_F16;
	vn_tensor             z = t->own;
	vn_status             st = VN_OK;

	if (edit->whole && (st = vn_recompute_run(t->recompute, t->site->plan, t->site->weights, as, &z, err)))
		return st;
	double *is = malloc(n * sizeof *is + 1);
	if (!is)
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for %zu numbers", n);
	else {
		vn_to_f64(is, cand->data, cand->dtype, n);
		vn_to_f64(y, z.data, z.dtype, n);
		for (size_t i = 0; i < n; i++)
			y[i] = vn_in_format(y[i], edit->format);
		settle_ties(is, edit->format, (int64_t)n, cancelled_error(t), y, off);
	}
	free(is);
	if (edit->whole)
		vn_tensor_free(&z);
	return st;
}
