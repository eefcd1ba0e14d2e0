/* attention_internal.h: what the files of attention share.
 *
 * Inside libref/ops only, built in both widths (real.h). attention.c has the blocks and the
 * products, attention_softmax.c who sees whom and the softmax, attention_kept.c where a key lies.
 */
#ifndef VN_LIBREF_OPS_ATTENTION_INTERNAL_H
#define VN_LIBREF_OPS_ATTENTION_INTERNAL_H

#include "libref/ops/ops.h"
#include "libref/ops/steps.h"

enum { VN_ATTN_ROWS = 64 }; /* queries of a block */

/* One thread's working memory. */
typedef struct REAL(vn_attn_room) {
	double *q, *kv, *s, *ctx; /* (ROWS,K)  (S,K)  (ROWS,S)  (ROWS,K) */
	double *others;           /* (3,ROWS,S) when vn_softmax_others */
} REAL(vn_attn_room);

/* m->s (rows, S): scores of queries [row, row + rows) against keys [0, S). */
void REAL(vn_attn_scores)(REAL(vn_attn_room) *m, const REAL(vn_attend) *a, int64_t head, int64_t row, int64_t rows, int64_t S);

/* The keys [*from, *to) of S that a query of the call sees; some of them may have score minus infinity. */
void REAL(vn_visible)(const REAL(vn_attend) *a, int64_t query, int64_t S, int64_t *from, int64_t *to);
/* m->s of vn_attn_scores, in place; keys out of sight get probability 0. */
void REAL(vn_softmax)(REAL(vn_attn_room) *m, const REAL(vn_attend) *a, int64_t head, int64_t row, int64_t rows, int64_t S);
/* Key after key as ggml's flash attention has it: the context (K) of a query, row r of m->s, whose sums are halves (VN_PRODUCTS_GGML_FLASH16).
 *   s_j > M:  y = f16(y e^(M - s_j))   S = S e^(M - s_j)   M = s_j        y = f16(y + v_j e^(s_j - M))   S = S + e^(s_j - M)
 * and y / S at last. m->kv: the values. */
void REAL(vn_flash_row)(real *context, REAL(vn_attn_room) *m, const REAL(vn_attend) *a, int64_t query, int64_t r, int64_t S);
/* Its sums go over other rows than a query's own. */
bool REAL(vn_softmax_others)(const REAL(vn_attend) *a);

/* The key head that a query head reads. */
int64_t REAL(vn_key_head)(const REAL(vn_attend) *a, int64_t head);
/* Keys there are: the tokens, and what an experiment sees behind them. */
int64_t REAL(vn_kept_keys)(const REAL(vn_attend) *a);
/* An experiment reads them where they do not lie. */
bool REAL(vn_kept_elsewhere)(const REAL(vn_attend) *a);
/* dst (K): the key of token j for a query head (of: VN_ATTN_KEYS), or its value (VN_ATTN_VALUES). */
void REAL(vn_kept_row)(double *dst, const REAL(vn_attend) *a, int of, int64_t j, int64_t head);

#endif
