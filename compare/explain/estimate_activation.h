/* estimate_activation.h: finds an activation in the place of the right one (activation.h). */
#ifndef VN_COMPARE_ESTIMATE_ACTIVATION_H
#define VN_COMPARE_ESTIMATE_ACTIVATION_H

#include "compare/explain/trial.h"

/* Tries them all on a few numbers, and the best on all. */
vn_status vn_estimate_activation(vn_explain_trial *t, vn_error *err);

#endif
