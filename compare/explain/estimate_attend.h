/* estimate_attend.h: estimates mistakes of attention that no constant of it can express (attend.h):
 * several calls recorded as one, a sink, a cap, intermediate rounding. */
#ifndef VN_COMPARE_ESTIMATE_ATTEND_H
#define VN_COMPARE_ESTIMATE_ATTEND_H

#include "compare/explain/trial.h"

/* Tries the simplest ways in which a query sees fewer keys: the one with the largest score; the first; its own; those
 * of the first call. A few queries cannot tell them from a scale or a window, which is fitted only if these fail. */
vn_status vn_estimate_seen_keys(vn_explain_trial *t, vn_error *err);
vn_status vn_estimate_attend(vn_explain_trial *t, vn_error *err);

#endif
