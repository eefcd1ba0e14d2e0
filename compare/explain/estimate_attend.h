/* estimate_attend.h: estimates mistakes of attention that no constant of it can express (attend.h):
 * several calls recorded as one, a sink, a cap, intermediate rounding. */
#ifndef VN_COMPARE_ESTIMATE_ATTEND_H
#define VN_COMPARE_ESTIMATE_ATTEND_H

#include "compare/explain/trial.h"

vn_status vn_estimate_attend(vn_explain_trial *t, vn_error *err);

#endif
