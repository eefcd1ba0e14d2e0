/* localise.h: finds where an error starts.
 *
 * An origin is a checkpoint whose own operation is at fault. Without a replay, which measures the
 * operation by itself (replay.h), it is judged by the limits: outside, with its inputs within.
 *
 * Reads   opened.plan, and the judged checkpoints with their pools
 * Fills   localised.first: the first checkpoint outside its limits, in execution order;
 *         localised.origins, and `origin` of checkpoints: those outside whose inputs are within;
 *         localised.graph: the checkpoints that each checkpoint was computed from;
 *         a line of remarks.warnings
 */
#pragma once

#include "compare/comparison/comparison.h"

/* Fills localised.first and localised.origins. */
void vn_localise(const vn_opened *o, vn_checkpoints *all, const vn_pools *pools, vn_localised *localised,
                 vn_lines *warnings);

/* Builds localised.graph, for vn_inputs_of. It stays NULL, without an error, if there are
 * too many steps. */
void vn_graph_build(const vn_opened *o, const vn_checkpoints *all, vn_localised *localised);

void vn_localise_drop_graph(vn_localised *localised);

/* Finds the recorded values that a checkpoint was computed from: the nearest ancestors that were
 * compared, as indices into the checkpoints. Writes at most max of them and returns how many; -1:
 * the checkpoint is in no plan. Needs vn_graph_build. */
int vn_inputs_of(const vn_opened *o, const vn_checkpoints *all, const vn_localised *localised, int point, int *input,
                 int max);
