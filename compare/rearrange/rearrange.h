/* rearrange.h: finds mistakes that are visible in an operation's result alone: the right result,
 * but multiplied by a factor, plus a number, or capped; with rows, heads or axes in another order;
 * or another checkpoint in its place.
 *
 * This is one of the strategies in explain/explain_point.c, which also runs after an answer and may
 * replace it. Such a mistake is described; it cannot be reproduced elsewhere (VN_BY_RESULT).
 * redirect.h tries other inputs of the operation instead.
 */
#ifndef VN_COMPARE_REARRANGE_H
#define VN_COMPARE_REARRANGE_H

#include "compare/trial/case.h"

/* Tries all of these. Answers go to t->x. */
void vn_rearrange(vn_case *t);

#endif
