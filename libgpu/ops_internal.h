/* ops_internal.h: tells where the operands of a node are, and how much fits into one dispatch.
 * Shared by the files ops*.c only.
 */
#pragma once

#include "libgpu/engine.h"

#define INDEX_MAX 0x7FFFFFFF /* elements of an operand in one dispatch */

/* Bytes per number in the storage format. */
static inline size_t element_bytes(const vn_gpu_pass *w)
{
	return vn_dtype_size(w->g->policy.storage);
}

static inline vn_buffer *buffer_of(const vn_gpu_pass *w, int value)
{
	return vn_gpu_place(w->g, value);
}

static inline vn_buffer *weight_buffer(const vn_gpu_pass *w, int weight)
{
	return &w->g->weights.block[w->g->weights.at[weight].block];
}

static inline vn_buffer *state_of(const vn_gpu_pass *w, const vn_node *n, int slot)
{
	return &w->g->cache.slot[n->state[slot]].now;
}

/* Is a value in float32 where others are in half? */
static inline bool is_wide(const vn_gpu_pass *w, int value)
{
	return w->g->policy.storage == VN_F16 && vn_value_wide(w->g->plan, value);
}

/* Returns the address of element `at` of a buffer or a weight in the storage format. */
static inline uint64_t in_buffer(const vn_gpu_pass *w, const vn_buffer *b, int64_t at)
{
	return b->address + (uint64_t)at * element_bytes(w);
}

/* The same of a value, in its own format. */
static inline uint64_t in_value(const vn_gpu_pass *w, int value, int64_t at)
{
	return buffer_of(w, value)->address + (uint64_t)at * vn_dtype_size(vn_pass_dtype(w, value));
}

static inline uint64_t in_weight(const vn_gpu_pass *w, int weight, int64_t at)
{
	return w->g->weights.at[weight].address + (uint64_t)at * element_bytes(w);
}

static inline int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Returns how many rows of n elements one dispatch can take. */
static inline int64_t rows_at_once(int64_t n)
{
	return n < INDEX_MAX ? INDEX_MAX / n : 1;
}

/* Can lanes process eight numbers each? All addresses (0: none) must be aligned to eight numbers of
 * the storage format. */
static inline bool in_eights(const vn_gpu_pass *w, uint64_t a, uint64_t b, uint64_t c)
{
	return ((a | b | c) & (8 * element_bytes(w) - 1)) == 0;
}

/* Returns the workgroups of 64 lanes for n numbers, in eights or not. */
static inline int64_t groups_of_lanes(int64_t n, bool eights)
{
	return count_groups(n, eights ? 512 : 64);
}

/* Returns the bias of a product or norm; -1: none. */
static inline int bias_of(const vn_node *n)
{
	return n->n_w > 1 ? n->w[1] : -1;
}

/* Declares that the next dispatch reads a node's inputs and weights, and writes to a buffer. */
static inline void use_operands(vn_gpu_pass *w, const vn_node *n, vn_buffer *to)
{
	vn_encoder *e = &w->g->encoder;

	for (int k = 0; k < n->n_in; k++)
		vn_encode_reads(e, buffer_of(w, n->in[k]));
	for (int k = 0; k < n->n_w; k++)
		if (n->w[k] >= 0)
			vn_encode_reads(e, weight_buffer(w, n->w[k]));
	vn_encode_writes(e, to);
}

/* Records a dispatch of a node's shader, which writes the node's first output. push, x and y: as
 * for vn_encode_dispatch. */
static inline void dispatch_node(vn_gpu_pass *w, const vn_node *n, vn_kernel kernel, const void *push, int64_t x,
                                 int64_t y)
{
	use_operands(w, n, buffer_of(w, n->out[0]));
	vn_encode_dispatch(&w->g->encoder, kernel, push, x, y);
}

/* Chooses how the product of a node is computed. */
vn_product_choice vn_ops_linear_choice(const vn_gpu_pass *w, const vn_node *n);
/* Sets p to that product, if one dispatch takes all of it; else returns false. */
bool              vn_ops_linear_whole(const vn_gpu_pass *w, const vn_node *n, vn_product *p);

void vn_ops_attention(vn_gpu_pass *w, const vn_node *n);

/* Record the operations of Gated DeltaNet, except for its norms (ops_gdn.c). */
void vn_ops_causal_conv(vn_gpu_pass *w, const vn_node *n);
void vn_ops_log_decay(vn_gpu_pass *w, const vn_node *n);
void vn_ops_delta_rule(vn_gpu_pass *w, const vn_node *n);

/* The same of experts (ops_experts.c). */
void vn_ops_top_k(vn_gpu_pass *w, const vn_node *n);
void vn_ops_route(vn_gpu_pass *w, const vn_node *n);
void vn_ops_experts(vn_gpu_pass *w, const vn_node *n);
void vn_ops_combine(vn_gpu_pass *w, const vn_node *n);
