/* error_shape.h: the shape of an error that no known mistake makes (specs/models.md 9.2). */
#ifndef VN_COMPARE_ERROR_SHAPE_H
#define VN_COMPARE_ERROR_SHAPE_H

#include "compare/explain/trial.h"

/* The error in words, into t->x->looks. */
vn_status vn_error_shape(vn_explain_trial *t, vn_error *err);

#endif
