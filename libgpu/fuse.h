/* fuse.h: finds consecutive nodes that one command can compute. Inside libgpu only.
 *
 * A fused command stores every value that its nodes make, rounded, and continues with the stored
 * number. So its bits are those of the nodes run one by one, every value can be tapped, and whether
 * nodes are fused does not depend on the taps. Fusing saves the barriers between the nodes, and
 * reading the values again.
 *
 * Here are the patterns: operations in a row, and what must hold for them in the plan. Whether a
 * call fuses them, and their commands: ops_fused.c.
 */
#pragma once

#include "libref/plan/plan.h"

#define VN_FUSE_MOST 4 /* nodes */

/* The patterns, the longest first. */
typedef enum vn_fusion {
	VN_FUSE_NORM_ROPES, /* of queries and keys */
	VN_FUSE_GATED_ACT,  /* two products, the activation of one for a tap, and their gated product */
	VN_FUSE_GATED,
	VN_FUSE_LINEAR_ADD_NORM,
	VN_FUSE_ADD_NORM,
	VN_FUSIONS
} vn_fusion;

/* Returns the largest number of nodes, from this one on, that any call may fuse; 1: none. Their
 * outputs must not share memory with their inputs (arena.c). */
int      vn_fuse_most(const vn_plan *plan, int node);
/* Returns a bit mask of the patterns that match at this node. It depends on the plan alone. Call it
 * once per plan: it takes as long as listing the commands of a call. */
unsigned vn_fuse_fitting(const vn_plan *plan, int node);
int      vn_fuse_nodes(vn_fusion f); /* how many nodes it has */
