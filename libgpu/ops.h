/* ops.h: one function per operation, which records it into the command buffer. Inside libgpu only.
 *
 * Each function splits its work so that no operand of a dispatch has 2^31 elements or more, because
 * shaders index with 32 bits (shaders/real.glsl).
 */
#pragma once

#include "libgpu/engine.h"

/* Records a node with all outputs that are in the arena. */
void vn_ops_encode(vn_gpu_pass *w, int node);

/* Returns how many nodes from this one on, all before `to`, are fused in this call; 1: none. A node
 * whose barrier is omitted is run alone. */
int  vn_ops_fused(const vn_gpu_pass *w, int node, int to);
/* Records the command of that many nodes; n > 1. */
void vn_ops_encode_fused(vn_gpu_pass *w, int node, int n);

/* Appends the rows of this call to a growing state, unless they were computed in it (arena.h).
 * vn_ops_encode does this too. The caller updates the state's `upto` (cache.h). */
void vn_ops_append(vn_gpu_pass *w, int state);
/* Copies elements [at, at + n) of a paged state, in token order, to scratch. */
void vn_ops_gather(vn_gpu_pass *w, int state, int64_t at, int64_t n);

/* Returns the bytes of g->sums that the products of a call need. */
VkDeviceSize vn_ops_linear_sums(const vn_gpu_pass *w);
/* The same for its attention. */
VkDeviceSize vn_ops_attention_parts(const vn_gpu_pass *w);

/* Returns the bytes of g->pairs that the experts of a call need. */
VkDeviceSize vn_ops_experts_room(const vn_gpu_pass *w);

/* Rows [row, row + rows) and columns [col, col + cols) of a matrix. */
typedef struct vn_gpu_piece {
	int64_t row, rows, col, cols;
} vn_gpu_piece;
/* Compute a piece of an output, the matrix (T, row length), into scratch; for scores and
 * probabilities, of one head. cols may be less than a whole row only if rows is 1. */
void vn_ops_linear_part(vn_gpu_pass *w, int node, vn_gpu_piece p);
void vn_ops_act_part(vn_gpu_pass *w, int node, vn_gpu_piece p);
void vn_ops_attention_part(vn_gpu_pass *w, int node, int slot, int64_t head, vn_gpu_piece p);
