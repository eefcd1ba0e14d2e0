/* attention_kept.c: what a block of attention reads: where the key and the value of a token
 * are, and the scores. */
#include "libref/ops/attention_internal.h"

#include "libref/base/clones.h"
#include "libref/base/rounding.h"
#include "libref/ops/blas.h"

#include <math.h>
#include <string.h>

#define ATTN(a) ((a)->c->attention)
#define X(a)    ((a)->x->attention)

/* The head so many before head h of n, wrapping around. */
static int64_t head_before(int64_t h, int by, int64_t n)
{
	return ((h - by) % n + n) % n;
}

static int64_t key_head(const REAL(vn_attend) * a, int of, int64_t head)
{
	const int H = ATTN(a).heads, G = ATTN(a).kv_heads;

	if (!a->x)
		return head / (H / G);
	const int     by = of == VN_ATTN_KEYS ? X(a).key_roll : X(a).value_roll;
	const int64_t g = X(a).head_map == VN_HEADS_GROUPED ? head / (H / G)
	                  : X(a).head_map == VN_HEADS_NONE  ? head
	                                                    : head % G;
	return by ? head_before(g, by, G) : g;
}

/* The form in which the cache holds keys or values in this call. */
static int form_of(const REAL(vn_attend) * a, int of)
{
	if (!a->x)
		return VN_CACHE_USUAL;
	const bool here = !X(a).cache_of || X(a).cache_of == (of == VN_ATTN_KEYS ? 1 : 2);
	return here && !(X(a).cache_steps && a->past == 0) ? X(a).cache : VN_CACHE_USUAL;
}

int64_t REAL(vn_kept_keys)(const REAL(vn_attend) * a)
{
	const int     form = form_of(a, VN_ATTN_KEYS);
	const int64_t S = a->past + a->tokens, B = form == VN_CACHE_SEEN ? X(a).cache_block : 1;

	return (S + B - 1) / B * B + (form == VN_CACHE_TWICE && a->past > 0);
}

/* Replaces (*j, *g) by the token and key head to read instead. A result beyond the last
 * token means no entry. */
static void redirect_key(const REAL(vn_attend) * a, int form, int64_t *j, int64_t *g)
{
	const int64_t S = a->past + a->tokens, B = X(a).cache_block, G = ATTN(a).kv_heads;

	switch (form) {
	case VN_CACHE_BLOCKLESS: *j += (S - 1 - *j) / B * B; break;
	case VN_CACHE_NEXT: *j += B; break;
	case VN_CACHE_PAST: *j = *j >= B ? *j - B : S; break;
	case VN_CACHE_SWAPPED: *j = (*j / B ^ 1) * B + *j % B; break;
	case VN_CACHE_HEADS_FIRST: {
		const int64_t at = *g * B + *j % B;
		*j = *j / B * B + at / G;
		*g = at % G;
		break;
	}
	case VN_CACHE_LATE: *j = *j < a->past ? *j : S; break;
	case VN_CACHE_STALE: *j = *j < a->past ? *j : a->past > 0 ? a->past - 1 : S; break;
	case VN_CACHE_RING: *j = *j + 1 < S || S < B ? *j + 1 : S - B; break;
	case VN_CACHE_FORMER: *j = *j / B < (S - 1) / B ? *j : *j % B; break;
	case VN_CACHE_SEEN: *j = *j < S ? *j : *j % B; break;
	case VN_CACHE_TWICE: *j = *j < S ? *j : a->past - 1; break;
	case VN_CACHE_HEADS_ROLLED: *g = *j < a->past ? head_before(*g, 1, G) : *g; break;
	case VN_CACHE_REVERSED: *j = *j < a->past ? a->past - 1 - *j : *j; break;
	case VN_CACHE_WHOLE_HEADS: {
		const int64_t at = *j * G + *g;
		*g = *j < a->past ? at / a->past : *g;
		*j = *j < a->past ? at % a->past : *j;
		break;
	}
	case VN_CACHE_LATER_PAST:
	case VN_CACHE_LATER_NEXT: {
		const int64_t from = form == VN_CACHE_LATER_PAST ? *j - B : *j + B;
		*j = from >= a->prompt && from < S ? from : *j < a->prompt ? *j : S;
		break;
	}
	}
}

static double narrow_number(int form, double x)
{
	if (form == VN_CACHE_F16)
		return vn_as_f16(x);
	if (form == VN_CACHE_F8)
		return (double)vn_f8_e4m3_to_f32(vn_f32_to_f8_e4m3((float)(x > 448.0 ? 448.0 : x < -448.0 ? -448.0 : x)));
	if (form == VN_CACHE_F8_WIDE)
		return (double)vn_f8_e5m2_to_f32(vn_f32_to_f8_e5m2((float)(x > 57344.0    ? 57344.0
		                                                           : x < -57344.0 ? -57344.0
		                                                                          : x)));
	return x;
}

void REAL(vn_kept_row)(double *dst, const REAL(vn_attend) * a, int of, int64_t j, int64_t head)
{
	const int64_t G = ATTN(a).kv_heads, S = a->past + a->tokens,
				  K = of == VN_ATTN_KEYS ? ATTN(a).head_dim : vn_attention_value_dim(a->c);
	const real *src = of == VN_ATTN_KEYS ? a->k : a->v;
	const int   form = form_of(a, of);
	int64_t     g = key_head(a, of, head);

	if (a->x && X(a).head_map == VN_HEADS_FLAT)
		j += head / G;
	if (form)
		redirect_key(a, form, &j, &g);
	const double  by = form == VN_CACHE_SCALED && j < a->past                 ? VN_CACHE_SCALE
	                   : form == VN_CACHE_PART_EMPTY && j < a->past && g == 0 ? 0.0
	                                                                          : 1.0;
	const int64_t roll = form == VN_CACHE_COLUMNS && j < a->past ? K / 2 : 0;
	for (int64_t d = 0; d < K; d++)
		dst[d] = j < S && g < G ? by * narrow_number(form, (double)src[(j * G + g) * K + (d + roll) % K]) : 0.0;
	if (form == VN_CACHE_INT8_HALF)
		vn_in_format_read_by(dst, K, VN_FORMAT_INT8_HALF, 127);
	const double most = form == VN_CACHE_BARE ? vn_largest(dst, K) : 0.0;
	for (int64_t d = 0; most > 0.0 && d < K; d++)
		dst[d] = vn_in_format(dst[d] / most * 127.0, VN_FORMAT_INT8);
}

/* ---- the heads of a block, as doubles ---------------------------------------------------- */

/* Copies the rows of one head out of (R, heads, K), as doubles. */
VN_CLONES
static void gather_head(double *dst, const real *src, int64_t rows, int64_t heads, int64_t head, int64_t K)
{
	for (int64_t r = 0; r < rows; r++)
		for (int64_t d = 0; d < K; d++)
			dst[r * K + d] = (double)src[(r * heads + head) * K + d];
}

/* From this many tokens on, flash attention keeps queries and sums in float32. */
enum { TILE = 64 };

bool REAL(vn_flashes)(const REAL(vn_attend) * a)
{
	return a->policy.products == VN_PRODUCTS_GGML_FLASH16 && a->tokens < TILE;
}

/* Zeroes the values of keys that are not all finite. Returns the first such key; `keys`: none. A
 * later key has probability 0, but 0 times NaN is NaN: one bad token would spoil all earlier ones,
 * and the report would point at the wrong row. */
VN_CLONES
static int64_t hide_bad(double *v, int64_t keys, int64_t K)
{
	enum { LANES = 8 };
	int64_t first = keys;
	for (int64_t j = keys - 1; j >= 0; j--) {
		double bad[LANES] = { 0 }, all = 0.0; /* 0 if all numbers are finite */
		for (int64_t d = 0; d < K / LANES * LANES; d += LANES)
			for (int l = 0; l < LANES; l++)
				bad[l] += v[j * K + d + l] - v[j * K + d + l];
		for (int64_t d = K / LANES * LANES; d < K; d++)
			all += v[j * K + d] - v[j * K + d];
		for (int l = 0; l < LANES; l++)
			all += bad[l];
		if (all == 0.0)
			continue;
		memset(v + j * K, 0, (size_t)K * 8);
		first = j;
	}
	return first;
}

const double *REAL(vn_attn_kept)(REAL(vn_attn_room) * m, const REAL(vn_attend) * a, int of, int64_t head, int64_t S)
{
	const int  i = of == VN_ATTN_VALUES, G = ATTN(a).kv_heads, K = i ? vn_attention_value_dim(a->c) : ATTN(a).head_dim;
	const bool elsewhere = a->x &&
	                       (X(a).head_map >= VN_HEADS_NONE || form_of(a, VN_ATTN_KEYS) || form_of(a, VN_ATTN_VALUES));
	const int64_t g = key_head(a, of, head);
	double       *dst = m->kept[i];

	if (!elsewhere && m->head[i] == g && m->count[i] >= S)
		return dst;
	if (!elsewhere)
		gather_head(dst, i ? a->v : a->k, S, G, g, K);
	else
		for (int64_t j = 0; j < S; j++)
			REAL(vn_kept_row)(dst + j * K, a, of, j, head);
	vn_attn_halve(dst, S * K, a->policy.products >= VN_PRODUCTS_GGML_KV16);
	vn_attn_narrow(dst, S, K, a->policy.role[VN_ROLE_PRODUCTS]);
	if (i && !REAL(vn_flashes)(a))
		m->bad = hide_bad(dst, S, K);
	m->head[i] = elsewhere ? -1 : g;
	m->count[i] = S;
	return dst;
}

void REAL(vn_attn_scores)(REAL(vn_attn_room) * m, const REAL(vn_attend) * a, int64_t head, int64_t row, int64_t rows,
                          int64_t S)
{
	const int H = a->c->attention.heads, K = a->c->attention.head_dim;
	const int rounding = a->x ? X(a).rounding : VN_FORMAT_NONE,
			  first = a->x && X(a).form == VN_ATTN_SCORES_F16 ? VN_FORMAT_F16 : rounding;
	const double scale = a->c->attention.scale, cap = a->c->attention.cap;

	gather_head(m->q, a->q + row * H * K, rows, H, a->x ? head_before(head, X(a).query_roll, H) : head, K);
	vn_attn_halve(m->q, rows * K, a->policy.products == VN_PRODUCTS_GGML_KV16 || REAL(vn_flashes)(a));
	vn_attn_narrow(m->q, rows, K, a->policy.role[VN_ROLE_PRODUCTS]);
	/* ggml multiplies blocks by blocks */
	for (int64_t r = 0; a->policy.products && vn_role_in_blocks(a->policy.role[VN_ROLE_CACHE]) && r < rows; r++)
		vn_role_round(m->q + r * K, K, a->policy.role[VN_ROLE_CACHE]);
	const double *keys = REAL(vn_attn_kept)(m, a, VN_ATTN_KEYS, head, S);
	vn_gemm_f64((vn_gemm_size) { VN_BLAS_TRANSPOSED, (int)rows, (int)S, K }, first ? 1.0 : scale, m->q, keys, m->s,
	            (int)S);
	for (int64_t i = 0; first && i < rows * S; i++)
		m->s[i] = vn_in_format(vn_in_format(m->s[i], first) * scale, rounding);
	for (int64_t i = 0; cap != 0.0 && i < rows * S; i++)
		m->s[i] = vn_in_format(cap * vn_in_format(tanh(vn_in_format(m->s[i] / cap, rounding)), rounding), rounding);
}
