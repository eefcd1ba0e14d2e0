/* activation.h: computes a checkpoint with an activation that no plan has, but that an engine may
 * use by mistake. */
#ifndef VN_COMPARE_ACTIVATION_H
#define VN_COMPARE_ACTIVATION_H

#include "compare/explain/trial.h"

int         vn_n_activations(void);
/* Returns its name, such as "tanh". which: counted from 0. */
const char *vn_activation_name(int which);
/* Is the checkpoint made by an activation? */
bool        vn_is_activation(const vn_explain_trial *t);
/* Computes n elements of the checkpoint with that activation into y, in double: 0, stride, 2 stride...
 * VN_ERR_UNSUPPORTED: it is not made by an activation. */
vn_status vn_activation_make(const vn_explain_trial *t, int which, int64_t n, int64_t stride, double *y, vn_error *err);

#endif
