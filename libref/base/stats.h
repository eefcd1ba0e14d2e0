/* stats.h: what a tensor's numbers look like, in one pass.
 *
 * Sums are in double and in a fixed order (blocks of 4096 elements, each block
 * in eight lanes), so the digits do not depend on how the data was cut into
 * pieces, as long as each piece but the last is a multiple of 4096 elements.
 */
#ifndef VN_LIBREF_BASE_STATS_H
#define VN_LIBREF_BASE_STATS_H

#include "libref/base/dtype.h"

#define VN_STATS_BLOCK 4096

typedef struct vn_stats {
	int64_t n, nan, inf;                  /* elements; of them NaN, of them infinite */
	double  min, max, mean, rms, absmax;  /* over the finite ones; NaN when there are none */
} vn_stats;

/* Running sums; start from {0}. */
typedef struct vn_stats_sum {
	int64_t n, nan, inf;
	double  min, max, sum, squares;
} vn_stats_sum;

void     vn_stats_add(vn_stats_sum *s, const void *data, vn_dtype dtype, size_t n);
vn_stats vn_stats_finish(const vn_stats_sum *s);
vn_stats vn_stats_of(const void *data, vn_dtype dtype, size_t n);

#endif
