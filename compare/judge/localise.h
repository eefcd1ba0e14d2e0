/* localise.h: finds where an error starts.
 *
 * An origin is a checkpoint whose own operation is at fault. Without a replay, which measures the
 * operation by itself (replay.h), it is judged by the limits: outside, with its inputs within.
 *
 * Reads   opened.plan, and the judged checkpoints of result.checkpoint with their pools
 * Fills   result.first: the first checkpoint outside its limits, in execution order;
 *         result.origins, and `origin` of checkpoints: those outside whose inputs are within;
 *         result.graph: the checkpoints that each checkpoint was computed from;
 *         a line of result.warnings
 */
#ifndef VN_COMPARE_LOCALISE_H
#define VN_COMPARE_LOCALISE_H

#include "compare/comparison/comparison.h"

/* Fills result.first and result.origins. */
void vn_localise(vn_comparison *c);

/* Builds result.graph, for vn_inputs_of. result.graph stays NULL, without an error, if there are
 * too many steps. */
void vn_graph_build(vn_comparison *c);

void vn_localise_drop_graph(vn_result *r);

/* Finds the recorded values that a checkpoint was computed from: the nearest ancestors that were
 * compared, as indices into result.checkpoint. Writes at most max of them and returns how many; -1:
 * the checkpoint is in no plan. Needs vn_graph_build. */
int vn_inputs_of(const vn_comparison *c, int point, int *input, int max);

#endif
