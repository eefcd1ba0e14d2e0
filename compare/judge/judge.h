/* judge.h: checks what was measured against the limits.
 *
 * Reads   request.limits and options, opened.ref, opened.cand, opened.policy; m, rows, vacuous,
 *         invalid_floor, floor and the pools of a checkpoint
 * Fills   check, n_checks, status, fails and worst of a checkpoint; `outside` of its pools; lines
 *         of remarks.warnings; for the floor, has_floor and floor (vn_judge_floor_set,
 *         vn_judge_floor_join)
 */
#pragma once

#include "compare/comparison/comparison.h"

/* Judges one measured checkpoint: fills its checks, status and fails. */
void vn_judge(const vn_opened *o, vn_checkpoints *all, vn_pools *pools, vn_lines *warnings, vn_checkpoint *p);

/* The note of a check that fails because vernier, not the candidate, gathered the shards of its
 * ranks. */
extern const char vn_not_gathered[];
/* Is that the only reason why this checkpoint is outside? */
bool              vn_judge_fails_ungathered(const vn_checkpoint *p);

/* Sets the floor of a checkpoint from a measurement of the floor run. */
void vn_judge_floor_set(vn_checkpoint *p, const vn_measured *m);

/* Adds to the floor the measured error of a second run, which is independent of the first. */
void vn_judge_floor_join(vn_checkpoint *p, const vn_measured *m);

/* Returns the combined error of two independent runs, in this metric. */
double vn_judge_floor_sum(vn_metric m, double x, double y);

/* Returns the smallest floor in a precision that rounds more than float32 only in products
 * (vn_products): the error of another order of summation in float32. Without it, the floor of
 * checkpoints before the first product, or after a float32 weight, would be 0. Returns 0 for other
 * precisions and metrics. */
double vn_judge_floor_of_sums(const vn_opened *o, vn_metric m);
