/* norm.c: norms. */
#include "libref/ops/ops.h"

#include <math.h>

void REAL(vn_rms_norm)(real *y, const real *x, const real *g, int64_t R, int64_t N, double eps, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static)
	for (int64_t r = 0; r < R; r++) {
		const real *xr = x + r * N;  /* (N) */
		real       *yr = y + r * N;  /* (N) */

		/* Sum in double: a float sum over N = 4096 drifts by up to 3e-6, and
		 * we would charge that to the engine under test. Four lanes, since one
		 * chain of additions waits four cycles for each. */
		double ss[4] = { 0.0, 0.0, 0.0, 0.0 };
		for (int64_t n = 0; n < N; n++)
			ss[n % 4] += (double)xr[n] * (double)xr[n];

		const double scale = 1.0 / sqrt(((ss[0] + ss[1]) + (ss[2] + ss[3])) / (double)N + eps);
		for (int64_t n = 0; n < N; n++)
			yr[n] = (real)((double)xr[n] * scale * (double)g[n]);
	}
}

void REAL(vn_layer_norm)(real *y, const real *x, const real *g, const real *bias, int64_t R, int64_t N, double eps, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static)
	for (int64_t r = 0; r < R; r++) {
		const real *xr = x + r * N;  /* (N) */
		real       *yr = y + r * N;  /* (N) */

		/* The mean first: a mean of squares less the square of a mean cancels. */
		double sum[4] = { 0.0, 0.0, 0.0, 0.0 }, ss[4] = { 0.0, 0.0, 0.0, 0.0 };
		for (int64_t n = 0; n < N; n++)
			sum[n % 4] += (double)xr[n];
		const double mean = ((sum[0] + sum[1]) + (sum[2] + sum[3])) / (double)N;
		for (int64_t n = 0; n < N; n++)
			ss[n % 4] += ((double)xr[n] - mean) * ((double)xr[n] - mean);

		const double scale = 1.0 / sqrt(((ss[0] + ss[1]) + (ss[2] + ss[3])) / (double)N + eps);
		for (int64_t n = 0; n < N; n++)
			yr[n] = (real)(((double)xr[n] - mean) * scale * (double)g[n] + (bias ? (double)bias[n] : 0.0));
	}
}
