/* sums.h: the sums of one run of elements, and the metrics that follow from those of a tensor. */
#pragma once

#include "compare/metrics/tokens.h"

/* The sums of one run of elements. */
typedef struct vn_sums {
	vn_squares sq;
	double     rel;
	double     max_d, max_rel, max_r, max_c, max_ulp;
	int64_t    max_block; /* start of the block that contains max_d; -1: none */
	/* positions used, positions counted in nonfinite, the first of those or -1 */
	int64_t    finite, bad, bad_at;
	int64_t    masked;
	int64_t    differing, differs_at; /* if the pair wants them; the first one or -1 */
	int64_t    nan[2], inf[2];
} vn_sums;

/* Adds b to a. */
void vn_sums_join(vn_sums *a, const vn_sums *b);
/* Computes the metrics from the sums of a whole tensor. count: ULP distances by bucket. m->at is
 * set by vn_metric_find_max: the first position of the largest difference in the block at `at`. */
void vn_sums_finish(const vn_sums *s, const vn_pair *p, const uint64_t count[VN_ULP_BUCKETS], vn_measured *m);
void vn_metric_find_max(const vn_pair *p, int64_t at, vn_measured *m);
