/* error_shape.h: describes an error that no known mistake explains: for example, one factor per
 * channel, or an offset. */
#pragma once

#include "compare/trial/case.h"

/* Adds the description to t->x->error_shape. */
void vn_error_shape(vn_case *t);
/* Is the answer a mistake of some queries of some heads: those whose scores are far below 0? */
bool vn_explain_says_where(const vn_findings *x);
/* Adds how many numbers of an attention are 0 that should not be, in which heads and tokens. */
void vn_error_zeros(vn_case *t);
