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

/* Fill floor from what the floor run was measured to be. Without memory for it it is not known, and what is limited by it fails. */
void      vn_floor_set(vn_checkpoint *p, const vn_measured *m);

/* To the floor comes what another run, whose errors have nothing to do with the first one's, was measured to be. */
void      vn_floor_join(vn_checkpoint *p, const vn_measured *m);

/* Two runs' errors in this metric together. */
double    vn_floor_sum(vn_metric m, double x, double y);

/* Where products alone round more than float32 does (vn_products), no floor is less than what another order of sums in float32 leaves:
 * what comes before the first of them, or behind a weight of float32, has no other. 0: of another precision, or metric. */
double    vn_floor_of_sums(const vn_comparison *c, vn_metric m);

#endif
