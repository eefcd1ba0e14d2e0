/* chapters.h: the chapters of a comparison that no other header declares: each is a few calls.
 *
 * compare.h lists all chapters in their order; compare.c runs them.
 *
 * Reads    request, opened, result
 * Fills    opened.plan; what the functions called fill (their headers); swapped, explainer, why,
 *          verdict
 * Changes  request.limits: layers
 */
#pragma once

#include "compare/comparison/comparison.h"

/* Sets the plan, the layers of the limits, and what the result starts with. Comes first. */
void      vn_chapter_begin(vn_comparison *c);
/* Warns that one of the two recordings does not exist. */
void      vn_chapter_warn_alone(const vn_opened *o, vn_lines *warnings);
/* Checks the steps, unread content and declared precision of the files. VN_ERR_MISMATCH if a line
 * of remarks.refusals was added, here or by the contract. */
vn_status vn_chapter_check_inputs(vn_comparison *c, vn_error *err);

/* Measures the floor (floor.h), of a recording or of a run of the model. */
vn_status vn_chapter_measure_floor(vn_comparison *c, vn_error *err);
/* Judges every measured checkpoint (judge.h). */
void      vn_chapter_judge(const vn_opened *o, vn_checkpoints *all, vn_pools *pools, vn_lines *warnings);
/* Runs the explainer of the options, if there is one. */
vn_status vn_chapter_explain(vn_comparison *c, vn_error *err);

/* Counts the checkpoints of each status, and those that fail. */
void      vn_chapter_count(const vn_checkpoints *all, vn_conclusion *verdict);
/* Fails if no checkpoint was judged, as when all are missing by permission. After
 * vn_chapter_count. */
vn_status vn_chapter_require_judged(const vn_opened *o, const vn_conclusion *verdict, vn_error *err);
/* Sets verdict.within and verdict.strict. After vn_chapter_count. Comes last. */
void      vn_chapter_conclude(const vn_opened *o, const vn_lines *warnings, vn_conclusion *verdict);

/* Checks the digests of the tensors that a comparison read.
 *
 * A tensor whose numbers do not match its digest was changed after it was written. The comparison
 * is refused, unless the user allows it (--allow digest): then the report warns.
 *
 * Reads   request.options, opened.ref, opened.cand, opened.floor
 * Fills   result.digests; lines of remarks.refusals or warnings
 */

/* Checks everything read so far of the first n of reference, candidate and floor, and counts the
 * digests in result.digests. Fails with VN_ERR_MISMATCH if some are wrong and not allowed. */
vn_status vn_digests_check(const vn_opened *o, vn_verified *digests, vn_lines *refusals, int n, vn_error *err);
/* Adds a refusal for each wrong digest found so far (at most 8, then their number), and fails with
 * VN_ERR_MISMATCH. VN_OK if there is none. */
vn_status vn_digests_refuse(const vn_opened *o, vn_lines *refusals, vn_error *err);
/* Adds the same lines to remarks.warnings instead, because the user allowed them. */
void      vn_digests_warn(const vn_opened *o, vn_lines *warnings);
