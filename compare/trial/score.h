/* score.h: computes the residual of a trial at a checkpoint, and decides whether the
 * trial explains it.
 *
 * The residual is a local error (local.h) in floors; a correct operation leaves at most
 * VN_LOCAL_LIMIT.
 */
#pragma once

#include "compare/trial/case.h"

/* Returns the residual in floors: limit_fraction * VN_LOCAL_LIMIT. */
double vn_trial_residual(const vn_trial *h);

/* Score a trial: fill residual, limit_fraction and, if it affects only some heads, part.
 * limit_fraction is NaN if it changes nothing here, or makes another shape. */
void vn_score(vn_case *t, vn_trial *h);
/* own, fine: its numbers in the candidate's shape. */
void vn_score_numbers(vn_case *t, const vn_tensor *own, const vn_tensor *fine, vn_trial *h);
/* Same, and add it to t->x unless it changes nothing. */
void vn_try(vn_case *t, vn_trial *h);
void vn_try_plan(vn_case *t, const vn_plan *plan, const vn_tensor *weights, vn_trial *h);
/* allowed: the errors of other correct implementations, which widen the floor: for the operation's
 * own result in another order, t->reference_variants; for another choice of keys, those of
 * t->x->unmodified, since another softmax rounds differently whatever keys it sees. NULL: none. */
void vn_try_numbers(vn_case *t, const vn_tensor *own, const vn_tensor *fine, const vn_replayed *allowed, vn_trial *h);
/* Same as vn_try, for a trial with a format; format points into h. TF32 and float16 have the
 * same ten bits and differ only in very small and very large numbers, so if *format is one of them,
 * both are tried, `likely` first. If TF32 does not fit, TF32 with ties rounded away from 0 is tried
 * as well. */
void vn_try_format(vn_case *t, vn_trial *h, vn_rounding_format *format, vn_rounding_format likely);
/* Fills t->x->unmodified with the residual of the unmodified operation. */
void vn_score_unmodified(vn_case *t);

/* Inserts h into x, sorted by limit_fraction alone; NaN comes last. */
void   vn_case_keep(vn_findings *x, const vn_trial *h);
/* Returns the largest limit_fraction of a trial that explains the checkpoint: 1, and less if
 * the error is of a few floors only, which a wrong trial halves easily, too. */
double vn_findings_limit(const vn_findings *x);
/* Does it explain the checkpoint? */
bool   vn_case_fits(const vn_case *t, const vn_trial *h);
/* Does any trial that was tried explain it? */
bool   vn_case_answered(const vn_case *t);
/* Does h leave so little that it cannot be told from `best`? */
bool   vn_case_as_small(const vn_trial *h, const vn_trial *best);
/* Decides which of t->x->by explain the checkpoint, and which are aliases. */
void   vn_case_conclude(vn_case *t);
