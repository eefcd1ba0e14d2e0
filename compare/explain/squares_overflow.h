/* squares_overflow.h: norms of inputs so large that the sum of their squares passes float32.
 */
#ifndef VN_COMPARE_SQUARES_OVERFLOW_H
#define VN_COMPARE_SQUARES_OVERFLOW_H

#include "compare/explain/trial.h"

/* Tries this at a norm: a correct norm in float32 makes 0 of such a row, where the reference, which adds up in double,
 * does not. If it explains the checkpoint, *all is true: what happened before is at fault, not this operation, and no
 * other mistake needs to be tried. */
vn_status vn_try_squares_overflow(vn_explain_trial *t, bool *all, vn_error *err);

#endif
