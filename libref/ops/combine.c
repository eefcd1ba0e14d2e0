/* combine.c: the weighted sum of what the experts of a token made of it. */
#include "libref/ops/ops.h"

void REAL(vn_combine)(real *y, const real *const in[2], int64_t T, int64_t D, const vn_consts *c,
                      const vn_experiment *e, int threads)
{
	const int     rounding = e ? e->combine.rounding : 0, sums = e && e->combine.sums ? rounding : 0;
	const int64_t k = c->combine.slots;

#pragma omp parallel for num_threads(threads) schedule(static)
	for (int64_t t = 0; t < T; t++) {
		const real *x = in[VN_COMBINE_X] + t * k * D, *w = in[VN_COMBINE_WEIGHTS] + t * k;
		for (int64_t d = 0; d < D; d++) {
			double sum = 0;
			for (int64_t s = 0; s < k; s++)
				sum = vn_in_format(sum + vn_in_format((double)w[s] * (double)x[s * D + d], rounding), sums);
			y[t * D + d] = (real)sum;
		}
	}
}
