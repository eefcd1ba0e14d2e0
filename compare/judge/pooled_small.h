/* pooled_small.h: steps of one token of small tensors, judged together where a multiple of the floor is limited (vn_pooled_small).
 *
 * Reads   opened.ref, result.hidden, result.point, and floors
 * Fills   result.pooled_small, n_pooled_small; pooled_small of each checkpoint
 */
#ifndef VN_COMPARE_POOLED_SMALL_H
#define VN_COMPARE_POOLED_SMALL_H

#include "compare/comparison/comparison.h"

vn_status vn_pool_small(vn_comparison *c, vn_error *err);

/* Is this metric taken over the steps of a small tensor? */
bool vn_pooled_small_has(vn_metric m);

/* The pooled steps break a limit of `floors`. Does a step of this nmse alone push the pooled error over the limit? Yes, if the
 * steps with a smaller nmse together stay inside and this one added to them does not, or if its ratio is twice the pooled one.
 * (The ratio of a single healthy step is luck, so the limit itself says nothing about one step.) */
bool vn_pooled_small_breaks_by(const vn_pooled_small *g, double nmse, double floors);

#endif
