/* label.h: the name and description of a tensor in a checkpoint file. */
#pragma once

#include "libref/plan/plan.h"

typedef struct vn_tensor_label {
	char name[VN_NAME_MAX];                      /* "layer3.q_rope" */
	int  order;                                  /* place in the execution order; -1: not stated */
	int  layer;                                  /* -1 outside layers */
	char point[32], op[32], basis[32], axes[72]; /* "": not stated */
	char source_line[128];                       /* "model.c:123", where it is recorded; "": not stated */
} vn_tensor_label;

/* Makes the label of a value of a plan. */
vn_tensor_label      vn_label_of_value(const vn_plan *p, int value);
/* Makes the label of a name alone: a checkpoint name, or a foreign one. Order and operation are not
 * stated. */
vn_tensor_label      vn_label_of_name(const char *name);
/* Returns the point in a name ("layer3.q_rope" or "logits"), or NULL if it is not a checkpoint
 * name. */
const vn_point_info *vn_label_point(const char *name);
