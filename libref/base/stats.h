/* stats.h: the statistics of a tensor's numbers, in one pass.
 *
 * Sums are in double and in a fixed order (blocks of 4096 elements, each block in eight lanes), so
 * the digits do not depend on how the data was cut into pieces, provided that each piece except the
 * last is a multiple of 4096 elements.
 */
#pragma once

#include "libref/base/dtype.h"

#define VN_STATS_BLOCK 4096

typedef struct vn_stats {
	int64_t n, nan, inf;                 /* elements; how many are NaN, infinite */
	double  min, max, mean, rms, absmax; /* of the finite ones; NaN if there are none */
} vn_stats;

/* Running sums, starting from {0}. */
typedef struct vn_stats_sum {
	int64_t n, nan, inf;
	double  min, max, sum, squares;
} vn_stats_sum;

void     vn_stats_add(vn_stats_sum *s, const void *data, vn_dtype dtype, size_t n);
/* Adds the sums of one more block, made elsewhere: the same digits as
 * vn_stats_add of its numbers. */
void     vn_stats_join(vn_stats_sum *s, const vn_stats_sum *block);
vn_stats vn_stats_finish(const vn_stats_sum *s);
vn_stats vn_stats_of(const void *data, vn_dtype dtype, size_t n);
