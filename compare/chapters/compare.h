/* compare.h: one recording judged by another.
 *
 * vn_compare runs the chapters of a comparison in order (contract, align, match, measure, floor, judge, localise, replay,
 * explain) and leaves everything a report needs in a vn_comparison. It fails closed: whatever is missing, extra, empty,
 * misshapen, unreadable or not finite is a finding, and a finding is outside the limits unless a person allowed it by name.
 *
 * Reads    request, opened
 * Fills    result; opened.plan, and through the floor opened.model and opened.policy
 * Owner    recordings, limits and options are borrowed and must outlive the comparison.
 * Errors   VN_ERR_MISMATCH: not comparable; `refusals` says why, a line each.
 */
#ifndef VN_COMPARE_COMPARE_H
#define VN_COMPARE_COMPARE_H

#include "compare/comparison/comparison.h"

/* Opens the three files as opened.ref, cand and, unless NULL, floor. */
vn_status vn_comparison_open(vn_comparison *c, const char *ref, const char *cand, const char *floor, vn_error *err);

/* c: zeroed, with request and the three recordings of opened set. Call vn_comparison_finish
 * afterwards, also after a failure. */
vn_status vn_compare(vn_comparison *c, vn_error *err);

/* The same where one of the two is nothing (vn_derive_nothing): all that the other holds is missing, or extra. */
vn_status vn_compare_alone(vn_comparison *c, vn_error *err);

void      vn_comparison_finish(vn_comparison *c);

/* The same, and limits and recordings are closed. */
void      vn_comparison_close(vn_comparison *c);

#endif
