/* baseline.h: the JSON report of an earlier comparison (specs/compare.md), against which a project
 * can require "no worse than before".
 *
 * A checkpoint outside its limits is *known* when every limit it breaks was broken
 * before and its value is no worse than then; it does not fail. Any other
 * checkpoint that is outside, missing, extra or misshapen fails.
 *
 * Reads   request.options (baseline), request.limits, the sides, and the judged checkpoints
 * Fills   since, was and best of checkpoints and their checks; result.n_since; takes fails back from known ones
 */
#ifndef VN_COMPARE_BASELINE_H
#define VN_COMPARE_BASELINE_H

#include "compare/comparison/comparison.h"

/* A broken metric may be worse by this share of itself. The limits are four times the rounding of a healthy run
 * or more, and over a thousand numbers that varies by 4.5 % from one order of sums to another: a fault's value moves
 * by a hundredth with it. Counts of positions have no such room. */
#define VN_BASELINE_ROOM 0.01

/* The facts that two comparisons must share before one can be the baseline of the other. */
enum { VN_SUBJECTS = 8, VN_SUBJECT_TEXT = 64 };
typedef struct vn_subject {
	char value[VN_SUBJECTS][VN_SUBJECT_TEXT]; /* digests and names; "" where a recording does not say */
} vn_subject;
extern const char *const vn_subject_key[VN_SUBJECTS]; /* in JSON */
vn_status vn_subject_of(const vn_comparison *c, vn_subject *s, vn_error *err);

/* Fills since, was and fails of every judged checkpoint from the report at options->baseline; nothing without one.
 * VN_ERR_MISMATCH, by name: a report of another model, prompt, precision, floor or other limits, or of checkpoints
 * that are not compared now. */
vn_status vn_baseline_apply(vn_comparison *c, vn_error *err);

const char *vn_since_text(vn_since s); /* "known", "better"... */

#endif
