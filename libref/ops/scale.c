/* scale.c: multiplies by a constant, with a soft cap or without. */
#include "libref/ops/intermediate.h"
#include "libref/ops/ops.h"

#include <math.h>

void REAL(vn_multiply)(real *y, const real *x, double scale, double cap, int rounding, int64_t n, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static)
	for (int64_t i = 0; i < n; i++) {
		const double s = scale * (double)x[i];
		const double part = cap != 0.0 ? vn_in_format(s / cap, rounding) : 0.0;
		y[i] = (real)(cap != 0.0 ? cap * vn_in_format(tanh(part), rounding) : s);
	}
}
