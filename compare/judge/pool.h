/* pool.h: judges the logits of single-token steps together (vn_pool).
 *
 * Reads   opened.ref, result.point, and the measured metrics of logits
 * Fills   result.pool, n_pools; pool of each checkpoint, and rows of those with scores
 */
#ifndef VN_COMPARE_POOL_H
#define VN_COMPARE_POOL_H

#include "compare/comparison/comparison.h"

vn_status vn_pool_scores(vn_comparison *c, vn_error *err);

#endif
