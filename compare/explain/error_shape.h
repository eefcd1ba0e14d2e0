/* error_shape.h: describes the shape of an error that no known mistake explains (specs/models.md
 * 9.1). */
#ifndef VN_COMPARE_ERROR_SHAPE_H
#define VN_COMPARE_ERROR_SHAPE_H

#include "compare/hypothesis/trial.h"

/* Adds the description to t->x->looks. */
vn_status vn_error_shape(vn_explain_trial *t, vn_error *err);

#endif
