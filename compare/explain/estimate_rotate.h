/* estimate_rotate.h: estimates mistakes of a rotation that no constant of it can express
 * (rotate.h): rounded angles and tables; calls, recorded as one, that each count from position
 * 0. */
#ifndef VN_COMPARE_ESTIMATE_ROTATE_H
#define VN_COMPARE_ESTIMATE_ROTATE_H

#include "compare/explain/trial.h"

vn_status vn_estimate_rotate(vn_explain_trial *t, vn_error *err);

#endif
