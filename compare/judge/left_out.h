/* left_out.h: judges what a run left out of the candidate because it agreed with the reference
 * while it was recorded (`capture --against`).
 *
 * The candidate says of each such tensor what was measured, and the digest of the numbers it was
 * measured by. If these are the reference's numbers, what was measured is held against the limits
 * of this comparison, as for a checkpoint without a floor: it is VN_AGREED, or missing. The numbers
 * themselves cannot be checked, so a note says how many these are; with --strict it is a warning.
 *
 * Reads    opened.ref, opened.cand, opened.plan, request
 * Changes  status, fails and detail of missing checkpoints
 * Fills    result.n_not_run; lines of notes or warnings
 */
#ifndef VN_COMPARE_LEFT_OUT_H
#define VN_COMPARE_LEFT_OUT_H

#include "compare/comparison/comparison.h"

#include "capture/recording/left_out.h"

/* After vn_match. */
vn_status vn_judge_left_out(vn_comparison *c, vn_error *err);

/* Returns what the candidate's run left out for p (an entry of the reference): under p's name, the
 * first name of the reference's tensor, or that of the plan's value. NULL: nothing. */
const vn_left_out *vn_left_out_of(const vn_comparison *c, const vn_checkpoint *p);

/* What to do about checkpoints that were not run. */
#define VN_RECORD_WHOLE "record again without --stop-at-first"

/* A run that stopped at its first divergence has one. If nothing is outside here, what was not run
 * is missing after all. Before the checkpoints are counted. */
void vn_demand_not_run(vn_comparison *c);

/* Checks one measured checkpoint that has no floor and no candidate, against the limits. Returns
 * its worst broken limit in words in `words` (VN_WORDS), or an empty text. *p stays as it is. */
vn_status vn_judge_measured(vn_comparison *c, const vn_checkpoint *p, const vn_measured *m, bool few, char *words,
                            bool *holds, vn_error *err);

#endif
