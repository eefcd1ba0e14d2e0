/* estimate_rotate.h: estimates mistakes of a rotation that no constant of it can express
 * (rotate.h): rounded angles and tables; calls, recorded as one, that each count from position
 * 0; token ids for positions. */
#ifndef VN_COMPARE_ESTIMATE_ROTATE_H
#define VN_COMPARE_ESTIMATE_ROTATE_H

#include "compare/explain/trial.h"

vn_status vn_estimate_rotate(vn_explain_trial *t, vn_error *err);
/* Token ids for positions, in every call or in those after the first. Tried before an offset of
 * positions, which fits a single token as well. */
vn_status vn_estimate_rotate_by_ids(vn_explain_trial *t, vn_error *err);

#endif
