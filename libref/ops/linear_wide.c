/* linear_wide.c: a product of floats, summed in double and rounded once.
 *
 * With few tokens a product waits for its weights in memory, and a small matrix takes no time at
 * all, so the better sum is free. It also matters most there: with few elements, the largest error
 * of one run may be twice that of another by chance, which a reference should avoid.
 */
#define VN_REAL 32
#include "libref/ops/ops.h"

#include <stdlib.h>

bool vn_linear_f64(double *y, const double *x, const vn_matrix *w, const double *bias, int64_t T, vn_policy policy,
                   int threads);

enum { FEW_TOKENS = 64, SMALL_MATRIX = 1 << 16 };

bool vn_linear_is_small(const vn_matrix *w, int64_t T)
{
	return T <= FEW_TOKENS || w->M * w->N <= SMALL_MATRIX;
}

bool vn_linear_wide(float *y, const float *x, const vn_matrix *w, const float *bias, int64_t T, vn_policy policy,
                    int threads)
{
	const size_t M = (size_t)w->M, N = (size_t)w->N, rows = (size_t)T;
	double      *xd = malloc((rows * N + 1) * sizeof *xd), *yd = malloc((rows * M + 1) * sizeof *yd);
	double      *bd = malloc((M + 1) * sizeof *bd);
	bool         ok = xd && yd && bd;

	if (ok) {
		vn_to_f64(xd, x, VN_F32, rows * N);
		if (bias)
			vn_to_f64(bd, bias, VN_F32, M);
		ok = vn_linear_f64(yd, xd, w, bias ? bd : NULL, T, policy, threads);
	}
	if (ok)
		vn_from_f64(y, VN_F32, yd, rows * M);
	free(xd);
	free(yd);
	free(bd);
	return ok;
}
