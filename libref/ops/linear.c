/* linear.c: products with stored matrices, by OpenBLAS.
 *
 * OpenBLAS with several threads cuts a product by their number, and where the
 * cuts fall decides which inner kernel sums an element: other bits for another
 * number of threads. So it runs single-threaded here, on tiles that depend on
 * the shapes alone, and OpenMP deals the tiles out. Weights are converted in
 * panels that every thread helps to fill, so that a model is never held twice. */
#include "libref/ops/ops.h"

#include <cblas.h>
#include <stdlib.h>

#if VN_REAL == 64
#define GEMM cblas_dgemm
#else
#define GEMM cblas_sgemm
#endif

enum {
	PANEL = 8 << 20, /* numbers in a panel of converted weights, at the most */
	TILE_T = 512,    /* tokens of a tile */
};

/* Rows of the weight in a tile: enough that packing (T + m) n numbers is little
 * beside 2 T m n operations, few enough that two threads both have work. */
static int64_t tile_rows(int64_t M)
{
	int64_t m = (M / 2 + 63) / 64 * 64;
	return m < 64 ? 64 : m > 512 ? 512 : m;
}

/* One tile: y[:, m0:m0+m] of tokens [t0, t0+t). */
static void tile(real *y, const real *x, const real *w, const real *bias, int64_t t, int64_t m, int64_t N, int64_t M)
{
	GEMM(CblasRowMajor, CblasNoTrans, CblasTrans, (int)t, (int)m, (int)N, (real)1, x, (int)N, w, (int)N, (real)0, y, (int)M);
	if (bias)
		for (int64_t i = 0; i < t; i++)
			for (int64_t j = 0; j < m; j++)
				y[i * M + j] += bias[j];
}

static void convert_row(real *dst, const vn_tensor *w, int64_t row, int64_t N, vn_policy policy)
{
	REAL(vn_load)(dst, (const char *)w->data + (size_t)(row * N) * vn_dtype_size(w->dtype), w->dtype, policy.storage, (size_t)N);
}

bool REAL(vn_linear)(real *y, const real *x, const vn_tensor *w, const real *bias, int64_t T, vn_policy policy, int threads)
{
	const int64_t M = w->shape.dim[0], N = w->shape.dim[1], step = tile_rows(M);
	/* Weights that are already what we compute in are used where they lie. */
	const bool    in_place = w->dtype == VN_REAL_DTYPE && policy.storage == VN_REAL_DTYPE &&
	                         (size_t)w->data % sizeof(real) == 0;
	int64_t       span = PANEL / (N > 0 ? N : 1) / step * step; /* rows of a panel */
	real         *panel = NULL;

	span = span < step ? step : span > M ? (M + step - 1) / step * step : span;
	if (in_place)
		span = (M + step - 1) / step * step;
	else if (!(panel = aligned_alloc(64, ((size_t)(span * N) * sizeof *panel + 63) / 64 * 64)))
		return false;

#pragma omp parallel num_threads(threads)
	for (int64_t m0 = 0; m0 < M; m0 += span) {
		const int64_t here = M - m0 < span ? M - m0 : span;
		const real   *p = in_place ? (const real *)w->data + m0 * N : panel;
		const int64_t across = (here + step - 1) / step, down = (T + TILE_T - 1) / TILE_T;

		if (!in_place) {
#pragma omp for schedule(static)
			for (int64_t r = 0; r < here; r++)
				convert_row(panel + r * N, w, m0 + r, N, policy);
		}
#pragma omp for schedule(dynamic)
		for (int64_t i = 0; i < across * down; i++) {
			const int64_t a = i / down * step, t0 = i % down * TILE_T;
			const int64_t m = here - a < step ? here - a : step, t = T - t0 < TILE_T ? T - t0 : TILE_T;
			tile(y + t0 * M + m0 + a, x + t0 * N, p + a * N, bias ? bias + m0 + a : NULL, t, m, N, M);
		}
	}
	free(panel);
	return true;
}
