/* gemm.h: the matrix products of a plan, as a call of BLAS (sgemm) takes them.
 *
 *   C (M,N) = alpha A (M,K) op(B)     everything row-major
 *
 * B is stored (K,N), or (N,K) if it is passed as transposed. A leading dimension is the distance
 * between two rows of an operand, in elements, where every checkpoint is stored packed. An engine
 * that leaves q, k and v in the result of one product passes the width of that result instead.
 */
#pragma once

#include "libref/plan/plan.h"

enum { VN_MAX_GEMM = 2 /* per checkpoint */, VN_GEMM_TEXT = 240 };

/* Sizes may be VN_T (tokens of the call) or VN_S (keys). */
typedef struct vn_gemm {
	const char *of; /* "linear", "scores", "context" */
	int64_t     m, n, k;
	bool        transposed; /* B */
	int64_t     lda, ldb, ldc;
	int         batch; /* calls with these sizes: one per query head; 1 */
	int         share; /* consecutive calls that read one B: query heads per key head; 1 */
	double      alpha;
} vn_gemm;

/* Writes the products that make a value to g, in the order of execution, and returns how many: of a
 * linear layer 1, of attention scores 1, of an attention's context 2, of any other value 0. The
 * plan passed vn_plan_check. */
int vn_gemms_of(const vn_plan *p, int value, vn_gemm g[VN_MAX_GEMM]);

/* Replaces VN_T and VN_S by numbers. */
vn_gemm vn_gemm_at(const vn_gemm *g, int64_t tokens, int64_t keys);

/* Estimates what share of a call's time has passed when nodes [0,i) are done, from their products:
 * share (n_nodes + 1), from 0 to 1. */
void vn_gemm_shares(const vn_plan *p, int64_t tokens, int64_t keys, double *share);

/* "M=tokens N=896 K=896 A row-major lda=896, B transposed ldb=896, ldc=896". Returns text. */
const char *vn_gemm_text(const vn_gemm *g, char text[VN_GEMM_TEXT]);
