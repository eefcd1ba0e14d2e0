/* reach.h: what a value of a step was computed from, across steps too. */
#ifndef VN_COMPARE_REACH_H
#define VN_COMPARE_REACH_H

#include "libref/plan/plan.h"

/* A value (aliases resolved) of a step. all_rows: of every token of that step, not only of the rows that are asked for. */
typedef void vn_reach(void *context, size_t step, int value, bool all_rows);

/* Tells the inputs of the node that makes value, and what the steps before left in its states; steps count from 0, each
 * behind the one before. A state that grows is read with the rows of this step in it, so it stands for that input.
 * all_rows: as it is asked for. */
void vn_reach_inputs(const vn_plan *plan, size_t step, int value, bool all_rows, vn_reach *reach, void *context);

#endif
