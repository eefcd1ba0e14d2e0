/* score.h: computes the residual of a hypothesis at a checkpoint, and decides whether the
 * hypothesis explains it.
 *
 * The residual is a local error (local.h) in floors; a correct operation leaves at most
 * VN_LOCAL_LIMIT.
 */
#ifndef VN_COMPARE_SCORE_H
#define VN_COMPARE_SCORE_H

#include "compare/hypothesis/trial.h"

/* Returns the residual in floors: limit_fraction * VN_LOCAL_LIMIT. */
double vn_hypothesis_residual(const vn_hypothesis *h);

/* Score a hypothesis: fill residual, limit_fraction and, if it affects only some heads, part.
 * limit_fraction is NaN if it changes nothing here, or makes another shape. */
vn_status vn_score(vn_explain_trial *t, vn_hypothesis *h, vn_error *err);
/* own, fine: its numbers in the candidate's shape. */
vn_status vn_score_numbers(vn_explain_trial *t, const vn_tensor *own, const vn_tensor *fine, vn_hypothesis *h,
                           vn_error *err);
/* Same, and add it to t->x unless it changes nothing. */
vn_status vn_try(vn_explain_trial *t, vn_hypothesis *h, vn_error *err);
vn_status vn_try_plan(vn_explain_trial *t, const vn_plan *plan, const vn_tensor *weights, vn_hypothesis *h,
                      vn_error *err);
/* allowed: the errors of other correct implementations, which widen the floor: for the operation's
 * own result in another order, t->reference_variants; for another choice of keys, those of
 * t->x->unmodified, since another softmax rounds differently whatever keys it sees. NULL: none. */
vn_status vn_try_numbers(vn_explain_trial *t, const vn_tensor *own, const vn_tensor *fine, const vn_replayed *allowed,
                         vn_hypothesis *h, vn_error *err);
/* Same as vn_try, for a hypothesis with a format; format points into h. TF32 and float16 have the
 * same ten bits and differ only in very small and very large numbers, so if *format is one of them,
 * both are tried, `likely` first. If TF32 does not fit, TF32 with ties rounded away from 0 is tried
 * as well. */
vn_status vn_try_format(vn_explain_trial *t, vn_hypothesis *h, vn_rounding_format *format, vn_rounding_format likely,
                        vn_error *err);
/* Fills t->x->unmodified with the residual of the unmodified operation. */
vn_status vn_score_unmodified(vn_explain_trial *t, vn_error *err);

/* Inserts h into x, sorted by limit_fraction alone; NaN comes last. */
void   vn_trial_keep(vn_explanation *x, const vn_hypothesis *h);
/* Returns the largest limit_fraction of a hypothesis that explains the checkpoint: 1, and less if
 * the error is of a few floors only, which a wrong hypothesis halves easily, too. */
double vn_explanation_limit(const vn_explanation *x);
/* Does it explain the checkpoint? */
bool   vn_trial_fits(const vn_explain_trial *t, const vn_hypothesis *h);
/* Does any hypothesis that was tried explain it? */
bool   vn_trial_answered(const vn_explain_trial *t);
/* Decides which of t->x->by explain the checkpoint, and which are aliases. */
void   vn_trial_conclude(vn_explain_trial *t);

#endif
