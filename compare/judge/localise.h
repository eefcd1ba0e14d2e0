/* localise.h: where an error starts.
 *
 * Reads the plan and the judged checkpoints; fills first (the first one outside in execution order) and origins (those outside
 * whose inputs are within).
 */
#ifndef VN_COMPARE_LOCALISE_H
#define VN_COMPARE_LOCALISE_H

#include "compare/comparison/comparison.h"

/* first and origins. */
vn_status vn_localise(vn_comparison *c, vn_error *err);

/* graph, of what is measured: for vn_inputs_of. Stays NULL where the steps are too many. */
vn_status vn_graph_build(vn_comparison *c, vn_error *err);

void      vn_comparison_drop_graph(vn_comparison *c);

/* The recorded values a checkpoint was computed from: indices into point of
 * the nearest ancestors that were compared, through those that were not.
 * Returns how many (at most max); -1 when no plan knows it. After vn_localise. */
int       vn_inputs_of(const vn_comparison *c, int point, int *input, int max);

#endif
