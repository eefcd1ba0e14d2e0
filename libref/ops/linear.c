/* linear.c: products with stored matrices, by OpenBLAS.
 *
 * OpenBLAS with several threads splits a product by their number, and the split decides which inner
 * kernel sums an element: another number of threads gives other bits. So it runs single-threaded
 * here, on tiles that depend only on the shapes, and OpenMP distributes the tiles. Weights are
 * converted tile by tile, so that a model is never held twice.
 */
#include "libref/ops/blas.h"
#include "libref/ops/ops.h"

#include <stdlib.h>

enum {
	PANEL = 4 << 20, /* approximate numbers in a thread's panel of converted weights */
	TILE_T = 512,    /* most tokens in a tile */
	TILE_M = 512,    /* most weight rows in a tile */
	LEAST_T = 128,
	LEAST_M = 256,
	WAYS = 16,       /* the tiles of a large matrix are a multiple of this, so that 16 threads finish together */
	FEWEST = 8,      /* tiles, if there are enough tokens */
};

/* Weight rows in a tile: enough that packing (T + m) N numbers is small against 2 T m N operations, few enough
 * to give many threads work. */
static int64_t tile_rows(int64_t M, int64_t N)
{
	const int64_t across = ((M + TILE_M - 1) / TILE_M + WAYS - 1) / WAYS * WAYS,
				  room = PANEL / (N > 0 ? N : 1) / 64 * 64;
	int64_t       m = ((M + across - 1) / across + 15) / 16 * 16;

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

/* Computes y[:, m0:m0+m] for tokens [t0, t0+t). */
static void tile(real *y, const real *x, const real *w, const real *bias, int64_t t, int64_t m, int64_t N, int64_t M)
{
	REAL(vn_gemm)(VN_TURNED, (int)t, (int)m, (int)N, (real)1, x, (int)N, w, (int)N, y, (int)M);
	if (bias)
		for (int64_t i = 0; i < t; i++)
			for (int64_t j = 0; j < m; j++)
				y[i * M + j] += bias[j];
}

/* Transposes a block of rows of a matrix stored as (N,M), writing lines of 16 numbers so that no cache line is
 * written twice. */
static void turn_over(real *dst, const vn_matrix *a, int64_t m0, int64_t m, vn_policy policy)
{
	enum { LINES = 16, COLUMNS = 64 };
	const size_t size = vn_dtype_size(a->w->dtype);
	real         part[LINES * COLUMNS];

	for (int64_t n0 = 0; n0 < a->N; n0 += LINES)
		for (int64_t c0 = 0; c0 < m; c0 += COLUMNS) {
			const int64_t lines = a->N - n0 < LINES ? a->N - n0 : LINES, columns = m - c0 < COLUMNS ? m - c0 : COLUMNS;
			for (int64_t n = 0; n < lines; n++) {
				const void *row = (const char *)a->w->data + (size_t)((n0 + n) * a->M + m0 + c0) * size;
				REAL(vn_load)(part + n * COLUMNS, row, a->w->dtype, policy.storage, (size_t)columns);
			}
			for (int64_t c = 0; c < columns; c++)
				for (int64_t n = 0; n < lines; n++)
					dst[(c0 + c) * a->N + n0 + n] = part[n * COLUMNS + c];
		}
}

void REAL(vn_matrix_rows)(real *dst, const vn_matrix *a, int64_t m0, int64_t m, vn_policy policy)
{
	if (a->transposed)
		turn_over(dst, a, m0, m, policy);
	else
		REAL(vn_load)
		(dst, (const char *)a->w->data + vn_dtype_bytes(a->w->dtype, (size_t)(m0 * a->N)), a->w->dtype, policy.storage,
		 (size_t)(m * a->N));
}

bool REAL(vn_linear)(real *y, const real *x, const vn_matrix *w, const real *bias, int64_t T, vn_policy policy,
                     int threads)
{
	const int64_t M = w->M, N = w->N, step = tile_rows(M, N);
	const int64_t across = (M + step - 1) / step, most = tile_tokens(across, T), down = (T + most - 1) / most;
	/* Weights already in our format are used in place. */
	const bool    in_place = !w->transposed && w->w->dtype == VN_REAL_DTYPE && policy.storage == VN_REAL_DTYPE &&
	                         (size_t)w->w->data % sizeof(real) == 0;
	int           failed = 0;

#pragma omp parallel num_threads(threads)
	{
		real      *panel = in_place ? NULL : aligned_alloc(64, ((size_t)(step * N) * sizeof *panel + 63) / 64 * 64);
		const bool ok = in_place || panel;
		if (!ok) {
#pragma omp atomic write
			failed = 1;
		}
		/* Each tile converts its own weights, a sixtieth of its work; a barrier between converting and
		 * multiplying cost more. A thread without memory drops its tiles but must reach the loop. */
#pragma omp for schedule(dynamic)
		for (int64_t i = 0; i < across * down; i++) {
			const int64_t m0 = i / down * step, t0 = i % down * most;
			const int64_t m = M - m0 < step ? M - m0 : step, t = T - t0 < most ? T - t0 : most;

			if (!ok)
				continue;
			if (!in_place)
				REAL(vn_matrix_rows)(panel, w, m0, m, policy);
			tile(y + t0 * M + m0, x + t0 * N, in_place ? (const real *)w->w->data + m0 * N : panel,
			     bias ? bias + m0 : NULL, t, m, N, M);
		}
		free(panel);
	}
	return !failed;
}
