/* scale.c: multiplies by a constant, with a soft cap or without. */
#include "libref/ops/ops.h"

#include <math.h>

void REAL(vn_multiply)(real *y, const real *x, const vn_consts *c, const vn_experiment *e, int64_t n, int threads)
{
	const double scale = c->scale.scale, cap = c->scale.cap;
	const int    rounding = e ? e->scale.rounding : VN_FORMAT_NONE;

#pragma omp parallel for num_threads(threads) schedule(static)
	for (int64_t i = 0; i < n; i++) {
		const double s = scale * (double)x[i];
		const double part = cap != 0.0 ? vn_in_format(s / cap, rounding) : 0.0;
		y[i] = (real)(cap != 0.0 ? cap * vn_in_format(tanh(part), rounding) : s);
	}
}
