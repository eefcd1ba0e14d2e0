/* apply_computed.h: applies trials that a changed plan cannot express, by computing the numbers
 * in double from the operation's inputs: attention or a rotation with a mistake that no constant
 * describes, an activation that plans do not have, an operation in a narrower format (autocast).
 *
 * A vn_apply_ function fills *made, or leaves it empty if the trial does not apply to the
 * checkpoint.
 */
#ifndef VN_COMPARE_APPLY_COMPUTED_H
#define VN_COMPARE_APPLY_COMPUTED_H

#include "compare/trial/case.h"

void vn_apply_attend(const vn_case *t, const vn_trial *h, vn_made *made);
/* Runs the plan's own node with the formula of a trial VN_BY_ROTATION or VN_BY_ACTIVATION,
 * more precisely than the candidate. */
void vn_apply_formula(const vn_case *t, const vn_trial *h, vn_made *made);
void vn_apply_narrow(const vn_case *t, const vn_trial *h, vn_made *made);

/* Computes the checkpoint in that format into y (as many numbers as site->cand). Sums in another
 * order may round differently, so a few numbers may differ from the candidate's by one unit in the
 * last place: y then gets the candidate's numbers there. Returns their count; -1: they are too
 * many, or differ by more, and y stays as computed; -2: the operation cannot be computed in that
 * format. */
int64_t vn_narrow_make(const vn_case *t, const vn_applied_format *edit, double *y);

#endif
