/* attention_internal.h: shared by the files of attention, inside libref/ops only. Built in both
 * widths (real.h).
 *
 * attention.c has the blocks, attention_softmax.c the mask and the softmax, attention_kept.c what a
 * block reads: the places of keys, and the scores.
 */
#pragma once

#include "libref/ops/ops.h"
#include "libref/ops/intermediate.h"
#include "libref/ops/roles.h"

enum { VN_ATTN_ROWS = 64 }; /* queries per block */

/* One thread's working memory. */
typedef struct REAL(vn_attn_room) {
	double *q, *s, *ctx;       /* (ROWS,K), at least (U)  (ROWS,S)  (ROWS,U) */
	double *kept[2];           /* keys (S,K) and values (S,U), of VN_ATTN_KEYS and VN_ATTN_VALUES */
	double *others;            /* (3,ROWS,S), if vn_softmax_others */
	int64_t head[2], count[2]; /* the key head that `kept` holds, and how many of its tokens; -1: none */
	int64_t bad;               /* the first value that is not all finite, which is held as 0; `count`: none */
} REAL(vn_attn_room);

/* Rounds n numbers to half if the policy does. */
static inline void vn_attn_halve(double *x, int64_t n, bool rounds)
{
	for (int64_t i = 0; rounds && i < n; i++)
		x[i] = vn_as_f16(x[i]);
}

/* Rounds rows of n numbers to the format in which the policy multiplies. Formats with a scale are
 * not for attention. */
static inline void vn_attn_narrow(double *x, int64_t rows, int64_t n, vn_role_format f)
{
	for (int64_t r = 0; f && !vn_role_has_scale(f) && r < rows; r++)
		vn_role_round(x + r * n, n, f);
}

/* Does the policy sum as ggml's flash attention does (vn_flash_row)? */
bool          REAL(vn_flashes)(const REAL(vn_attend) * a);
/* Returns the keys [0, S) (VN_ATTN_KEYS) that a query head reads, or their values (VN_ATTN_VALUES),
 * as doubles, in m->kept. Consecutive blocks of rows read the same. */
const double *REAL(vn_attn_kept)(REAL(vn_attn_room) * m, const REAL(vn_attend) * a, int of, int64_t head, int64_t S);
/* Fills m->s (rows, S) with the scores of queries [row, row + rows) against keys [0, S). */
void REAL(vn_attn_scores)(REAL(vn_attn_room) * m, const REAL(vn_attend) * a, int64_t head, int64_t row, int64_t rows,
                          int64_t S);

/* Sets the range of keys [*from, *to) within S that a query of the call sees; some of them may have
 * score minus infinity. */
void REAL(vn_visible)(const REAL(vn_attend) * a, int64_t query, int64_t S, int64_t *from, int64_t *to);
/* Turns m->s from vn_attn_scores into probabilities, in place; hidden keys get 0. */
void REAL(vn_softmax)(REAL(vn_attn_room) * m, const REAL(vn_attend) * a, int64_t head, int64_t row, int64_t rows,
                      int64_t S);
/* Computes the context (U) of one query, row r of m->s, key by key as ggml's flash attention does,
 * with float16 sums (VN_PRODUCTS_GGML_FLASH16). m->kept: the values.
 *
 *   s_j > M:   y = f16(y e^(M - s_j)), S = S e^(M - s_j), M = s_j
 *   then:      y = f16(y + v_j e^(s_j - M)), S = S + e^(s_j - M)
 *   at last:   y / S, after a sink, which has no value, was the last of the s_j */
void REAL(vn_flash_row)(real *context, REAL(vn_attn_room) * m, const REAL(vn_attend) * a, int64_t head, int64_t query,
                        int64_t r, int64_t S);
/* Does the softmax sum over rows of other queries or heads (an experiment)? */
bool REAL(vn_softmax_others)(const REAL(vn_attend) * a);

/* Returns the number of keys: the tokens, plus those that an experiment adds. */
int64_t REAL(vn_kept_keys)(const REAL(vn_attend) * a);
/* Copies to dst (K) the key of token j for a query head (of VN_ATTN_KEYS), or to dst (U)
 * its value (VN_ATTN_VALUES). */
void    REAL(vn_kept_row)(double *dst, const REAL(vn_attend) * a, int of, int64_t j, int64_t head);
