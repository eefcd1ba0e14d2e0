/* estimate_activation.c: see estimate_activation.h. */
#include "compare/explain/estimate_activation.h"
#include "compare/explain/activation.h"
#include "compare/explain/score.h"

#include <math.h>
#include <stdlib.h>

enum { ASKED = 4096 }; /* numbers that select the likely one */
#define PROMISES 0.1   /* of the error: the most that a likely one may leave */

static double square_distance(const vn_tensor *is, const double *y, const vn_tensor *own, int64_t n, int64_t stride)
{
	double dd = 0;

	for (int64_t i = 0; i < n; i++) {
		const double d = (y ? y[i] : vn_number_at(own, i * stride)) - vn_number_at(is, i * stride);
		dd += d * d;
	}
	return dd;
}

vn_status vn_estimate_activation(vn_explain_trial *t, vn_error *err)
{
	const vn_tensor *cand = &t->site->cand;
	const int64_t    all = vn_shape_count(&cand->shape), stride = 1 + all / ASKED, n = (all + stride - 1) / stride;
	vn_hypothesis    h = { .finding = VN_OTHER_ACTIVATION,
		                   .node = t->site->plan->value[t->site->target].node,
		                   .change.kind = VN_BY_ACTIVATION };
	double           least = (double)INFINITY;
	vn_error         none = { "" };
	vn_status        st = VN_OK;

	if (t->part || t->x->unmodified.local.bad || t->consumed == VN_CONSUMED_OTHERS || !vn_is_activation(t))
		return VN_OK;
	double *y = malloc((size_t)n * sizeof *y + 1);
	if (!y)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %lld numbers", (long long)n);
	for (int i = 0; !st && i < vn_n_activations(); i++) {
		if ((st = vn_activation_make(t, i, n, stride, y, &none)))
			break;
		const double left = square_distance(cand, y, NULL, n, stride);
		h.change.activation = left < least ? i : h.change.activation;
		least = fmin(left, least);
	}
	free(y);
	if (st == VN_ERR_UNSUPPORTED)
		return VN_OK;
	if (st) {
		*err = none;
		return st;
	}
	return least <= PROMISES * square_distance(cand, NULL, &t->own, n, stride) ? vn_try(t, &h, err) : VN_OK;
}
