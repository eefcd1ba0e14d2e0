/* linear.c: products in float32 with stored matrices, by the loops of tile.h.
 *
 * Threads divide the rows of weights among them, and convert weights block by block where they
 * multiply them, so that a model is never held twice. Bits do not depend on blocks (tile.h), so
 * blocks may depend on the number of threads.
 */
#include "libref/ops/ops.h"
#include "libref/ops/tile.h"

#include "libref/base/clones.h"

#include <stdlib.h>
#include <string.h>

enum {
	GROUP = VN_MOST_STRIP, /* rows of weights in a unit of work */
	DEPTH = 1024,          /* inputs of a block: whole blocks of quantised weights */
	BLOCK = 1024 << 10,    /* most bytes of interleaved weights, in the second cache with the tokens that meet them */
	SPARE = 8 * VN_MOST_STRIP, /* numbers behind them, which loops fetch and do not use */
	LEAST_T = 128,             /* fewest tokens of a block, which converts its own weights */
};

/* One thread's working memory. */
typedef struct product_room {
	float *packed;      /* strips of DEPTH inputs */
	float *converted;   /* a strip before it is interleaved */
	float *row, *other; /* (N) each: rows of weights in two policies */
} product_room;

static float *allocate_floats(int64_t n)
{
	return aligned_alloc(64, ((size_t)n * sizeof(float) + 63) / 64 * 64);
}

static bool room_create(product_room *r, int64_t N, bool two)
{
	*r = (product_room) { allocate_floats(BLOCK / 4 + SPARE), allocate_floats(VN_MOST_STRIP * DEPTH),
		                  two ? allocate_floats(N) : NULL, two ? allocate_floats(N) : NULL };
	return r->packed && r->converted && (!two || (r->row && r->other));
}

static void room_destroy(product_room *r)
{
	free(r->packed);
	free(r->converted);
	free(r->row);
	free(r->other);
}

/* Inputs [n0, n0 + n) of weight rows [m0, m0 + m), at most a strip. */
static void pack_strip(float *to, const vn_tile_kernel *k, float *converted, const vn_matrix *w, int64_t m0, int64_t m,
                       int64_t n0, int64_t n, vn_policy policy)
{
	const vn_dtype stored = w->w->dtype;
	const bool     pairs = stored == VN_BF16 && n % 2 == 0;

	if (!w->transposed && m == k->strip && (stored == VN_F32 || pairs)) {
		const size_t row = vn_dtype_bytes(stored, (size_t)w->N);
		k->interleave(to, (const char *)w->w->data + (size_t)m0 * row + vn_dtype_bytes(stored, (size_t)n0), row,
		              pairs ? n / 2 : n, pairs);
		if (policy.storage != stored)
			vn_round_f32(to, policy.storage, (size_t)(m * n));
		return;
	}
	vn_matrix_block_f32(converted, w, m0, m, n0, n, policy);
	memset(converted + m * n, 0, (size_t)((k->strip - m) * n) * sizeof *converted);
	k->interleave(to, converted, (size_t)n * sizeof *converted, n, false);
}

/* t rows of y[:, m0:m0+m]. */
static void multiply_rows(float *y, const float *x, const vn_tile_kernel *k, const product_room *r, const vn_matrix *w,
                          int64_t t, int64_t m0, int64_t m, vn_policy policy)
{
	for (int64_t n0 = 0; n0 < w->N; n0 += DEPTH) {
		const int64_t n = w->N - n0 < DEPTH ? w->N - n0 : DEPTH;
		for (int64_t j = 0; j < m; j += k->strip)
			pack_strip(r->packed + j * n, k, r->converted, w, m0 + j, m - j < k->strip ? m - j : k->strip, n0, n,
			           policy);
		k->multiply(y + m0, w->M, x + n0, w->N, r->packed, t, m, n, n0 > 0);
	}
}

static void add_bias(float *y, const float *bias, int64_t t, int64_t m0, int64_t m, int64_t M)
{
	for (int64_t i = 0; bias && i < t; i++)
		for (int64_t j = m0; j < m0 + m; j++)
			y[i * M + j] += bias[j];
}

/* sum[0] = (a-b).(a-b), sum[1] = b.b, in lanes. */
VN_CLONES
static void add_squares(const float *a, const float *b, int64_t n, double sum[2])
{
	enum { LANES = 16 };
	double        apart[LANES] = { 0 }, all[LANES] = { 0 };
	const int64_t whole = n / LANES * LANES;

	for (int64_t i = 0; i < whole; i += LANES)
		for (int l = 0; l < LANES; l++) {
			const double y = (double)b[i + l], d = (double)a[i + l] - y;
			apart[l] += d * d;
			all[l] += y * y;
		}
	for (int64_t i = whole; i < n; i++) {
		const double y = (double)b[i], d = (double)a[i] - y;
		apart[i - whole] += d * d;
		all[i - whole] += y * y;
	}
	sum[0] = sum[1] = 0;
	for (int l = 0; l < LANES; l++) {
		sum[0] += apart[l];
		sum[1] += all[l];
	}
}

/* Do both policies hold the same rows, up to a 200th of the error of rounding a sum over them to
 * float16? bfloat16 differs from float16 only in numbers that are very small there: of normal
 * weights of deviation 0.003, 2e-7 of a row's length (by chance twice that in some rows). */
static bool have_same_rows(const product_room *r, const vn_matrix *w, int64_t m0, int64_t m, vn_policy one,
                           vn_policy two)
{
	for (int64_t j = m0; j < m0 + m; j++) {
		double sum[2];

		vn_matrix_block_f32(r->row, w, j, 1, 0, w->N, one);
		vn_matrix_block_f32(r->other, w, j, 1, 0, w->N, two);
		if (memcmp(r->row, r->other, (size_t)w->N * sizeof *r->row) == 0)
			continue;
		add_squares(r->row, r->other, w->N, sum);
		if (!(sum[0] <= 0x1p-40 * sum[1]))
			return false;
	}
	return true;
}

/* The same block in another policy: groups of rows that both policies store alike
 * are copied from y. */
static void multiply_also(const vn_also_f32 *also, const float *y, const float *x, const vn_tile_kernel *k,
                          const product_room *r, const vn_matrix *w, int64_t t0, int64_t t, int64_t m0, int64_t m,
                          vn_policy policy)
{
	float *to = also->y + t0 * w->M;

	for (int64_t j = m0; j < m0 + m; j += GROUP) {
		const int64_t rows = m0 + m - j < GROUP ? m0 + m - j : GROUP;
		if (!have_same_rows(r, w, j, rows, policy, also->policy))
			multiply_rows(to, x, k, r, w, t, j, rows, also->policy);
		else
			for (int64_t i = 0; i < t; i++)
				memcpy(to + i * w->M + j, y + i * w->M + j, (size_t)rows * sizeof *to);
	}
	add_bias(to, also->bias, t, m0, m, w->M);
}

/* Blocks of a product: groups of rows of weights, and tokens. */
typedef struct block_grid {
	int64_t groups, across; /* in all, and blocks of them */
	int64_t tokens, down;   /* of a block, and blocks of them */
} block_grid;

static block_grid divide_work(int64_t M, int64_t T, int threads)
{
	const int64_t groups = (M + GROUP - 1) / GROUP, most = (int64_t)threads * (BLOCK / (GROUP * DEPTH * 4));
	/* equal shares for all threads, if there are enough groups */
	const int64_t equal = (groups + most - 1) / most * threads;
	block_grid    g = { groups, equal < groups ? equal : groups, T, 1 };

	while (g.across * g.down < threads && g.tokens >= 2 * LEAST_T) {
		g.down *= 2;
		g.tokens = (T + g.down - 1) / g.down;
	}
	return g;
}

bool vn_linear_f32(float *y, const float *x, const vn_matrix *w, const float *bias, int64_t T, vn_policy policy,
                   int threads)
{
	return vn_linear_also_f32(y, x, w, bias, T, policy, NULL, threads);
}

bool vn_linear_also_f32(float *y, const float *x, const vn_matrix *w, const float *bias, int64_t T, vn_policy policy,
                        const vn_also_f32 *also, int threads)
{
	const vn_tile_kernel *k = vn_tile_kernel_get(0);
	const int64_t         M = w->M, N = w->N;
	const block_grid      g = divide_work(M, T, threads);
	bool                  good = true;

#pragma omp parallel num_threads(threads) reduction(&& : good)
	{
		product_room r;
		good = room_create(&r, N, also);
		/* A thread without memory drops its blocks but must reach the loop. */
#pragma omp for schedule(dynamic)
		for (int64_t i = 0; i < g.across * g.down; i++) {
			const int64_t block = i / g.down, t0 = i % g.down * g.tokens, t = T - t0 < g.tokens ? T - t0 : g.tokens;
			const int64_t m0 = block * g.groups / g.across * GROUP, end = (block + 1) * g.groups / g.across * GROUP;
			const int64_t m = (end < M ? end : M) - m0;

			if (!good)
				continue;
			multiply_rows(y + t0 * M, x + t0 * N, k, &r, w, t, m0, m, policy);
			if (also)
				multiply_also(also, y + t0 * M, x + t0 * N, k, &r, w, t0, t, m0, m, policy);
			add_bias(y + t0 * M, bias, t, m0, m, M);
		}
		room_destroy(&r);
	}
	return good;
}
