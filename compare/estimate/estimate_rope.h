/* estimate_rope.h: estimates a rotation, and the positions of its tokens, from its input and
 * output. */
#ifndef VN_COMPARE_ESTIMATE_ROPE_H
#define VN_COMPARE_ESTIMATE_ROPE_H

#include "compare/trial/case.h"

/* Fits theta, the scaling, the rotated width, the pairing of columns and an offset of positions.
 * at->node must be a rotation. */
void vn_estimate_rope(vn_case *t, const vn_trial *at);
#endif
