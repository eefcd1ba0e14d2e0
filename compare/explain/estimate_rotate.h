/* estimate_rotate.h: what a rotation does otherwise that no constant of it expresses (rotate.h): rounded angles and tables, calls that were
 * recorded as one and count from 0. */
#ifndef VN_COMPARE_ESTIMATE_ROTATE_H
#define VN_COMPARE_ESTIMATE_ROTATE_H

#include "compare/explain/trial.h"

vn_status vn_estimate_rotate(vn_explain_trial *t, vn_error *err);

#endif
