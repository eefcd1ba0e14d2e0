/* estimate_arithmetic.h: finds an operation that computes with other arithmetic than the model's:
 * sums of squares that pass float32, a narrower format than the rest of the run, another
 * activation. */
#ifndef VN_COMPARE_ESTIMATE_ARITHMETIC_H
#define VN_COMPARE_ESTIMATE_ARITHMETIC_H

#include "compare/hypothesis/trial.h"

/* Norms of inputs so large that the sum of their squares passes float32: a correct norm in float32
 * makes 0 of such a row, where the reference, which adds up in double, does not. If this explains
 * the checkpoint, what happened before is at fault, not this operation, and no other mistake needs
 * to be tried. */
vn_status vn_estimate_squares(vn_explain_trial *t, vn_error *err);
/* An operation that is computed, or stored, in a narrower format than the rest of the run: tries
 * the formats to which all of the candidate's numbers belong. */
vn_status vn_estimate_narrow(vn_explain_trial *t, vn_error *err);
/* Another activation in the place of the right one: tries them all on a few numbers, and the best
 * on all. */
vn_status vn_estimate_activation(vn_explain_trial *t, vn_error *err);

#endif
