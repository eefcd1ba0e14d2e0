/* compare.h: compares two recordings.
 *
 * vn_compare runs the chapters of a comparison in this order, and leaves everything that a report
 * needs in a vn_comparison:
 *
 *   vn_compare_begin    contract, inputs, align, match, tensors left out of the candidate, names,
 *                       checkpoints that neither side has, few tokens, trusted digests, width
 *   vn_compare_measure  measure
 *   vn_compare_end      check digests, vacuous comparisons, pool channels, floor, pool logits and
 *                       small tensors, masks and parts of runs, judge, misshapen and overwritten
 *                       tensors, replay, judge operations, baseline, localise, origins by replay,
 *                       explain, checks of each file alone, echo, garbage, digests of all files,
 *                       checkpoints not run, unused rules, verdict
 *
 * compare.c has the same list, by function, with what each reads and fills.
 *
 * It fails closed: whatever is missing, extra, empty, misshapen, unreadable or not finite is a
 * finding, and a finding is outside the limits unless the user allowed it by name.
 *
 * Reads    request, opened
 * Fills    result; opened.plan; the floor fills opened.model and opened.policy
 * Changes  request.limits: layers, and the hit marks of its rules (limits.h); the views of the
 *          recordings (align.h)
 * Owner    recordings, limits and options are borrowed and must outlive the comparison.
 * Errors   VN_ERR_MISMATCH: not comparable; remarks.refusals has one line per reason.
 */
#pragma once

#include "compare/comparison/comparison.h"

/* Compares. c must be zeroed, with request and opened.ref, cand and floor set (vn_sides_open of
 * compare/match/sides.h). Call vn_comparison_finish afterwards, also after a failure. */
vn_status vn_compare(vn_comparison *c, vn_error *err);

/* The three parts of vn_compare, for several comparisons at once: begin runs the chapters up to the
 * match, measure measures n comparisons together (at most VN_COMPARE_TOGETHER), and end runs the
 * remaining chapters. Call no further part for a comparison that has failed. Reference tensors that
 * are the same bytes of one file are read once. st, why: (n) */
enum { VN_COMPARE_TOGETHER = 4 };
vn_status vn_compare_begin(vn_comparison *c, vn_error *err);
void      vn_compare_measure(vn_comparison *const *c, int n, vn_status *st, vn_error *why);
vn_status vn_compare_end(vn_comparison *c, vn_error *err);

/* Same as vn_compare, if one of the two recordings does not exist (vn_derive_nothing): every
 * checkpoint of the other one is missing or extra. */
vn_status vn_compare_alone(vn_comparison *c, vn_error *err);

void vn_comparison_finish(vn_comparison *c);

/* Same as vn_comparison_finish, and also closes limits and recordings. */
void vn_comparison_close(vn_comparison *c);
