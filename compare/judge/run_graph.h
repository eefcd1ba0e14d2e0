/* run_graph.h: which checkpoints a checkpoint was computed from, by the plan of a run of any
 * PyTorch module (capture/recording/run_plan.h): that of the reference, else the candidate's.
 *
 * Reads   opened.ref, opened.cand, and the measured checkpoints
 * Fills   localised.run_graph, which vn_localise_drop_graph frees
 */
#ifndef VN_COMPARE_RUN_GRAPH_H
#define VN_COMPARE_RUN_GRAPH_H

#include "compare/comparison/comparison.h"

typedef struct vn_run_graph vn_run_graph;

/* Builds localised.run_graph. It stays NULL, without an error, if no side has such a plan. */
void vn_run_graph_build(const vn_opened *o, const vn_checkpoints *all, vn_localised *localised);
void vn_run_graph_free(vn_run_graph *g); /* may be NULL */

/* As vn_inputs_of (localise.h). Needs vn_run_graph_build. */
int vn_run_inputs_of(const vn_checkpoints *all, const vn_localised *localised, int point, int *input, int max);

#endif
