/* reach.h: enumerates the values from which a value was computed, in its own step and in earlier
 * ones. */
#pragma once

#include "libref/plan/plan.h"

/* Called for each input: a value (aliases resolved) in a step. all_rows: every token's row of it is
 * used, not only the rows that were asked for. */
typedef void vn_reach_visitor(void *context, size_t step, int value, bool all_rows);

/* Calls reach for each input of the node that makes `value`, and for what earlier steps left in the
 * node's states. Steps count from 0 and follow each other. A state that grows already includes this
 * step's rows, so it is reported instead of the input that it stores. all_rows: whether all rows of
 * `value` are asked for. */
void vn_reach_inputs(const vn_plan *plan, size_t step, int value, bool all_rows, vn_reach_visitor *reach,
                     void *context);
