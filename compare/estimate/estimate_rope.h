/* estimate_rope.h: estimates a rotation, and the positions of its tokens, from its input and
 * output. */
#ifndef VN_COMPARE_ESTIMATE_ROPE_H
#define VN_COMPARE_ESTIMATE_ROPE_H

#include "compare/hypothesis/trial.h"

/* Fits theta, the scaling, the rotated width, the pairing of columns and an offset of positions.
 * at->node must be a rotation. */
vn_status vn_estimate_rope(vn_explain_trial *t, const vn_hypothesis *at, vn_error *err);
#endif
