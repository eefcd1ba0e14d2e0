/* baseline.h: uses the JSON report of an earlier comparison (specs/compare.md) as a baseline, so
 * that a project can require "no worse than before".
 *
 * A checkpoint outside its limits does not fail if the baseline broke the same limits there, and no
 * value is worse by more than VN_BASELINE_ROOM (it is *known*, or *better*). One that is missing,
 * extra or misshapen does not fail if it is so in the baseline. All others fail.
 *
 * Reads   request, opened, and the judged checkpoints with their pools
 * Fills   since, was and worst of checkpoints, best of their checks; n_since; clears `fails`
 *         of known checkpoints
 */
#pragma once

#include "compare/comparison/comparison.h"

/* A broken metric may exceed its baseline value by this fraction. Limits are at least four times
 * the rounding of a correct run; over a thousand numbers that rounding varies by 4.5 % between
 * orders of summation, which changes the value of a fault by about 1 %. Counts of positions get no
 * such tolerance. */
#define VN_BASELINE_ROOM 0.01

/* Compares every judged checkpoint with the report at options->baseline, and fills since, was and
 * fails. Does nothing without a baseline. VN_ERR_MISMATCH, with the difference in err: the report
 * is of another model, prompt, precision, floor or other limits, or has checkpoints that are not
 * compared now. */
vn_status vn_baseline_apply(const vn_opened *o, vn_checkpoints *all, vn_pools *pools, int *n_since, vn_error *err);

const char *vn_judge_since_text(vn_since s); /* "known", "better"... */
