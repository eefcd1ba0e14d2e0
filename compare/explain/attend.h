/* attend.h: computes attention in double with a mistake in the mask or the softmax that no constant
 * of the operation can express. */
#ifndef VN_COMPARE_ATTEND_H
#define VN_COMPARE_ATTEND_H

#include "compare/explain/hypothesis.h"

typedef struct vn_attend {
	const vn_node *n;        /* VN_OP_ATTENTION */
	const double  *q, *k, *v; /* (S,H,K)  (S,G,K) each */
	double        *s;        /* (S): scratch */
	int64_t        S;
} vn_attend;

/* Computes row i of an output: y is the context (H,K), or the scores or probabilities (H,S), of the
 * query at position i over S keys. output: the slot of the operation's output. */
void vn_attend_row(const vn_attend *a, const vn_attend_edit *edit, int64_t i, int output, double *y);
/* Returns how many numbers a head has in a row of that output: K, or S. */
int64_t vn_attend_width(const vn_attend *a, int output);
/* Returns the index of head h of a row in a checkpoint of T rows: context is (T,H,K), scores and
 * probabilities (H,T,S). */
int64_t vn_attend_at(const vn_attend *a, int output, int64_t T, int64_t row, int h);

#endif
