/* rearrange_rows.h: finds rows of a result that were not written: they hold earlier content,
 * another checkpoint's numbers, or 0. */
#ifndef VN_COMPARE_REARRANGE_ROWS_H
#define VN_COMPARE_REARRANGE_ROWS_H

#include "compare/trial/case.h"

/* Tries unwritten rows, and channels that are 0 in every row. Answers go to t->x. Does nothing
 * unless the first axis of the checkpoint is tokens and all of its rows were recorded. */
void vn_rearrange_rows(vn_case *t);

#endif
