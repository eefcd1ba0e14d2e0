/* estimate_rotate.h: estimates mistakes of a rotation that no constant of it can express
 * (vn_rotate_rows): rounded angles and tables; calls, recorded as one, that each count from
 * position 0; token ids for positions; single tokens at other positions than their own. */
#ifndef VN_COMPARE_ESTIMATE_ROTATE_H
#define VN_COMPARE_ESTIMATE_ROTATE_H

#include "compare/hypothesis/trial.h"

vn_status vn_estimate_rotate(vn_explain_trial *t, vn_error *err);
/* Token ids for positions, in every call or in those after the first. Tried before an offset of
 * positions, which fits a single token as well. */
vn_status vn_estimate_rotate_by_ids(vn_explain_trial *t, vn_error *err);
/* A token, or a run of tokens, with an offset, at one position, or with stretched or halved
 * positions. */
vn_status vn_estimate_turned_tokens(vn_explain_trial *t, vn_error *err);
/* In a step of one token: a stretch of all angles, or of those after the first call. at: a
 * rotation. */
vn_status vn_estimate_stretch_of_one(vn_explain_trial *t, const vn_hypothesis *at, vn_error *err);

#endif
