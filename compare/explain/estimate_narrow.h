/* estimate_narrow.h: finds operations that are computed, or stored, in a narrower format than the rest
 * of the run (narrow.h). */
#ifndef VN_COMPARE_ESTIMATE_NARROW_H
#define VN_COMPARE_ESTIMATE_NARROW_H

#include "compare/explain/trial.h"

/* Tries the formats to which all of the candidate's numbers belong. */
vn_status vn_estimate_narrow(vn_explain_trial *t, vn_error *err);

#endif
