/* score.h: what a hypothesis leaves of a checkpoint, and whether that explains it.
 *
 * What is left is a local error (local.h): in floors, of which a healthy operation leaves VN_LOCAL_LIMIT at most.
 */
#ifndef VN_COMPARE_SCORE_H
#define VN_COMPARE_SCORE_H

#include "compare/explain/trial.h"

/* Of a hypothesis whose other fields are filled in: local and limit_fraction, and part where it is made in some heads. What changes nothing
 * here, or makes another shape, leaves limit_fraction NaN. */
vn_status vn_score(vn_explain_trial *t, vn_hypothesis *h, vn_error *err);
vn_status vn_score_plan(vn_explain_trial *t, const vn_plan *plan, const vn_tensor *weights, vn_hypothesis *h, vn_error *err);
/* own, fine: of the candidate's shape. */
vn_status vn_score_numbers(vn_explain_trial *t, const vn_tensor *own, const vn_tensor *fine, vn_hypothesis *h, vn_error *err);
/* The same, and into t->x, unless it changes nothing. */
vn_status vn_try(vn_explain_trial *t, vn_hypothesis *h, vn_error *err);
vn_status vn_try_plan(vn_explain_trial *t, const vn_plan *plan, const vn_tensor *weights, vn_hypothesis *h, vn_error *err);
vn_status vn_try_numbers(vn_explain_trial *t, const vn_tensor *own, const vn_tensor *fine, vn_hypothesis *h, vn_error *err);
/* What is left of the unmodified operation, into t->x->unmodified. */
vn_status vn_score_sound(vn_explain_trial *t, vn_error *err);

/* Into x, in its place among those that leave more and less. */
void vn_keep(vn_explanation *x, const vn_hypothesis *h);
/* Does it explain the checkpoint? */
bool vn_fits(const vn_explain_trial *t, const vn_hypothesis *h);
/* Does any that was tried? */
bool vn_answered(const vn_explain_trial *t);
/* Which of t->x->by explain it, and which are aliases. */
void vn_conclude(vn_explain_trial *t);

#endif
