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
#include <string.h>

enum {
	PANEL = 4 << 20, /* approximate numbers in a thread's panel of converted weights */
	TILE_T = 512,    /* most tokens in a tile */
	TILE_M = 512,    /* most weight rows in a tile */
	LEAST_T = 128,
	LEAST_M = 256,
	WAYS = 16,  /* the tiles of a large matrix are a multiple of this, so that 16 threads finish together */
	FEWEST = 8, /* tiles, if there are enough tokens */
};

/* Weight rows in a tile: enough that packing (T + m) N numbers is small against 2 T m N operations, few enough
 * to give many threads work. */
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

/* Computes t rows of y[:, m0:m0+m], from panel rows w. */
static void multiply(real *y, const real *x, const real *w, int64_t t, int64_t m, int64_t N, int64_t M)
{
	REAL(vn_gemm)(VN_TURNED, (int)t, (int)m, (int)N, (real)1, x, (int)N, w, (int)N, y, (int)M);
}

static void add_bias(real *y, const real *bias, int64_t t, int64_t m, int64_t M)
{
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

/* Do both panels hold the same rows, but for a 200th of what rounding a sum over them to float16 does? bfloat16 differs
 * from float16 only in numbers that are very small there: of normal weights of deviation 0.003, 2e-7 of a row's
 * length (by chance twice that in some rows). */
static bool alike(const real *a, const real *b, int64_t m, int64_t N)
{
	for (int64_t j = 0; j < m; j++, a += N, b += N) {
		double apart = 0, all = 0;
		if (memcmp(a, b, (size_t)N * sizeof *a) == 0)
			continue;
		for (int64_t n = 0; n < N; n++) {
			apart += ((double)a[n] - (double)b[n]) * ((double)a[n] - (double)b[n]);
			all += (double)b[n] * (double)b[n];
		}
		if (!(apart <= 0x1p-40 * all))
			return false;
	}
	return true;
}

/* The same tile in another policy. panel: its weights in the first policy. other: room for as many. */
static void tile_also(const REAL(vn_also) * also, const real *y, const real *x, const vn_matrix *w, const real *panel,
                      real *other, int64_t t0, int64_t m0, int64_t t, int64_t m)
{
	real *to = also->y + t0 * w->M + m0;

	REAL(vn_matrix_rows)(other, w, m0, m, also->policy);
	if (alike(panel, other, m, w->N))
		for (int64_t i = 0; i < t; i++)
			memcpy(to + i * w->M, y + i * w->M, (size_t)m * sizeof *to);
	else
		multiply(to, x, other, t, m, w->N, w->M);
	add_bias(to, also->bias ? also->bias + m0 : NULL, t, m, w->M);
}

bool REAL(vn_linear)(real *y, const real *x, const vn_matrix *w, const real *bias, int64_t T, vn_policy policy,
                     int threads)
{
	return REAL(vn_linear_also)(y, x, w, bias, T, policy, NULL, threads);
}

bool REAL(vn_linear_also)(real *y, const real *x, const vn_matrix *w, const real *bias, int64_t T, vn_policy policy,
                          const REAL(vn_also) * also, int threads)
{
	const int64_t M = w->M, N = w->N, step = tile_rows(M, N);
	const int64_t across = (M + step - 1) / step, most = tile_tokens(across, T), down = (T + most - 1) / most;
	/* Weights already in our format are used in place. */
	const bool    in_place = !w->transposed && w->w->dtype == VN_REAL_DTYPE && policy.storage == VN_REAL_DTYPE &&
	                      (size_t)w->w->data % sizeof(real) == 0;
	int failed = 0;

#pragma omp parallel num_threads(threads)
	{
		real      *panel = in_place ? NULL : aligned_alloc(64, ((size_t)(step * N) * sizeof *panel + 63) / 64 * 64);
		real      *other = also ? aligned_alloc(64, ((size_t)(step * N) * sizeof *other + 63) / 64 * 64) : NULL;
		const bool ok = (in_place || panel) && (other || !also);
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
			const real *rows = in_place ? (const real *)w->w->data + m0 * N : panel;
			real       *out = y + t0 * M + m0;
			multiply(out, x + t0 * N, rows, t, m, N, M);
			if (also)
				tile_also(also, out, x + t0 * N, w, rows, other, t0, m0, t, m);
			add_bias(out, bias ? bias + m0 : NULL, t, m, M);
		}
		free(other);
		free(panel);
	}
	return !failed;
}
