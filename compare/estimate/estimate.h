/* estimate.h: fits parameters of operations that the catalogue does not list. One table lists
 * each parameter with its operation. */
#ifndef VN_COMPARE_ESTIMATE_H
#define VN_COMPARE_ESTIMATE_H

#include "compare/hypothesis/trial.h"

/* Tries the operations between the checkpoint and captured values: each alone, then several at
 * once. */
vn_status vn_estimate(vn_explain_trial *t, vn_error *err);

#endif
