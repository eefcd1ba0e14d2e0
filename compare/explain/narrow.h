/* narrow.h: an operation that is computed, or stored, in a narrower format than the rest of the run,
 * as under autocast. */
#ifndef VN_COMPARE_NARROW_H
#define VN_COMPARE_NARROW_H

#include "compare/explain/trial.h"

/* Computes the checkpoint with that change into y (as many numbers as site->cand). Numbers that the
 * candidate has one last place off count as its own if they are few: sums in another order round
 * the other way. *off: how many those are; -1: too many, or some are further off, and y is as
 * computed. VN_ERR_UNSUPPORTED: the operation cannot be computed in that format. */
vn_status vn_narrow_make(const vn_explain_trial *t, const vn_narrow_edit *edit, double *y, int64_t *off,
                         vn_error *err);

#endif
