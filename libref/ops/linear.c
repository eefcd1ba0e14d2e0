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

/* A thread's block of a product: t tokens, and m rows of weights from m0 on. */
typedef struct product_block {
	const vn_tile_kernel *k;
	const product_room   *r;
	const vn_matrix      *w;
	int64_t               t, m0, m;
} product_block;

/* A part of the weights, at most a strip of rows. */
static void pack_strip(float *to, const product_block *b, vn_matrix_part p, vn_policy policy)
{
	const vn_matrix *w = b->w;
	const vn_dtype   stored = w->w->dtype;
	const bool       pairs = stored == VN_BF16 && p.n % 2 == 0;

	if (!w->transposed && p.m == b->k->strip && (stored == VN_F32 || pairs)) {
		const size_t row = vn_dtype_bytes(stored, (size_t)w->N);
		b->k->interleave(to, (const char *)w->w->data + (size_t)p.m0 * row + vn_dtype_bytes(stored, (size_t)p.n0), row,
		                 pairs ? p.n / 2 : p.n, pairs);
		if (policy.storage != stored)
			vn_round_f32(to, policy.storage, (size_t)(p.m * p.n));
		return;
	}
	float *converted = b->r->converted;
	vn_matrix_block_f32(converted, w, p, policy);
	memset(converted + p.m * p.n, 0, (size_t)((b->k->strip - p.m) * p.n) * sizeof *converted);
	b->k->interleave(to, converted, (size_t)p.n * sizeof *converted, p.n, false);
}

/* Rows of y[:, m0:m0+m]. */
static void multiply_rows(float *y, const float *x, const product_block *b, vn_policy policy)
{
	const int64_t N = b->w->N, strip = b->k->strip;

	for (int64_t n0 = 0; n0 < N; n0 += DEPTH) {
		const int64_t n = N - n0 < DEPTH ? N - n0 : DEPTH;
		for (int64_t j = 0; j < b->m; j += strip)
			pack_strip(b->r->packed + j * n, b,
			           (vn_matrix_part) { b->m0 + j, b->m - j < strip ? b->m - j : strip, n0, n }, policy);
		b->k->multiply(y + b->m0, b->w->M, &(vn_tile_product) { x + n0, N, b->r->packed, b->t, b->m, n, n0 > 0 });
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

		vn_matrix_block_f32(r->row, w, (vn_matrix_part) { j, 1, 0, w->N }, one);
		vn_matrix_block_f32(r->other, w, (vn_matrix_part) { j, 1, 0, w->N }, two);
		if (memcmp(r->row, r->other, (size_t)w->N * sizeof *r->row) == 0)
			continue;
		add_squares(r->row, r->other, w->N, sum);
		if (!(sum[0] <= 0x1p-40 * sum[1]))
			return false;
	}
	return true;
}

/* The same block in another policy, into `to`: groups of rows that both policies store alike are
 * copied from y. */
static void multiply_also(const vn_also_f32 *also, float *to, const float *y, const float *x, const product_block *b,
                          vn_policy policy)
{
	const int64_t M = b->w->M, end = b->m0 + b->m;

	for (int64_t j = b->m0; j < end; j += GROUP) {
		const int64_t rows = end - j < GROUP ? end - j : GROUP;
		if (!have_same_rows(b->r, b->w, j, rows, policy, also->policy))
			multiply_rows(to, x, &(product_block) { b->k, b->r, b->w, b->t, j, rows }, also->policy);
		else
			for (int64_t i = 0; i < b->t; i++)
				memcpy(to + i * M + j, y + i * M + j, (size_t)rows * sizeof *to);
	}
	add_bias(to, also->bias, b->t, b->m0, b->m, M);
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

bool vn_linear_f32(float *y, const vn_operands *f)
{
	return vn_linear_also_f32(y, f, NULL);
}

bool vn_linear_also_f32(float *y, const vn_operands *f, const vn_also_f32 *also)
{
	const vn_tile_kernel *k = vn_tile_kernel_get(0);
	const int64_t         M = f->w->M, N = f->w->N, T = f->T;
	const block_grid      g = divide_work(M, T, f->threads);
	bool                  good = true;

#pragma omp parallel num_threads(f->threads) reduction(&& : good)
	{
		product_room r;
		good = room_create(&r, N, also);
		/* A thread without memory drops its blocks but must reach the loop. */
#pragma omp for schedule(dynamic)
		for (int64_t i = 0; i < g.across * g.down; i++) {
			const int64_t block = i / g.down, t0 = i % g.down * g.tokens, t = T - t0 < g.tokens ? T - t0 : g.tokens;
			const int64_t m0 = block * g.groups / g.across * GROUP, end = (block + 1) * g.groups / g.across * GROUP;
			const product_block b = { k, &r, f->w, t, m0, (end < M ? end : M) - m0 };
			const float        *x = (const float *)f->x + t0 * N;

			if (!good)
				continue;
			multiply_rows(y + t0 * M, x, &b, f->policy);
			if (also)
				multiply_also(also, also->y + t0 * M, y + t0 * M, x, &b, f->policy);
			add_bias(y + t0 * M, f->bias, t, m0, b.m, M);
		}
		VN_FREE(r.packed, r.converted, r.row, r.other);
	}
	return good;
}
