/* estimate_positions.h: estimates by how much the rows of a table of learned positions are moved. */
#ifndef VN_COMPARE_ESTIMATE_POSITIONS_H
#define VN_COMPARE_ESTIMATE_POSITIONS_H

#include "compare/explain/trial.h"

/* at->node must look up learned positions. Estimates which row of the table each token was
 * given. */
vn_status vn_estimate_positions(vn_explain_trial *t, const vn_hypothesis *at, vn_error *err);

#endif
