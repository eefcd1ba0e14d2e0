/* replay_measure.h: the steps of one node: run it, measure the candidate's numbers,
 * put them into the engines. */
#ifndef VN_COMPARE_REPLAY_MEASURE_H
#define VN_COMPARE_REPLAY_MEASURE_H

#include "compare/replay/replay_state.h"

/* Runs node k of the step in both engines. */
vn_status vn_replay_run_node(vn_replay *r, int k, vn_error *err);
/* Measures the candidate's numbers, with columns in this order, against the engines' outputs.
 * Reads p->replay.span, and fills the rest of p->replay except charged_to and columns. */
vn_status vn_replay_measure(vn_replay *r, const vn_node *node, const vn_node_output *own, vn_column_order order,
                            vn_checkpoint *p, vn_error *err);
/* Copies the candidate's numbers of a measured checkpoint into both engines. */
vn_status vn_replay_take(vn_replay *r, int value, vn_error *err);
/* Copies those of p, another recording of the same value. */
vn_status vn_replay_take_from(vn_replay *r, int value, const vn_checkpoint *p, vn_error *err);
/* Can the value not be written? It is never in memory as a whole, or is a growing state, which
 * follows from other values. */
bool      vn_replay_no_place(const vn_plan *plan, int value);

#endif
