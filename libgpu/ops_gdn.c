/* ops_gdn.c: records the operations of Gated DeltaNet into the command buffer.
 *
 * Some operands are float32 in every storage format: gdn_q, gdn_k, gdn_g and the state of the delta
 * rule. The shaders define this, and gpu.c checks it. */
#include "libgpu/ops_internal.h"

static uint64_t in_floats(const vn_buffer *b, int64_t at)
{
	return b->address + (uint64_t)at * sizeof(float);
}

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

static void conv(vn_gpu_pass *w, const vn_node *n)
{
	const int64_t X = n->c.conv.channels, J = n->c.conv.taps;
	int64_t       step = rows_at_once(X);
	vn_buffer    *x = buffer_of(w, n->in[0]), *y = buffer_of(w, n->out[0]), *state = state_of(w, n, 0);

	if (step < J - 1)
		step = J - 1; /* a later part finds the rows before it in x */
	for (int64_t t = 0; t < w->tokens; t += step) {
		const int64_t T = smaller(step, w->tokens - t);
		vn_encode_reads(&w->g->encoder, x);
		vn_encode_reads(&w->g->encoder, state);
		vn_encode_reads(&w->g->encoder, weight_buffer(w, n->w[0]));
		vn_encode_writes(&w->g->encoder, y);
		vn_encode_dispatch(&w->g->encoder, vn_kernel_of(VN_K_CAUSAL_CONV, n),
		                   &(vn_push_causal_conv) { .x = in_buffer(w, x, t * X),
		                                            .w = in_weight(w, n->w[0], 0),
		                                            .before = t ? in_buffer(w, x, (t - (J - 1)) * X) : state->address,
		                                            .y = in_buffer(w, y, t * X),
		                                            .T = (uint32_t)T,
		                                            .X = (uint32_t)X,
		                                            .J = (uint32_t)J,
		                                            .linear = (uint32_t)n->x.conv.linear,
		                                            .forgets = n->x.conv.forgets && w->past > 0 && t == 0,
		                                            .ahead = (uint32_t)n->x.conv.ahead,
		                                            .last = (uint32_t)(w->tokens - t) },
		                   count_groups(T * X, 64), 1);
	}
	keep_rows(w, n, x);
}

static void l2_norm(vn_gpu_pass *w, const vn_node *n)
{
	const vn_value *v = &w->g->plan->value[n->out[0]];
	const int64_t   N = v->size[v->rank - 1], R = w->tokens * (vn_value_row(v) / N), step = rows_at_once(N);
	vn_buffer      *x = buffer_of(w, n->in[0]), *y = buffer_of(w, n->out[0]);

	for (int64_t r = 0; r < R; r += step) {
		const int64_t rows = smaller(step, R - r);
		vn_encode_reads(&w->g->encoder, x);
		vn_encode_writes(&w->g->encoder, y);
		vn_encode_dispatch(&w->g->encoder, vn_kernel_of(VN_K_L2_NORM, n),
		                   &(vn_push_rms_norm) { .x = in_buffer(w, x, r * N),
		                                         .y = in_floats(y, r * N),
		                                         .R = (uint32_t)rows,
		                                         .N = (uint32_t)N,
		                                         .eps = (float)n->c.norm.eps,
		                                         .divisor = norm_divisor(n, 1),
		                                         .flags = norm_flags(n) },
		                   rows, 1);
	}
}

static void log_decay(vn_gpu_pass *w, const vn_node *n)
{
	const int64_t N = vn_value_row(&w->g->plan->value[n->out[0]]), step = rows_at_once(N);
	vn_buffer    *x = buffer_of(w, n->in[0]), *y = buffer_of(w, n->out[0]);

	for (int64_t t = 0; t < w->tokens; t += step) {
		const int64_t T = smaller(step, w->tokens - t);
		vn_encode_reads(&w->g->encoder, x);
		vn_encode_reads(&w->g->encoder, weight_buffer(w, n->w[0]));
		vn_encode_reads(&w->g->encoder, weight_buffer(w, n->w[1]));
		vn_encode_writes(&w->g->encoder, y);
		vn_encode_dispatch(&w->g->encoder, vn_kernel_of(VN_K_LOG_DECAY, n),
		                   &(vn_push_log_decay) { .x = in_buffer(w, x, t * N),
		                                          .A = in_weight(w, n->w[0], 0),
		                                          .dt = in_weight(w, n->w[1], 0),
		                                          .y = in_floats(y, t * N),
		                                          .T = (uint32_t)T,
		                                          .N = (uint32_t)N,
		                                          .form = (uint32_t)n->x.decay.form },
		                   count_groups(T * N, 64), 1);
	}
}

static void delta_rule(vn_gpu_pass *w, const vn_node *n)
{
	const int64_t nk = n->c.delta.key_heads, nv = n->c.delta.value_heads, dk = n->c.delta.key_dim,
				  dv = n->c.delta.value_dim;
	const int64_t step = smaller(rows_at_once(nk * dk), rows_at_once(nv * dv));
	vn_buffer    *in[5], *y = buffer_of(w, n->out[0]), *next = &w->g->cache.slot[n->state[0]].next;

	for (int k = 0; k < 5; k++)
		in[k] = buffer_of(w, n->in[k]);
	for (int64_t t = 0; t < w->tokens; t += step) {
		vn_buffer *before = t ? next : state_of(w, n, 0); /* a later part continues from the previous one */
		for (int k = 0; k < 5; k++)
			vn_encode_reads(&w->g->encoder, in[k]);
		vn_encode_reads(&w->g->encoder, before);
		vn_encode_writes(&w->g->encoder, next);
		vn_encode_writes(&w->g->encoder, y);
		vn_encode_dispatch(
			&w->g->encoder, vn_kernel_of(VN_K_DELTA_RULE, n),
			&(vn_push_delta_rule) { .q = in_floats(in[VN_DELTA_Q], t * nk * dk),
		                            .k = in_floats(in[VN_DELTA_K], t * nk * dk),
		                            .v = in_buffer(w, in[VN_DELTA_V], t * nv * dv),
		                            .g = in_floats(in[VN_DELTA_G], t * nv),
		                            .beta = in_buffer(w, in[VN_DELTA_BETA], t * nv),
		                            .before = before->address,
		                            .after = next->address,
		                            .y = in_buffer(w, y, t * nv * dv),
		                            .T = (uint32_t)smaller(step, w->tokens - t),
		                            .nk = (uint32_t)nk,
		                            .nv = (uint32_t)nv,
		                            .dk = (uint32_t)dk,
		                            .dv = (uint32_t)dv,
		                            .scale = (float)n->c.delta.scale,
		                            .form = (uint32_t)n->x.delta.form,
		                            .head_map = (uint32_t)n->x.delta.head_map,
		                            .restart = (uint32_t)n->x.delta.restart,
		                            .P = (uint32_t)(w->past + t),
		                            .transposed = w->tokens > 1 && t + step >= w->tokens && n->x.delta.transposed },
			count_groups(dv, 16), nv);
	}
}

static void gated_norm(vn_gpu_pass *w, const vn_node *n)
{
	const vn_value *v = &w->g->plan->value[n->out[0]];
	const int64_t   N = v->size[v->rank - 1], R = w->tokens * (vn_value_row(v) / N), step = rows_at_once(N);
	vn_buffer      *x = buffer_of(w, n->in[0]), *z = buffer_of(w, n->in[1]), *y = buffer_of(w, n->out[0]);

	for (int64_t r = 0; r < R; r += step) {
		const int64_t rows = smaller(step, R - r);
		vn_encode_reads(&w->g->encoder, x);
		vn_encode_reads(&w->g->encoder, z);
		vn_encode_reads(&w->g->encoder, weight_buffer(w, n->w[0]));
		vn_encode_writes(&w->g->encoder, y);
		vn_encode_dispatch(&w->g->encoder, vn_kernel_of(VN_K_GATED_NORM, n),
		                   &(vn_push_gated_norm) { .x = in_buffer(w, x, r * N),
		                                           .z = in_buffer(w, z, r * N),
		                                           .g = in_weight(w, n->w[0], 0),
		                                           .y = in_buffer(w, y, r * N),
		                                           .R = (uint32_t)rows,
		                                           .N = (uint32_t)N,
		                                           .eps = (float)n->c.norm.eps,
		                                           .divisor = norm_divisor(n, N),
		                                           .flags = norm_flags(n),
		                                           .gate = (uint32_t)n->x.norm.gate,
		                                           .gate_first = (uint32_t)n->x.norm.gate_first },
		                   rows, 1);
	}
}

bool vn_ops_gdn(vn_gpu_pass *w, const vn_node *n)
{
	static void (*const encode[VN_N_OPS])(vn_gpu_pass * w, const vn_node *n) = {
		[VN_OP_CAUSAL_CONV] = conv,      [VN_OP_L2_NORM] = l2_norm,       [VN_OP_LOG_DECAY] = log_decay,
		[VN_OP_DELTA_RULE] = delta_rule, [VN_OP_GATED_NORM] = gated_norm,
	};

	if (encode[n->op])
		encode[n->op](w, n);
	return encode[n->op];
}
