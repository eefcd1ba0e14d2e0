/* estimate_attend.h: what a mask or a softmax does otherwise that no constant of attention expresses (attend.h): calls that were recorded as
 * one, a sink, a cap, rounding on the way. */
#ifndef VN_COMPARE_ESTIMATE_ATTEND_H
#define VN_COMPARE_ESTIMATE_ATTEND_H

#include "compare/explain/trial.h"

vn_status vn_estimate_attend(vn_explain_trial *t, vn_error *err);

#endif
