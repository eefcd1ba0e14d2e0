/* linear_acc16.c: a product whose running sum is float16.
 *
 * As in an engine that accumulates in float16: every term is added to the sum and the sum is
 * rounded, one term after the other. BLAS cannot do this. Sixteen outputs are summed side by side,
 * which changes none of them.
 */
#define VN_REAL 32
#include "libref/ops/ops.h"

#include <stdlib.h>

enum { LANES = 16 };

/* Computes y[0..LANES) of one token. wt (N, LANES): transposed weights of these outputs. */
static void compute_sums(float *y, const float *x, const float *wt, int64_t N)
{
	float sum[LANES] = { 0 };
	for (int64_t n = 0; n < N; n++) {
		for (int j = 0; j < LANES; j++) /* the product of two halves is exact in float */
			sum[j] += x[n] * wt[n * LANES + j];
		vn_round_f32(sum, VN_F16, LANES);
	}
	for (int j = 0; j < LANES; j++)
		y[j] = sum[j];
}

bool vn_linear_acc16(float *y, const vn_operands *f)
{
	const float    *x = f->x, *bias = f->bias;
	const vn_policy half = { .storage = VN_F16, .sums = VN_F16 };
	const int64_t   M = f->w->M, N = f->w->N;
	bool            good = true;

#pragma omp parallel num_threads(f->threads) reduction(&& : good)
	{
		float *rows = malloc((size_t)(N * LANES) * sizeof *rows), *wt = malloc((size_t)(N * LANES) * sizeof *wt);
		good = rows && wt;
		/* A thread without memory drops its outputs but must reach the loop. */
#pragma omp for schedule(dynamic)
		for (int64_t m0 = 0; m0 < M; m0 += LANES) {
			const int64_t lanes = M - m0 < LANES ? M - m0 : LANES;
			float         out[LANES];

			if (!good)
				continue;
			vn_matrix_block_f32(rows, f->w, (vn_matrix_part) { m0, lanes, 0, N }, half);
			for (int64_t j = 0; j < LANES; j++)
				for (int64_t n = 0; n < N; n++)
					wt[n * LANES + j] = j < lanes ? rows[j * N + n] : 0.0f;
			for (int64_t t = 0; t < f->T; t++) {
				compute_sums(out, x + t * N, wt, N);
				for (int64_t j = 0; j < lanes; j++)
					y[t * M + m0 + j] = bias ? out[j] + bias[m0 + j] : out[j];
			}
		}
		VN_FREE(rows, wt);
	}
	return good;
}
