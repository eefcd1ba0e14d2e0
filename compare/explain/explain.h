/* explain.h: finds which known mistake reproduces a wrong tensor.
 *
 * The faults of the catalogue (libref/plan/fault.h) that can be made at the operation of an origin,
 * or at one between it and captured values, are the trials. For each, the checkpoint is
 * computed with that fault from the candidate's own inputs, in the candidate's precision
 * (recompute.h), and compared with the candidate's numbers, as a replay compares the unmodified
 * operation (local.h). A trial explains the checkpoint if the residual is no more than a
 * correct operation leaves, its nmse is at most half that of the unmodified operation, and the
 * residual is at most a quarter of the error; a sixteenth if a parameter was fitted, since a free
 * parameter always helps, or if the error is below 16 floors.
 *
 * If several operations lie between the checkpoint and captured values, one mistake is also tried
 * at all of them at once, as engines make it: on queries and keys, in a layer, everywhere.
 *
 * If no fault of the catalogue explains it, parameters are fitted (theta, eps, scales, an offset of
 * positions, a factor), and other arrangements of the operation's result are tried. If only some
 * heads are wrong, all of this is tried on those heads. If nothing fits, the error is described in
 * words.
 *
 * An answer should hold in all steps of its point (across_steps.h). A step contradicts a trial
 * if it is right although the mistake would change it, or wrong in another way. Contradicted
 * trials come last.
 *
 * Trials that explain the checkpoint and leave less than VN_EXPLAIN_APART times the residual of
 * the best cannot be distinguished from it by these numbers: they are its aliases.
 *
 * Reads   request.options, opened.ref, opened.cand, opened.model, opened.policy, result.replayed,
 *         localised.origins and the replayed checkpoints
 * Fills   a vn_all_findings (result.why)
 */
#pragma once

#include "compare/trial/findings.h"

/* Explains c's origins. Call after vn_replay_run; needs opened.model. Call vn_findings_free
 * afterwards, also after a failure. NULL is allowed in vn_findings_free. */
vn_status                 vn_explain(const vn_opened *o, const vn_result *r, vn_all_findings **why, vn_error *err);
void                      vn_findings_free(vn_all_findings *why);
/* For vn_compare_options.explain: these functions. */
extern const vn_explainer vn_catalogue_explainer;
