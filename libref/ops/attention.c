/* attention.c: attention over a cache, computed in double.
 *
 * A block is ROWS queries of one head: their scores against all keys they may see, softmax, and the
 * sum over values, with both products by dgemm. Blocks depend only on the shape and share nothing,
 * so the number of threads changes no bit. Double costs a twentieth of a layer and removes
 * attention from the reference's error: only the rounding of its inputs remains.
 */
#include "libref/ops/attention_internal.h"

#include "libref/ops/blas.h"

#include <stdlib.h>
#include <string.h>

static bool room_create(REAL(vn_attn_room) * r, const REAL(vn_attend) * a)
{
	const size_t S = (size_t)REAL(vn_kept_keys)(a), K = (size_t)a->c->attention.head_dim, rows = VN_ATTN_ROWS,
				 U = (size_t)vn_attention_value_dim(a->c);
	const size_t others = REAL(vn_softmax_others)(a) ? 3 * rows * S : 1;

	*r = (REAL(vn_attn_room)) { malloc((rows * K + U) * 8),
		                        malloc(rows * S * 8),
		                        malloc(rows * U * 8),
		                        { malloc(S * K * 8), malloc(S * U * 8) },
		                        malloc(others * 8),
		                        { -1, -1 },
		                        { 0 },
		                        0 };
	return r->q && r->kept[0] && r->kept[1] && r->s && r->ctx && r->others;
}

static void room_destroy(REAL(vn_attn_room) * r)
{
	VN_FREE(r->q, r->kept[0], r->kept[1], r->s, r->ctx, r->others);
}

/* Number of keys that the queries of these rows may see. */
static int64_t count_reached_keys(const REAL(vn_attend) * a, int64_t row, int64_t rows)
{
	int64_t S = REAL(vn_kept_keys)(a), from, to;

	if (a->x && a->x->attention.blind)
		return S;
	REAL(vn_visible)(a, row + rows - 1, S, &from, &to);
	return to > 1 ? to : 1;
}

/* The context of query r of m, at `row`, which may see a bad key: sums exactly the keys it sees,
 * with bad ones as they are. */
static void sum_visible(REAL(vn_attn_room) * m, const REAL(vn_attend) * a, int64_t head, int64_t row, int64_t r,
                        int64_t keys)
{
	const int     U = vn_attention_value_dim(a->c);
	const double *p = m->s + r * keys;
	double       *ctx = m->ctx + r * U, *v = m->q;
	int64_t       from, to;

	REAL(vn_visible)(a, row, keys, &from, &to);
	memset(ctx, 0, (size_t)U * 8);
	for (int64_t j = from; j < to; j++) {
		REAL(vn_kept_row)(v, a, VN_ATTN_VALUES, j, head);
		for (int d = 0; d < U; d++)
			ctx[d] += p[j] * v[d];
	}
}

/* The context of up to ROWS queries of one head, starting at `row`. */
static void attend_block(real *context, REAL(vn_attn_room) * m, const REAL(vn_attend) * a, int64_t head, int64_t row)
{
	const int     H = a->c->attention.heads, U = vn_attention_value_dim(a->c);
	const int64_t rows = a->tokens - row < VN_ATTN_ROWS ? a->tokens - row : VN_ATTN_ROWS,
				  keys = count_reached_keys(a, row, rows);

	REAL(vn_attn_scores)(m, a, head, row, rows, keys);
	if (REAL(vn_flashes)(a)) {
		REAL(vn_attn_kept)(m, a, VN_ATTN_VALUES, head, keys);
		for (int64_t r = 0; r < rows; r++)
			REAL(vn_flash_row)(context + ((row + r) * H + head) * U, m, a, head, row + r, r, keys);
		return;
	}
	REAL(vn_softmax)(m, a, head, row, rows, keys);
	vn_attn_halve(m->s, rows * keys, a->policy.products == VN_PRODUCTS_GGML_KV16);
	vn_attn_narrow(m->s, rows, keys, a->policy.role[VN_ROLE_PRODUCTS]);
	const double *values = REAL(vn_attn_kept)(m, a, VN_ATTN_VALUES, head, keys);
	vn_gemm_f64((vn_gemm_size) { VN_BLAS_AS_STORED, (int)rows, U, (int)keys }, 1.0, m->s, values, m->ctx, U);
	for (int64_t r = 0; m->bad < keys && r < rows; r++) {
		int64_t from, to;

		REAL(vn_visible)(a, row + r, keys, &from, &to);
		if (to > m->bad)
			sum_visible(m, a, head, row + r, r, keys);
	}
	for (int64_t r = 0; r < rows; r++)
		for (int d = 0; d < U; d++)
			context[((row + r) * H + head) * U + d] = (real)m->ctx[r * U + d];
}

bool REAL(vn_attention)(real *context, const REAL(vn_attend) * a)
{
	const int     H = a->c->attention.heads, share = H / a->c->attention.kv_heads;
	const int64_t blocks = (a->tokens + VN_ATTN_ROWS - 1) / VN_ATTN_ROWS;
	bool          good = true;

#pragma omp parallel num_threads(a->threads) reduction(&& : good)
	{
		REAL(vn_attn_room) m;
		good = room_create(&m, a);
		/* A thread without memory also takes blocks and drops them: all threads of a team must
		 * reach a shared loop. */
#pragma omp for schedule(dynamic)
		for (int64_t i = 0; i < blocks * H; i++)
			if (good)
				/* heads that share keys together; of these the longest rows first: the last blocks
				 * see the most keys */
				attend_block(context, &m, a, i / (blocks * share) * share + i % share,
				             (blocks - 1 - i / share % blocks) * VN_ATTN_ROWS);
		room_destroy(&m);
	}
	return good;
}

bool REAL(vn_attention_rows)(real *out, const REAL(vn_attend) * a, int slot, int64_t head, int64_t row, int64_t rows)
{
	const int64_t S = a->past + a->tokens;
	REAL(vn_attn_room) m;
	bool ok = room_create(&m, a);

	/* Computes the same blocks as above, so that the values shown are those used. */
	for (int64_t r = row; ok && r < row + rows;) {
		int64_t block = r / VN_ATTN_ROWS * VN_ATTN_ROWS,
				end = block + VN_ATTN_ROWS < a->tokens ? block + VN_ATTN_ROWS : a->tokens;
		int64_t stop = end < row + rows ? end : row + rows;
		int64_t keys = slot == VN_ATTN_PROBS ? count_reached_keys(a, block, end - block) : REAL(vn_kept_keys)(a);

		REAL(vn_attn_scores)(&m, a, head, block, end - block, keys);
		if (slot == VN_ATTN_PROBS)
			REAL(vn_softmax)(&m, a, head, block, end - block, keys);
		for (; r < stop; r++)
			for (int64_t j = 0; j < S; j++)
				out[(r - row) * S + j] = j < keys ? (real)m.s[(r - block) * keys + j] : (real)0;
	}
	room_destroy(&m);
	return ok;
}
