/* infer_roles.h: which checkpoints the format of a role decides (libref/plan/policy.h). Included
 * only by compare_infer.c. */
#pragma once

#include "compare/comparison/comparison.h"

/* How a role's operation takes part in a checkpoint: not; among others of a span; alone. */
typedef enum vn_role_part { VN_PART_NONE, VN_PART_AMONG, VN_PART_ALONE } vn_role_part;

typedef struct vn_role_walk {
	const vn_checkpoints *all;
	const vn_plan        *plan;
	bool                 *known; /* (values), of the step: captured */
	bool                 *seen;  /* (nodes) */
	int                   step;  /* of known; -1: none yet */
} vn_role_walk;

/* all: judged by the plan; both must outlive the walk. */
void vn_role_walk_init(vn_role_walk *s, const vn_checkpoints *all, const vn_plan *plan);
void vn_role_walk_finish(vn_role_walk *s);
/* Fills of (checkpoints). If the role's operation stands alone somewhere, only these checkpoints
 * count. Returns how many count. */
int  vn_role_parts(vn_role_walk *s, vn_role role, vn_role_part *of);
