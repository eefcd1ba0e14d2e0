/* estimate_turned_tokens.h: estimates by which positions single tokens are rotated, where only some are at others
 * than their own.
 */
#ifndef VN_COMPARE_ESTIMATE_TURNED_TOKENS_H
#define VN_COMPARE_ESTIMATE_TURNED_TOKENS_H

#include "compare/explain/trial.h"

/* A token, or a run of tokens, with an offset, at one position, or with stretched or halved positions. */
vn_status vn_estimate_turned_tokens(vn_explain_trial *t, vn_error *err);
/* In a step of one token: a stretch of all angles, or of those after the first call. at: a rotation. */
vn_status vn_estimate_stretch_of_one(vn_explain_trial *t, const vn_hypothesis *at, vn_error *err);

#endif
