/* ops_gdn.c: records the operations of Gated DeltaNet into the command buffer.
 *
 * Some operands are float32 in every storage format: gdn_q, gdn_k, gdn_g and the state of the delta
 * rule. The shaders define this, and gpu.c checks it. The norms: ops.c. */
#include "libgpu/ops_internal.h"

/* Saves the rows that precede the next call: the last rows of x and, if x has too few, the last
 * rows before x. */
static void keep_rows(vn_gpu_pass *w, const vn_node *n, vn_buffer *x)
{
	vn_cache_slot     *c = &w->g->cache.slot[n->state[0]];
	const int64_t      rows = n->c.conv.taps - 1, mine = smaller(rows, w->tokens);
	const VkDeviceSize row = c->row_bytes / (VkDeviceSize)rows; /* row_bytes is the size of the whole state */

	vn_encode_copy(&w->g->encoder, &c->now, (VkDeviceSize)mine * row, &c->next, 0, (VkDeviceSize)(rows - mine) * row);
	vn_encode_copy(&w->g->encoder, x, (VkDeviceSize)(w->tokens - mine) * row, &c->next,
	               (VkDeviceSize)(rows - mine) * row, (VkDeviceSize)mine * row);
}

void vn_ops_causal_conv(vn_gpu_pass *w, const vn_node *n)
{
	const int64_t X = n->c.conv.channels, J = n->c.conv.taps;
	int64_t       step = rows_at_once(X);
	vn_buffer    *state = state_of(w, n, 0);

	if (step < J - 1)
		step = J - 1; /* a later part finds the rows before it in x */
	for (int64_t t = 0; t < w->tokens; t += step) {
		const int64_t  T = smaller(step, w->tokens - t);
		const uint64_t before = t ? in_value(w, n->in[0], (t - (J - 1)) * X) : state->address;
		vn_encode_reads(&w->g->encoder, state);
		dispatch_node(w, n, VN_K_CAUSAL_CONV,
		              &(vn_push_causal_conv) { .x = in_value(w, n->in[0], t * X),
		                                       .w = in_weight(w, n->w[0], 0),
		                                       .before = before,
		                                       .y = in_value(w, n->out[0], t * X),
		                                       .T = (uint32_t)T,
		                                       .X = (uint32_t)X,
		                                       .J = (uint32_t)J },
		              count_groups(T * X, 64), 1);
	}
	keep_rows(w, n, buffer_of(w, n->in[0]));
}

void vn_ops_log_decay(vn_gpu_pass *w, const vn_node *n)
{
	const int64_t N = vn_value_row(&w->g->plan->value[n->out[0]]), step = rows_at_once(N);

	for (int64_t t = 0; t < w->tokens; t += step) {
		const int64_t T = smaller(step, w->tokens - t);
		dispatch_node(w, n, VN_K_LOG_DECAY,
		              &(vn_push_log_decay) { .x = in_value(w, n->in[0], t * N),
		                                     .A = in_weight(w, n->w[0], 0),
		                                     .dt = in_weight(w, n->w[1], 0),
		                                     .y = in_value(w, n->out[0], t * N),
		                                     .T = (uint32_t)T,
		                                     .N = (uint32_t)N },
		              count_groups(T * N, 64), 1);
	}
}

void vn_ops_delta_rule(vn_gpu_pass *w, const vn_node *n)
{
	const int64_t nk = n->c.delta.key_heads, nv = n->c.delta.value_heads, dk = n->c.delta.key_dim,
				  dv = n->c.delta.value_dim;
	const int64_t step = smaller(rows_at_once(nk * dk), rows_at_once(nv * dv));
	vn_buffer    *next = &w->g->cache.slot[n->state[0]].next;

	for (int64_t t = 0; t < w->tokens; t += step) {
		vn_buffer *before = t ? next : state_of(w, n, 0); /* a later part continues from the previous one */
		vn_encode_reads(&w->g->encoder, before);
		vn_encode_writes(&w->g->encoder, next);
		dispatch_node(w, n, VN_K_DELTA_RULE,
		              &(vn_push_delta_rule) { .q = in_value(w, n->in[VN_DELTA_Q], t * nk * dk),
		                                      .k = in_value(w, n->in[VN_DELTA_K], t * nk * dk),
		                                      .v = in_value(w, n->in[VN_DELTA_V], t * nv * dv),
		                                      .g = in_value(w, n->in[VN_DELTA_G], t * nv),
		                                      .beta = in_value(w, n->in[VN_DELTA_BETA], t * nv),
		                                      .before = before->address,
		                                      .after = next->address,
		                                      .y = in_value(w, n->out[0], t * nv * dv),
		                                      .T = (uint32_t)smaller(step, w->tokens - t),
		                                      .nk = (uint32_t)nk,
		                                      .nv = (uint32_t)nv,
		                                      .dk = (uint32_t)dk,
		                                      .dv = (uint32_t)dv,
		                                      .scale = (float)n->c.delta.scale },
		              count_groups(dv, 16), nv);
	}
}
