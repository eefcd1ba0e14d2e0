/* ops.h: one function per operation to put it into the command buffer.
 *
 * Inside libgpu only. Each cuts its work so that a dispatch stays below 2^31
 * elements of any operand (shaders/real.glsl).
 */
#ifndef VN_LIBGPU_OPS_H
#define VN_LIBGPU_OPS_H

#include "libgpu/engine.h"

/* A node with all outputs that live in the arena. */
void vn_ops_encode(vn_gpu_pass *w, int node);

/* The rows of this call join a state that grows; vn_ops_encode does it too. */
void vn_ops_append(vn_gpu_pass *w, int state);
/* The keys of this call in the cache become those that later calls find, where they are others: behind all that reads them. */
void vn_ops_keep(vn_gpu_pass *w, const vn_node *n);
/* Elements [at, at + n) of a paged state, token by token, into scratch. */
void vn_ops_gather(vn_gpu_pass *w, int state, int64_t at, int64_t n);

/* Bytes of g->sums that the products of a call need. */
VkDeviceSize vn_ops_linear_sums(const vn_gpu_pass *w);
/* And its attention. */
VkDeviceSize vn_ops_attention_parts(const vn_gpu_pass *w);

/* Part of an output, into scratch: rows [row, row + rows) and columns [col,
 * col + cols) of the matrix (T, row length); of a head for scores and
 * probabilities. cols is short of the row only when rows is 1. */
void vn_ops_linear_part(vn_gpu_pass *w, int node, int64_t row, int64_t rows, int64_t col, int64_t cols);
void vn_ops_act_part(vn_gpu_pass *w, int node, int64_t row, int64_t rows, int64_t col, int64_t cols);
void vn_ops_attention_part(vn_gpu_pass *w, int node, int slot, int64_t head, int64_t row, int64_t rows, int64_t col,
                           int64_t cols);

#endif
