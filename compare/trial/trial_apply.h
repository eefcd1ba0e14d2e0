/* trial_apply.h: reproduces a trial: makes the checkpoint that an engine with this
 * mistake would record. */
#ifndef VN_COMPARE_TRIAL_APPLY_H
#define VN_COMPARE_TRIAL_APPLY_H

#include "compare/trial/case.h"

/* Fills *made with a plan and weights to run, or with numbers; leaves both out if h changes nothing
 * at this checkpoint, if its number does not fit the operation, or if it is VN_BY_CATALOGUE,
 * VN_BY_RESULT, VN_BY_CACHED or VN_BY_ONE_CACHED: the strategies that propose those also score
 * them. t: positioned at the checkpoint. Call vn_made_finish afterwards, also after a failure. */
void     vn_trial_apply(const vn_case *t, const vn_trial *h, vn_made *made);
/* Returns the plan of a trial VN_BY_CONSTANTS or VN_BY_READS. NULL: a constant is out of its
 * range. */
vn_plan *vn_trial_plan(const vn_case *t, const vn_trial *h);
/* Moves h from another layer's node to this one; what it reads moves by as many layers. Returns
 * false if that does not exist. */
bool     vn_trial_move(const vn_case *t, vn_trial *h, int node);
/* Could node n have read this value in place of its input? True if the value was recorded, existed
 * when n ran, and has the input's shape. */
bool     vn_case_could_read(const vn_case *t, const vn_node *n, int input, int value);

#endif
