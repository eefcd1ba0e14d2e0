/* estimate_rope.h: which positions tokens were given, and what a rotation was, read off its input and its output. */
#ifndef VN_COMPARE_ESTIMATE_ROPE_H
#define VN_COMPARE_ESTIMATE_ROPE_H

#include "compare/explain/trial.h"

/* at->node is a rotation. */
vn_status vn_estimate_rope(vn_explain_trial *t, const vn_hypothesis *at, vn_error *err);
/* at->node looks up learned positions: which row of the table each token was given. */
vn_status vn_estimate_positions(vn_explain_trial *t, const vn_hypothesis *at, vn_error *err);

#endif
