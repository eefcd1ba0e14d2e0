/* plan_json.h: converts a plan to the JSON lines of /plan in a checkpoint file, and back.
 *
 * The lines are described in specs/checkpoint.md: one per node, per value and per weight, each list
 * in the order of the plan. The reader trusts nothing: the plan that it returns has passed
 * vn_plan_check, so an engine can execute it.
 */
#pragma once

#include "libref/plan/plan.h"

typedef struct vn_plan_text {
	int    layers, vocab, context;
	int    n_nodes, n_values, n_weights;
	char **node, **value, **weight; /* each line allocated with malloc */
} vn_plan_text;

vn_status vn_plan_to_text(const vn_plan *p, vn_plan_text *t, vn_error *err);
/* err names an object such as /plan/nodes[7]; the caller puts the file before it. */
vn_status vn_plan_from_text(const vn_plan_text *t, vn_plan **plan, vn_error *err);
void      vn_plan_text_free(vn_plan_text *t);
