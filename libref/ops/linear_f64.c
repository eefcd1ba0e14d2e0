/* linear_f64.c: products in double with stored matrices, by OpenBLAS.
 *
 * OpenBLAS with several threads splits a product by their number, and the split decides which inner
 * kernel sums an element: another number of threads gives other bits. So it runs single-threaded
 * here, on tiles that depend only on the shapes, and OpenMP distributes the tiles. Weights are
 * converted tile by tile, so that a model is never held twice.
 */
#define VN_REAL 64
#include "libref/ops/blas.h"
#include "libref/ops/ops.h"

#include <stdlib.h>

enum {
	PANEL = 4 << 20, /* approximate numbers in a thread's panel of converted weights */
	TILE_T = 512,    /* most tokens in a tile */
	TILE_M = 512,    /* most weight rows in a tile */
	LEAST_T = 128,
	LEAST_M = 256,
	WAYS = 16,  /* the tiles of a large matrix are a multiple of this, so that 16 threads finish together */
	FEWEST = 8, /* tiles, if there are enough tokens */
};

/* Weight rows in a tile: enough that packing (T + m) N numbers is small against 2 T m N operations,
 * few enough to give many threads work. */
static int64_t tile_rows(int64_t M, int64_t N)
{
	const int64_t across = ((M + TILE_M - 1) / TILE_M + WAYS - 1) / WAYS * WAYS,
				  room = PANEL / (N > 0 ? N : 1) / 64 * 64;
	int64_t m = ((M + across - 1) / across + 15) / 16 * 16;

	m = m < LEAST_M ? LEAST_M : m;
	m = m > room ? room : m;
	return m < 64 ? 64 : m;
}

/* Tokens of a tile. Each tile converts its weights, so halving the tokens doubles that work. */
static int64_t tile_tokens(int64_t across, int64_t T)
{
	int64_t t = TILE_T;

	while (t > LEAST_T && across * ((T + t - 1) / t) < FEWEST)
		t /= 2;
	return t;
}

bool vn_linear_f64(double *y, const vn_operands *f)
{
	const vn_matrix *w = f->w;
	const double    *x = f->x, *bias = f->bias;
	const int64_t    M = w->M, N = w->N, T = f->T, step = tile_rows(M, N);
	const int64_t    across = (M + step - 1) / step, most = tile_tokens(across, T), down = (T + most - 1) / most;
	/* Weights already in our format are used in place. */
	const bool       in_place = !w->transposed && w->w->dtype == VN_F64 && f->policy.storage == VN_F64 &&
	                      (size_t)w->w->data % sizeof(double) == 0;
	bool good = true;

#pragma omp parallel num_threads(f->threads) reduction(&& : good)
	{
		double *panel = in_place ? NULL : aligned_alloc(64, ((size_t)(step * N) * sizeof *panel + 63) / 64 * 64);
		good = in_place || panel;
		/* Each tile converts its own weights, a sixtieth of its work; a barrier between
		 * converting and multiplying cost more. A thread without memory drops its tiles but must
		 * reach the loop. */
#pragma omp for schedule(dynamic)
		for (int64_t i = 0; i < across * down; i++) {
			const int64_t m0 = i / down * step, t0 = i % down * most;
			const int64_t m = M - m0 < step ? M - m0 : step, t = T - t0 < most ? T - t0 : most;

			if (!good)
				continue;
			if (!in_place)
				vn_matrix_block_f64(panel, w, (vn_matrix_part) { m0, m, 0, N }, f->policy);
			const double *rows = in_place ? (const double *)w->w->data + m0 * N : panel;
			double       *out = y + t0 * M + m0;
			vn_gemm_f64((vn_gemm_size) { VN_BLAS_TRANSPOSED, (int)t, (int)m, (int)N }, 1.0, x + t0 * N, rows, out,
			            (int)M);
			for (int64_t r = 0; bias && r < t; r++)
				for (int64_t j = 0; j < m; j++)
					out[r * M + j] += bias[m0 + j];
		}
		free(panel);
	}
	return good;
}
