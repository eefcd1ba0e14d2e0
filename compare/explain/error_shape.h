/* error_shape.h: describes an error that no known mistake explains: for example, one factor per
 * channel, or an offset. */
#pragma once

#include "compare/trial/case.h"

/* Adds the description to t->x->error_shape. */
void vn_error_shape(vn_case *t);
