/* attention_internal.h: shared by the files of attention, inside libref/ops only. Built in both
 * widths (real.h).
 *
 * attention.c has the blocks and the products, attention_softmax.c the mask and the softmax,
 * attention_kept.c the places of keys.
 */
#ifndef VN_LIBREF_OPS_ATTENTION_INTERNAL_H
#define VN_LIBREF_OPS_ATTENTION_INTERNAL_H

#include "libref/ops/ops.h"
#include "libref/ops/intermediate.h"

enum { VN_ATTN_ROWS = 64 }; /* queries per block */

/* One thread's working memory. */
typedef struct REAL(vn_attn_room) {
	double *q, *s, *ctx;       /* (ROWS,K)  (ROWS,S)  (ROWS,K) */
	double *kept[2];           /* keys and values (S,K), of VN_ATTN_KEYS and VN_ATTN_VALUES */
	double *others;            /* (3,ROWS,S), if vn_softmax_others */
	int64_t head[2], count[2]; /* the key head that `kept` holds, and how many of its tokens; -1: none */
	int64_t bad;               /* the first value that is not all finite, which is held as 0; `count`: none */
} REAL(vn_attn_room);

/* Fills m->s (rows, S) with the scores of queries [row, row + rows) against keys [0, S). */
void REAL(vn_attn_scores)(REAL(vn_attn_room) * m, const REAL(vn_attend) * a, int64_t head, int64_t row, int64_t rows,
                          int64_t S);

/* Sets the range of keys [*from, *to) within S that a query of the call sees; some of them may have
 * score minus infinity. */
void REAL(vn_visible)(const REAL(vn_attend) * a, int64_t query, int64_t S, int64_t *from, int64_t *to);
/* Turns m->s from vn_attn_scores into probabilities, in place; hidden keys get 0. */
void REAL(vn_softmax)(REAL(vn_attn_room) * m, const REAL(vn_attend) * a, int64_t head, int64_t row, int64_t rows,
                      int64_t S);
/* Computes the context (K) of one query, row r of m->s, key by key as ggml's flash attention does,
 * with float16 sums (VN_PRODUCTS_GGML_FLASH16). m->kept: the values.
 *
 *   s_j > M:   y = f16(y e^(M - s_j)), S = S e^(M - s_j), M = s_j
 *   then:      y = f16(y + v_j e^(s_j - M)), S = S + e^(s_j - M)
 *   at last:   y / S */
void REAL(vn_flash_row)(real *context, REAL(vn_attn_room) * m, const REAL(vn_attend) * a, int64_t query, int64_t r,
                        int64_t S);
/* Does the softmax sum over rows of other queries or heads (an experiment)? */
bool REAL(vn_softmax_others)(const REAL(vn_attend) * a);

/* Returns the key head that a query head reads. */
int64_t REAL(vn_key_head)(const REAL(vn_attend) * a, int64_t head);
/* Returns the number of keys: the tokens, plus those that an experiment adds. */
int64_t REAL(vn_kept_keys)(const REAL(vn_attend) * a);
/* Does an experiment read keys at other places? */
bool    REAL(vn_kept_elsewhere)(const REAL(vn_attend) * a);
/* Copies to dst (K) the key of token j for a query head (of VN_ATTN_KEYS), or its value
 * (VN_ATTN_VALUES). */
void    REAL(vn_kept_row)(double *dst, const REAL(vn_attend) * a, int of, int64_t j, int64_t head);

#endif
