/* attention.c: attention over a cache, in double inside.
 *
 * A block is ROWS queries of one head: their scores against all keys they may
 * see, softmax, and the sum over values, the two products by dgemm. Blocks are
 * cut by shape alone and share nothing, so the number of threads changes no
 * bit. In double because it costs a twentieth of a layer and takes attention
 * out of the reference's error: what is left is the rounding of its inputs. */
#include "libref/ops/ops.h"

#include "libref/base/clones.h"
#include "libref/ops/exp.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 64 };

/* One thread's working memory. */
typedef struct room {
	double *q, *kv, *s, *ctx; /* (ROWS,K)  (S,K)  (ROWS,S)  (ROWS,K) */
} room;

static bool room_create(room *r, int64_t S, int64_t K)
{
	*r = (room){ malloc((size_t)(ROWS * K) * 8), malloc((size_t)(S * K) * 8), malloc((size_t)(ROWS * S) * 8),
	             malloc((size_t)(ROWS * K) * 8) };
	return r->q && r->kv && r->s && r->ctx;
}

static void room_destroy(room *r)
{
	free(r->q);
	free(r->kv);
	free(r->s);
	free(r->ctx);
}

/* Rows of one head out of (R, heads, K), as doubles. */
static void gather(double *dst, const real *src, int64_t rows, int64_t heads, int64_t head, int64_t K)
{
	for (int64_t r = 0; r < rows; r++)
		for (int64_t d = 0; d < K; d++)
			dst[r * K + d] = (double)src[(r * heads + head) * K + d];
}

/* The key head that a query head reads. */
static int64_t key_head(const vn_consts *c, int64_t head)
{
	const int H = c->attention.heads, G = c->attention.kv_heads;

	return c->attention.head_map == VN_HEADS_MODULO ? head % G : head / (H / G);
}

/* s (rows, S): scores of queries [row, row + rows) against keys [0, S). */
static void scores(room *m, const REAL(vn_attend) *a, int64_t head, int64_t row, int64_t rows, int64_t S)
{
	const int H = a->c->attention.heads, G = a->c->attention.kv_heads, K = a->c->attention.head_dim;

	gather(m->q, a->q + row * H * K, rows, H, head, K);
	gather(m->kv, a->k, S, G, key_head(a->c, head), K);
	cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)S, K, a->c->attention.scale, m->q, K,
	            m->kv, K, 0.0, m->s, (int)S);
}

/* The keys [*from, *to) that the mask leaves to the query at absolute position p, of S. */
static void allowed(const vn_consts *c, int64_t p, int64_t S, int64_t *from, int64_t *to)
{
	const int64_t behind = p + 1 + c->attention.ahead;

	*to = c->attention.causal && behind < S ? (behind > 0 ? behind : 0) : S;
	*from = c->attention.window && p - c->attention.window + 1 > 0 ? p - c->attention.window + 1 : 0;
}

/* The keys that it sees. */
static void visible(const vn_consts *c, int64_t p, int64_t S, int64_t *from, int64_t *to)
{
	allowed(c, p, S, from, to);
	if (c->attention.leak) {
		*from = 0;
		*to = S;
	}
}

/* In place, n >= 1 numbers, beside `padding` more that are 0. The largest and the sum in eight lanes each. */
VN_CLONES
static void softmax_row(double *s, int64_t n, int padding)
{
	enum { LANES = 8 };
	const int64_t whole = n / LANES * LANES;
	double        top[LANES], sum[LANES];

	for (int l = 0; l < LANES; l++) {
		top[l] = -INFINITY;
		sum[l] = 0.0;
	}
	for (int64_t j = 0; j < whole; j += LANES)
		for (int l = 0; l < LANES; l++)
			top[l] = s[j + l] > top[l] ? s[j + l] : top[l];
	for (int64_t j = whole; j < n; j++)
		top[0] = s[j] > top[0] ? s[j] : top[0];
	for (int l = 1; l < LANES; l++)
		top[0] = top[l] > top[0] ? top[l] : top[0];

	for (int64_t j = 0; j < n; j++)
		s[j] = vn_exp(s[j] - top[0]);
	for (int64_t j = 0; j < whole; j += LANES)
		for (int l = 0; l < LANES; l++)
			sum[l] += s[j + l];
	for (int64_t j = whole; j < n; j++)
		sum[0] += s[j];
	double total = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
	if (padding)
		total += padding * vn_exp(-top[0]);
	for (int64_t j = 0; j < n; j++)
		s[j] /= total;
}

/* In place, (rows, S); keys out of sight get probability 0. */
static void softmax(double *s, const REAL(vn_attend) *a, int64_t row, int64_t rows, int64_t S)
{
	for (int64_t r = 0; r < rows; r++, s += S) {
		int64_t from, to;

		allowed(a->c, a->past + row + r, S, &from, &to);
		if (a->c->attention.leak) {
			memset(s, 0, (size_t)from * 8);
			memset(s + to, 0, (size_t)(S - to) * 8);
		}
		visible(a->c, a->past + row + r, S, &from, &to);
		if (to > from)
			softmax_row(s + from, to - from, a->c->attention.padding);
		memset(s, 0, (size_t)from * 8);
		memset(s + to, 0, (size_t)(S - to) * 8);
	}
}

/* Keys that some query of the rows may see: none lies beyond. */
static int64_t reach(const REAL(vn_attend) *a, int64_t row, int64_t rows)
{
	int64_t S = a->past + a->tokens, from, to;

	visible(a->c, a->past + row + rows - 1, S, &from, &to);
	return to > 1 ? to : 1;
}

/* Keys whose values are not all finite, made zero. Returns the first; keys: none.
 * A later key has probability 0, but 0 times NaN is NaN: one bad token would
 * spoil all before it, and the finding would point at the wrong row. */
static int64_t hide_bad(double *v, int64_t keys, int64_t K)
{
	int64_t first = keys;
	for (int64_t j = keys - 1; j >= 0; j--) {
		double bad = 0.0;
		for (int64_t d = 0; d < K; d++)
			bad += v[j * K + d] - v[j * K + d]; /* 0 for finite numbers alone */
		if (bad == 0.0)
			continue;
		memset(v + j * K, 0, (size_t)K * 8);
		first = j;
	}
	return first;
}

/* ctx (K) of one query that may see a bad key: exactly the keys it sees, bad ones as they are. */
static void sum_visible(double *ctx, const double *p, const REAL(vn_attend) *a, int64_t head, int64_t row, int64_t keys)
{
	const int G = a->c->attention.kv_heads, K = a->c->attention.head_dim;
	int64_t   from, to;

	visible(a->c, a->past + row, keys, &from, &to);
	memset(ctx, 0, (size_t)K * 8);
	for (int64_t j = from; j < to; j++)
		for (int d = 0; d < K; d++)
			ctx[d] += p[j] * (double)a->v[(j * G + key_head(a->c, head)) * K + d];
}

/* The context of queries [row, row + ROWS) of one head, or as many as there are. */
static void block(real *context, room *m, const REAL(vn_attend) *a, int64_t head, int64_t row)
{
	const int     H = a->c->attention.heads, G = a->c->attention.kv_heads, K = a->c->attention.head_dim;
	const int64_t rows = a->tokens - row < ROWS ? a->tokens - row : ROWS, keys = reach(a, row, rows);

	scores(m, a, head, row, rows, keys);
	softmax(m->s, a, row, rows, keys);
	gather(m->kv, a->v, keys, G, key_head(a->c, head), K);
	const int64_t bad = hide_bad(m->kv, keys, K);
	cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rows, K, (int)keys, 1.0, m->s, (int)keys, m->kv, K, 0.0,
	            m->ctx, K);
	for (int64_t r = 0; bad < keys && r < rows; r++) {
		int64_t from, to;

		visible(a->c, a->past + row + r, keys, &from, &to);
		if (to > bad)
			sum_visible(m->ctx + r * K, m->s + r * keys, a, head, row + r, keys);
	}
	for (int64_t r = 0; r < rows; r++)
		for (int d = 0; d < K; d++)
			context[((row + r) * H + head) * K + d] = (real)m->ctx[r * K + d];
}

bool REAL(vn_attention)(real *context, const REAL(vn_attend) *a)
{
	const int     H = a->c->attention.heads, K = a->c->attention.head_dim;
	const int64_t S = a->past + a->tokens, blocks = (a->tokens + ROWS - 1) / ROWS;
	int           failed = 0;

#pragma omp parallel num_threads(a->threads)
	{
		room       m;
		const bool ok = room_create(&m, S, K);
		if (!ok) {
#pragma omp atomic write
			failed = 1;
		}
		/* A thread without room deals itself blocks too, and drops them: all
		 * threads of a team must come to a loop they share, or none leaves it. */
#pragma omp for schedule(dynamic)
		for (int64_t i = 0; i < blocks * H; i++)
			if (ok)
				/* longest rows first: the last blocks see the most keys */
				block(context, &m, a, i % H, (blocks - 1 - i / H) * ROWS);
		room_destroy(&m);
	}
	return !failed;
}

bool REAL(vn_attention_rows)(real *out, const REAL(vn_attend) *a, int want, int64_t head, int64_t row, int64_t rows)
{
	const int64_t S = a->past + a->tokens;
	room          m;
	bool          ok = room_create(&m, S, a->c->attention.head_dim);

	/* The same blocks as above, so that what is shown is what was used. */
	for (int64_t r = row; ok && r < row + rows; ) {
		int64_t block = r / ROWS * ROWS, end = block + ROWS < a->tokens ? block + ROWS : a->tokens;
		int64_t stop = end < row + rows ? end : row + rows;
		int64_t keys = want == VN_WANT_PROBS ? reach(a, block, end - block) : S;

		scores(&m, a, head, block, end - block, keys);
		if (want == VN_WANT_PROBS)
			softmax(m.s, a, block, end - block, keys);
		for (; r < stop; r++)
			for (int64_t j = 0; j < S; j++)
				out[(r - row) * S + j] = j < keys ? (real)m.s[(r - block) * keys + j] : (real)0;
	}
	room_destroy(&m);
	return ok;
}
