/* attend.h: attention in double, with a mistake that no constant of the operation expresses: what its mask or its softmax does otherwise. */
#ifndef VN_COMPARE_ATTEND_H
#define VN_COMPARE_ATTEND_H

#include "compare/explain/hypothesis.h"

typedef struct vn_attend {
	const vn_node *n;        /* VN_OP_ATTENTION */
	const double  *q, *k, *v; /* (S,H,K)  (S,G,K) each */
	double        *s;        /* (S): room */
	int64_t        S;
} vn_attend;

/* y: what the query at position i makes, of S keys: its context (H,K), or its scores or probabilities (H,S), by the slot of the
 * operation's output. */
void vn_attend_row(const vn_attend *a, const vn_attend_edit *edit, int64_t i, int output, double *y);
/* Numbers of a head of a row: K, or S. */
int64_t vn_attend_width(const vn_attend *a, int output);
/* The head of a row in a checkpoint of T rows: context (T,H,K), scores and probabilities (H,T,S). */
int64_t vn_attend_at(const vn_attend *a, int output, int64_t T, int64_t row, int h);

#endif
