/* hypothesis_apply.h: what a hypothesis makes of a checkpoint. */
#ifndef VN_COMPARE_HYPOTHESIS_APPLY_H
#define VN_COMPARE_HYPOTHESIS_APPLY_H

#include "compare/explain/trial.h"

vn_status vn_hypothesis_apply(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err);
/* Makes the plan of a hypothesis VN_BY_CONSTANTS or VN_BY_READS. VN_ERR_USAGE: a constant is out of
 * its range. */
vn_status vn_hypothesis_plan(const vn_explain_trial *t, const vn_hypothesis *h, vn_plan **plan, vn_error *err);
/* Moves h from another layer's node to this one; what it reads moves by as many layers. Returns
 * false if that does not exist. */
bool      vn_hypothesis_move(const vn_explain_trial *t, vn_hypothesis *h, int node);
/* May this input of node n have been that value: was it recorded, did it exist when n ran, does the
 * shape fit? */
bool      vn_could_read(const vn_explain_trial *t, const vn_node *n, int input, int value);

#endif
