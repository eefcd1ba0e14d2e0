/* redirect.h: the operation is right, and reads what is another's. */
#ifndef VN_COMPARE_REDIRECT_H
#define VN_COMPARE_REDIRECT_H

#include "compare/explain/trial.h"

/* Another checkpoint in the place of an input (the layer's index is off by one, a buffer that was not swapped), the keys or values
 * of another layer, another layer's weights. Whatever was recorded, and every layer, is looked at in a few rows; the nearest are tried. */
vn_status vn_redirect(vn_explain_trial *t, vn_error *err);
/* In steps what is of the step before, and embeddings of other tokens of the sequence. */
vn_status vn_redirect_in_time(vn_explain_trial *t, vn_error *err);

#endif
