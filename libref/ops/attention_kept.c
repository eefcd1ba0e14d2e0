/* attention_kept.c: where an attention finds the key and the value of a token. */
#include "libref/ops/attention_internal.h"

#include <math.h>

#define ATTN(a) ((a)->c->attention)
#define X(a)    ((a)->x->attention)

int64_t REAL(vn_key_head)(const REAL(vn_attend) * a, int64_t head)
{
	const int H = ATTN(a).heads, G = ATTN(a).kv_heads;

	return X(a).head_map == VN_HEADS_GROUPED ? head / (H / G) : X(a).head_map == VN_HEADS_NONE ? head : head % G;
}

/* The form in which the cache holds keys or values in this call. */
static int form_of(const REAL(vn_attend) * a, int of)
{
	const bool here = !X(a).cache_of || X(a).cache_of == (of == VN_ATTN_KEYS ? 1 : 2);

	return here && !(X(a).cache_steps && a->past == 0) ? X(a).cache : VN_CACHE_USUAL;
}

bool REAL(vn_kept_elsewhere)(const REAL(vn_attend) * a)
{
	return X(a).head_map >= VN_HEADS_NONE || form_of(a, VN_ATTN_KEYS) || form_of(a, VN_ATTN_VALUES);
}

int64_t REAL(vn_kept_keys)(const REAL(vn_attend) * a)
{
	const int64_t S = a->past + a->tokens, B = X(a).cache_block;

	return form_of(a, VN_ATTN_KEYS) == VN_CACHE_SEEN ? (S + B - 1) / B * B : S;
}

/* Replaces (*j, *g) by the token and key head to read instead. A result beyond the last token means no entry. */
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
	}
}

static double narrowed(int form, double x)
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
	const int64_t G = ATTN(a).kv_heads, K = ATTN(a).head_dim, S = a->past + a->tokens;
	const real   *src = of == VN_ATTN_KEYS ? a->k : a->v;
	const int     form = form_of(a, of);
	int64_t       g = REAL(vn_key_head)(a, head);

	if (X(a).head_map == VN_HEADS_FLAT)
		j += head / G;
	redirect_key(a, form, &j, &g);
	for (int64_t d = 0; d < K; d++)
		dst[d] = j < S && g < G ? narrowed(form, (double)src[(j * G + g) * K + d]) : 0.0;
}
