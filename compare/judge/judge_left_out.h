/* judge_left_out.h: judges what a run left out of the candidate because it agreed with the
 * reference while it was recorded (`capture --against`).
 *
 * For each such tensor, the candidate's file has the metrics that were measured, and the digest of
 * the numbers with which it was compared. If that digest is the reference's, the metrics are
 * checked against the limits of this comparison, as for a checkpoint without a floor: the tensor is
 * VN_AGREED, or missing. Its numbers cannot be checked, so a note (with --strict a warning) states
 * how many such tensors there are.
 *
 * Reads    opened.ref, opened.cand, opened.plan, request
 * Changes  status, fails, detail and not_run of missing checkpoints
 * Fills    unpaired.n_not_run; lines of notes or warnings
 */
#pragma once

#include "compare/comparison/comparison.h"

#include "capture/recording/left_out.h"

/* After vn_match. */
vn_status vn_judge_left_out(const vn_opened *o, vn_checkpoints *all, vn_unpaired *unpaired, vn_remarks *remarks,
                            vn_error *err);

/* Returns the tensor that the candidate's run left out and that belongs to p, a checkpoint of the
 * reference. Looks for p's name, the first name of the reference's tensor, and the name in the
 * plan. NULL: none. */
const vn_left_out *vn_left_out_of(const vn_opened *o, const vn_checkpoint *p);

/* Advice about checkpoints that were not run. */
#define VN_RECORD_WHOLE "record again without --stop-at-first"

/* If nothing is outside although the candidate's run stopped at a divergence, makes the checkpoints
 * that were not run count as missing. Call it before the checkpoints are counted. */
void vn_judge_demand_not_run(const vn_opened *o, vn_checkpoints *all, const vn_unpaired *unpaired);

/* Is the measurement p->m within the limits, without a floor and pools, and does some limit apply?
 * words (VN_WORDS bytes): the worst broken limit, or "". */
bool vn_judge_measured(const vn_opened *o, const vn_pools *pools, vn_lines *warnings, const vn_checkpoint *p,
                       char *words);
