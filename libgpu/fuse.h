/* fuse.h: finds consecutive nodes that one command can compute. Inside libgpu only.
 *
 * A fused command stores every value that its nodes make, rounded, and continues with the stored
 * number. So its bits are those of the nodes run one by one, every value can be tapped, and whether
 * nodes are fused does not depend on the taps. Fusing saves the barriers between the nodes, and
 * reading the values again.
 *
 * The patterns are a table in fuse.c: operations in a row, and what must hold for them.
 */
#ifndef VN_LIBGPU_FUSE_H
#define VN_LIBGPU_FUSE_H

#include "libref/plan/plan.h"

struct vn_gpu_pass;

#define VN_FUSE_MOST 4 /* nodes */

/* Returns the largest number of nodes, from this one on, that any call may fuse; 1: none. Their
 * outputs must not share memory with their inputs (arena.c). A node whose barrier is omitted is run
 * alone. */
int      vn_fuse_most(const vn_plan *plan, int node);
/* Returns a bit mask of the patterns that match at this node. It depends on the plan alone. Call it
 * once per plan: it takes as long as listing the commands of a call. */
unsigned vn_fuse_fitting(const vn_plan *plan, int node);

/* Returns how many nodes from this one on, all before `to`, are fused in this call. */
int vn_fuse_count(const struct vn_gpu_pass *w, int node, int to);

/* Records the command of that many nodes; n > 1. */
void vn_fuse_encode(struct vn_gpu_pass *w, int node, int n);

#endif
