/* judge.h: holds what was measured against the limits.
 *
 * Reads   request.limits, opened.policy, and of a checkpoint m, floor and its pools
 * Fills   check, n_checks, status, fails and worst of a checkpoint; outside of its pools
 */
#ifndef VN_COMPARE_JUDGE_H
#define VN_COMPARE_JUDGE_H

#include "compare/comparison/comparison.h"

/* status, checks and fails of a measured checkpoint. */
vn_status vn_judge(vn_comparison *c, vn_checkpoint *p, vn_error *err);

/* Sets the floor of a checkpoint to what was measured of the floor run. If there is no memory for it, the floor stays unknown, and
 * checks that need it fail. */
void      vn_floor_set(vn_checkpoint *p, const vn_measured *m);

/* Adds to the floor what was measured of another run, whose errors are independent of the first one's. */
void      vn_floor_join(vn_checkpoint *p, const vn_measured *m);

/* The combined error of two independent runs, in this metric. */
double    vn_floor_sum(vn_metric m, double x, double y);

/* The least floor in a precision in which only products round more than float32 does (vn_products): the error of another order
 * of summation in float32. Checkpoints before the first product, or behind a float32 weight, have no other error. 0: of another
 * precision, or metric. */
double    vn_floor_of_sums(const vn_comparison *c, vn_metric m);

#endif
