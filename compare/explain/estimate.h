/* estimate.h: numbers of operations that no row of the catalogue has: one table of what is fitted where. */
#ifndef VN_COMPARE_ESTIMATE_H
#define VN_COMPARE_ESTIMATE_H

#include "compare/explain/trial.h"

/* At the operations between the checkpoint and what was captured: at each alone, then at several at once. */
vn_status vn_estimate(vn_explain_trial *t, vn_error *err);

#endif
