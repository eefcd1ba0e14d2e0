/* apply_computed.h: applies hypotheses that a changed plan cannot express, by computing the numbers
 * in double from the operation's inputs: attention or a rotation with a mistake that no constant
 * describes, an activation that plans do not have, an operation in a narrower format (autocast).
 *
 * A vn_apply_ function fills *made, or leaves it empty if the hypothesis does not apply to the
 * checkpoint.
 */
#ifndef VN_COMPARE_APPLY_COMPUTED_H
#define VN_COMPARE_APPLY_COMPUTED_H

#include "compare/hypothesis/trial.h"

vn_status vn_apply_attend(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err);
vn_status vn_apply_rotation(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err);
vn_status vn_apply_activation(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err);
vn_status vn_apply_narrow(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err);

/* Rotates x into y, both (T,H,K), by node n of plan p at positions first, first + 1, ... of a
 * sequence of S tokens. The edit: rounded angles, or rounded tables of sine and cosine; calls
 * recorded as one that each count from 0; token ids for positions; sine and cosine exchanged. ids:
 * (T). begins: from vn_trial_own_calls, if the edit needs it. Returns false if there is no
 * memory. */
bool vn_rotate_rows(const vn_plan *p, const vn_node *n, const vn_rotate_edit *edit, const int32_t *ids,
                    const int64_t *begins, const double *x, int64_t first, int64_t T, int64_t S, int64_t H, int64_t K,
                    double *y);

/* Activations that an engine may use by mistake. */
int         vn_n_activations(void);
/* Returns its name, such as "tanh". which: counted from 0. */
const char *vn_activation_name(int which);
/* Is the checkpoint made by an activation? */
bool        vn_activation_is_known(const vn_explain_trial *t);
/* Computes n elements of the checkpoint, 0, stride, 2 stride..., with that activation into y.
 * VN_ERR_UNSUPPORTED: it is not made by an activation. */
vn_status vn_activation_make(const vn_explain_trial *t, int which, int64_t n, int64_t stride, double *y, vn_error *err);

/* Computes the checkpoint in that format into y (as many numbers as site->cand). Sums in another
 * order may round differently, so a few numbers may differ from the candidate's by one unit in the
 * last place: y then gets the candidate's numbers there, and *off their count. If there are too
 * many, or they differ by more, *off is -1 and y stays as computed. VN_ERR_UNSUPPORTED: the
 * operation cannot be computed in that format. */
vn_status vn_narrow_make(const vn_explain_trial *t, const vn_narrow_edit *edit, double *y, int64_t *off, vn_error *err);

#endif
