/* estimate_linear.h: mistakes of a product that the catalogue has with another number: how often its bias was added, which ranks of how
 * many are there, what their shards were joined as, how far its rows are padded; and what may have happened to its matrix or its input
 * (edit_matrix.h): transposed, not loaded, rounded to another format. */
#ifndef VN_COMPARE_ESTIMATE_LINEAR_H
#define VN_COMPARE_ESTIMATE_LINEAR_H

#include "compare/explain/trial.h"

/* Where the checkpoint is a product. The number is read off some rows and channels; then the mistake is made with it. */
vn_status vn_estimate_linear(vn_explain_trial *t, vn_error *err);

#endif
