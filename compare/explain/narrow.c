/* narrow.c: see narrow.h. */
#include "compare/explain/narrow.h"
#include "compare/explain/edit_matrix.h"

#include <math.h>
#include <stdlib.h>

enum { FEW = 4 }; /* at most one number in 4 may be off by one last place */

/* The distance between numbers of the format near x. */
static double last_place(double x, vn_weight_format format)
{
	int e;

	frexp(x, &e);
	return ldexp(1, format == VN_FORMAT_BF16 ? e - 8 : (e < -13 ? -13 : e) - 11);
}

/* *off as in vn_narrow_make. */
static void settle(const double *is, vn_weight_format format, int64_t n, double *y, int64_t *off)
{
	*off = 0;
	for (int64_t i = 0; i < n && *off >= 0; i++) {
		if (is[i] == y[i])
			continue;
		*off = fabs(is[i] - y[i]) <= last_place(fmax(fabs(is[i]), fabs(y[i])), format) ? *off + 1 : -1;
	}
	*off = *off > n / FEW ? -1 : *off;
	for (int64_t i = 0; *off > 0 && i < n; i++)
		y[i] = is[i];
}

vn_status vn_narrow_make(const vn_explain_trial *t, const vn_narrow_edit *edit, double *y, int64_t *off, vn_error *err)
{
	const vn_tensor *cand = &t->site->cand;
	const size_t     n = (size_t)vn_shape_count(&cand->shape);
	const vn_recompute_as as = edit->format == VN_FORMAT_BF16 ? VN_IN_BF16 : VN_IN_F16;
	vn_tensor        z = t->own;
	vn_status        st = VN_OK;

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
		settle(is, edit->format, (int64_t)n, y, off);
	}
	free(is);
	if (edit->whole)
		vn_tensor_free(&z);
	return st;
}
