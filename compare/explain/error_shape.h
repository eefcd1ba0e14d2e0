/* error_shape.h: describes an error that no known mistake explains: for example, one factor per
 * channel, or an offset. */
#ifndef VN_COMPARE_ERROR_SHAPE_H
#define VN_COMPARE_ERROR_SHAPE_H

#include "compare/trial/case.h"

/* Adds the description to t->x->error_shape. */
void vn_error_shape(vn_case *t);

#endif
