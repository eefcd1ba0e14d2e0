/* floor.h: the error that the candidate's number format alone causes at each checkpoint.
 *
 * The floor is measured: a run of the reference engine in the candidate's precision, against the
 * reference. It comes from a recording of such a run (--floor), or is computed from the model
 * (vn_replay_floor_run in compare/replay/replay.h).
 *
 * Reads   request.options, opened.ref, opened.cand, opened.floor, the checkpoints
 * Fills   floor and has_floor of every measured checkpoint; where it is from; opened.policy;
 *         lines of remarks.notes, warnings and refusals
 */
#pragma once

#include "compare/comparison/comparison.h"

/* Measures the floor from opened.floor, which must be set. VN_ERR_MISMATCH: that recording is not a
 * floor for this comparison. */
vn_status vn_floor_of_file(vn_opened *o, vn_checkpoints *all, vn_pools *pools, vn_floor_result *found,
                           vn_remarks *remarks, vn_error *err);
/* Call after the floor is filled in, from either source. Raises floors to at least the error of
 * float32 sums, and warns of checkpoints without a floor. */
void      vn_floor_finish(const vn_opened *o, vn_checkpoints *all, const vn_floor_result *found, vn_lines *warnings);
