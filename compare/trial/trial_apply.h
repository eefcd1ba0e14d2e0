/* trial_apply.h: reproduces a trial: makes the checkpoint that an engine with this
 * mistake would record. */
#pragma once

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

/* apply_computed.c: applies trials that a changed plan cannot express, by computing the numbers
 * in double from the operation's inputs: attention or a rotation with a mistake that no constant
 * describes, an activation that plans do not have, an operation in a narrower format (autocast).
 *
 * A vn_apply_ function fills *made, or leaves it empty if the trial does not apply to the
 * checkpoint.
 */

void vn_apply_attend(const vn_case *t, const vn_trial *h, vn_made *made);
/* Runs the plan's own node with the formula of a trial VN_BY_ROTATION or VN_BY_ACTIVATION,
 * more precisely than the candidate. */
void vn_apply_formula(const vn_case *t, const vn_trial *h, vn_made *made);
void vn_apply_narrow(const vn_case *t, const vn_trial *h, vn_made *made);

/* Computes the checkpoint in that format into y (as many numbers as site->cand). Sums in another
 * order may round differently, so a few numbers may differ from the candidate's by one unit in the
 * last place: y then gets the candidate's numbers there. Returns their count; -1: they are too
 * many, or differ by more, and y stays as computed; -2: the operation cannot be computed in that
 * format. */
int64_t vn_narrow_make(const vn_case *t, const vn_applied_format *edit, double *y);

/* apply_recorded.c: applies trials in which an operation read other recorded data than it
 * should: other tokens in cache slots, another state, the previous step's tensor, other rows of the
 * embedding.
 *
 * Each function fills *made, or leaves it empty if the trial does not apply to the checkpoint.
 */

/* Computes the attention of the checkpoint by plan p, with the keys and values (of 1: keys only; 2:
 * values only) of these tokens in its slots; -1: zeros. Fills made->own and made->fine. */
bool vn_run_slots(const vn_case *t, const vn_plan *p, int of, const int64_t *token, vn_made *made);
/* Exchanged blocks of the cache, too. */
void vn_apply_slots(const vn_case *t, const vn_trial *h, vn_made *made);
void vn_apply_state(const vn_case *t, const vn_trial *h, vn_made *made);
void vn_apply_step(const vn_case *t, const vn_trial *h, vn_made *made);
void vn_apply_tokens(const vn_case *t, const vn_trial *h, vn_made *made);
