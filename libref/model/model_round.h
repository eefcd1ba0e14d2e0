/* model_round.h: an opened model with weights in another format. */
#ifndef VN_LIBREF_MODEL_ROUND_H
#define VN_LIBREF_MODEL_ROUND_H

#include "libref/model/model.h"

/* Rounds weight i to a format of single numbers, as another file of the same model has it. Before
 * the model is shared. */
vn_status vn_model_round(vn_model *m, int i, vn_dtype to, vn_error *err);

#endif
