/* label.h: what a tensor of a checkpoint file is called, beside its numbers. */
#ifndef VN_CAPTURE_LABEL_H
#define VN_CAPTURE_LABEL_H

#include "libref/plan/plan.h"

typedef struct vn_tensor_label {
	char name[VN_NAME_MAX];                /* "layer3.q_rope" */
	int  order;                            /* place in the execution order; -1: it is not said */
	int  layer;                            /* -1 outside layers */
	char point[32], op[32], basis[32], axes[72]; /* empty: not said */
} vn_tensor_label;

/* Of a value of a plan. */
vn_tensor_label vn_label_of_value(const vn_plan *p, int value);
/* Of a name alone: a point of ours, or somebody else's word. Order and operation are not said. */
vn_tensor_label vn_label_of_name(const char *name);
/* The point that a name stands for, "layer3.q_rope" or "logits"; NULL: none of ours. */
const vn_point_info *vn_label_point(const char *name);

#endif
