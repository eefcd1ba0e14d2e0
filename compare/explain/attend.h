/* attend.h: attention in double, with a mistake that no constant of the operation expresses: what its mask or its softmax does otherwise. */
#ifndef VN_COMPARE_ATTEND_H
#define VN_COMPARE_ATTEND_H

#include "compare/explain/hypothesis.h"

typedef struct vn_attend {
	const vn_node *n;        /* VN_OP_ATTENTION */
	const double  *q, *k, *v; /* (S,H,K)  (S,G,K) each */
	double        *s;        /* (S): room */
} vn_attend;

/* y (H,K): what the query at position i gives, of keys 0 to i. */
void vn_attend_row(const vn_attend *a, const vn_attend_edit *edit, int64_t i, double *y);

#endif
