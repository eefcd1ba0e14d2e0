/* linear_wide.c: a product of floats, summed in double and rounded once.
 *
 * With few tokens a product waits for its weights in memory, and a small matrix takes no time at
 * all, so the better sum is free. It also matters most there: with few elements, the largest error
 * of one run may be twice that of another by chance, which a reference should avoid.
 */
#define VN_REAL 32
#include "libref/ops/ops.h"

#include <stdlib.h>

bool vn_linear_f64(double *y, const vn_operands *f);

enum { FEW_TOKENS = 64, SMALL_MATRIX = 1 << 16 };

bool vn_linear_is_small(const vn_matrix *w, int64_t T)
{
	return T <= FEW_TOKENS || w->M * w->N <= SMALL_MATRIX;
}

bool vn_linear_wide(float *y, const vn_operands *f)
{
	const size_t     M = (size_t)f->w->M, N = (size_t)f->w->N, rows = (size_t)f->T;
	VN_FREED double *xd = malloc((rows * N + 1) * sizeof *xd), *yd = malloc((rows * M + 1) * sizeof *yd);
	VN_FREED double *bd = malloc((M + 1) * sizeof *bd);
	bool             ok = xd && yd && bd;

	if (ok) {
		vn_to_f64(xd, f->x, VN_F32, rows * N);
		if (f->bias)
			vn_to_f64(bd, f->bias, VN_F32, M);
		ok = vn_linear_f64(yd, &(vn_operands) { xd, f->w, f->bias ? bd : NULL, f->T, f->policy, f->threads });
	}
	if (ok)
		vn_from_f64(y, VN_F32, yd, rows * M);
	return ok;
}
