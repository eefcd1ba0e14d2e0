/* estimate_arithmetic.h: finds an operation that computes with other arithmetic than the model's:
 * sums of squares that overflow float32, a narrower format than the rest of the run, another
 * activation. */
#ifndef VN_COMPARE_ESTIMATE_ARITHMETIC_H
#define VN_COMPARE_ESTIMATE_ARITHMETIC_H

#include "compare/trial/case.h"

/* Tries the overflow of a norm: if the sum of squares of a row exceeds float32, a correct norm in
 * float32 gives 0, but the reference, which sums in double, does not. If this explains the
 * checkpoint, an earlier operation is at fault, and no other mistake needs to be tried. */
void vn_estimate_squares(vn_case *t);
/* Tries narrower formats than the run's for the operation or for its result: those that hold all of
 * the candidate's numbers exactly. */
void vn_estimate_narrow(vn_case *t);
/* Tries other activations: all of them on a few numbers, the best one on all. */
void vn_estimate_activation(vn_case *t);

#endif
