/* narrow.h: recomputes an operation in a narrower format than the rest of the run has, as autocast
 * does. */
#ifndef VN_COMPARE_NARROW_H
#define VN_COMPARE_NARROW_H

#include "compare/explain/trial.h"

/* Computes the checkpoint with that change into y (as many numbers as site->cand). Sums in another
 * order may round differently, so a few numbers may differ from the candidate's by one unit in the
 * last place: y then gets the candidate's numbers there, and *off is how many they are. *off is -1,
 * and y as computed, if they are too many or differ by more. VN_ERR_UNSUPPORTED: the operation
 * cannot be computed in that format. */
vn_status vn_narrow_make(const vn_explain_trial *t, const vn_narrow_edit *edit, double *y, int64_t *off, vn_error *err);

#endif
