/* plan_json.h: a plan as the JSON lines of /plan in a checkpoint file, and back.
 *
 * The lines are those of specs/checkpoint.md: one a node, one a value, one a
 * weight, each list in the order of the plan. Reading trusts nothing: a plan
 * that comes back has passed vn_plan_check, so an executor can walk it.
 */
#ifndef VN_CAPTURE_PLAN_JSON_H
#define VN_CAPTURE_PLAN_JSON_H

#include "libref/plan/plan.h"

typedef struct vn_plan_text {
	int    layers, vocab, context;
	int    n_nodes, n_values, n_weights;
	char **node, **value, **weight; /* each line by malloc */
} vn_plan_text;

vn_status vn_plan_to_text(const vn_plan *p, vn_plan_text *t, vn_error *err);
/* err names /plan/nodes[7] and the like; a caller puts the file before it. */
vn_status vn_plan_from_text(const vn_plan_text *t, vn_plan **plan, vn_error *err);
void      vn_plan_text_free(vn_plan_text *t);

#endif
