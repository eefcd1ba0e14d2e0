/* rearrange.h: finds mistakes that are visible in an operation's result alone: the right result,
 * but multiplied by a factor, plus a number, or capped; with rows, heads or axes in another order;
 * or another checkpoint in its place.
 *
 * This is one of the strategies in explain/explain_point.c, which also runs after an answer and may
 * replace it. Such a mistake is described; it cannot be reproduced elsewhere (VN_BY_RESULT).
 * redirect.c tries other inputs of the operation instead.
 */
#pragma once

#include "compare/trial/case.h"

/* Tries all of these. Answers go to t->x. */
void vn_rearrange(vn_case *t);
/* Tries columns of a product that are a few places late or early. Call it after vn_redirect: the
 * weights of two layers may be so in their numbers. */
void vn_rearrange_rolled(vn_case *t);

/* rearrange_rows.c: finds rows of a result that were not written: they hold earlier content,
 * another checkpoint's numbers, or 0. */

/* Tries unwritten rows, and channels that are 0 in every row. Answers go to t->x. Does nothing
 * unless the first axis of the checkpoint is tokens and all of its rows were recorded. */
void vn_rearrange_rows(vn_case *t);

/* redirect.c: finds operations that are right but read the wrong value or the wrong weights. */

/* Tries another checkpoint as an input (layer index off by one, buffers not swapped), the keys or
 * values of another layer, and another layer's weights. All recorded values and all layers are
 * tried in a few rows; the best are then tried in full. */
void vn_redirect(vn_case *t);
/* Tries content from the step before, and embeddings of other tokens of the sequence. */
void vn_redirect_in_time(vn_case *t);
