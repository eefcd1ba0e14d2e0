/* ops_experts.c: records the operations of experts into the command buffer.
 *
 * With several tokens, the pairs of a token and a slot are sorted by expert, and a tile takes pairs
 * of one expert. A matrix that some token chose is then read once for every tile of its rows (most
 * experts have one), and no other matrix is read. One token's experts differ, so its pairs stay in
 * their order. */
#include "libgpu/ops.h"

#include "libgpu/ops_internal.h"

void vn_ops_top_k(vn_gpu_pass *w, const vn_node *n)
{
	const int64_t E = n->c.top_k.columns, k = n->c.top_k.k, step = rows_at_once(E);
	const int     bias = n->w[VN_ROUTER_BIAS];

	for (int64_t t = 0; t < w->tokens; t += step) {
		const int64_t T = smaller(step, w->tokens - t);
		dispatch_node(w, n, is_wide(w, n->in[0]) ? VN_K_TOP_K_WIDE : VN_K_TOP_K,
		              &(vn_push_top_k) { .x = in_value(w, n->in[0], t * E),
		                                 .bias = bias < 0 ? 0 : w->g->weights.at[bias].address,
		                                 .y = in_value(w, n->out[0], t * k),
		                                 .T = (uint32_t)T,
		                                 .E = (uint32_t)E,
		                                 .k = (uint32_t)k,
		                                 .sigmoid = n->c.top_k.sigmoid != 0,
		                                 .has_bias = bias >= 0,
		                                 .groups = (uint32_t)n->c.top_k.groups,
		                                 .used = (uint32_t)n->c.top_k.groups_used,
		                                 .best = (uint32_t)n->c.top_k.best },
		              T, 1);
	}
}

void vn_ops_route(vn_gpu_pass *w, const vn_node *n)
{
	const int64_t   E = n->c.route.columns, k = vn_value_row(&w->g->plan->value[n->out[0]]), step = rows_at_once(E);
	const vn_kernel kernel = is_wide(w, n->in[VN_ROUTE_LOGITS]) ? VN_K_ROUTE_WIDE_BOTH
	                         : is_wide(w, n->out[0])            ? VN_K_ROUTE_WIDE
	                                                            : VN_K_ROUTE;

	for (int64_t t = 0; t < w->tokens; t += step) {
		const int64_t T = smaller(step, w->tokens - t);
		dispatch_node(w, n, kernel,
		              &(vn_push_route) { .x = in_value(w, n->in[VN_ROUTE_LOGITS], t * E),
		                                 .ids = in_value(w, n->in[VN_ROUTE_IDS], t * k),
		                                 .y = in_value(w, n->out[0], t * k),
		                                 .T = (uint32_t)T,
		                                 .E = (uint32_t)E,
		                                 .k = (uint32_t)k,
		                                 .normalised = n->c.route.normalised != 0,
		                                 .sigmoid = n->c.route.sigmoid != 0,
		                                 .scale = n->c.route.scale > 0 ? (float)n->c.route.scale : 1.0f },
		              T, 1);
	}
}

void vn_ops_combine(vn_gpu_pass *w, const vn_node *n)
{
	const int64_t k = n->c.combine.slots, D = vn_value_row(&w->g->plan->value[n->out[0]]), step = rows_at_once(k * D);

	for (int64_t t = 0; t < w->tokens; t += step) {
		const int64_t   T = smaller(step, w->tokens - t);
		vn_push_combine push = { .x = in_value(w, n->in[VN_COMBINE_X], t * k * D),
			                     .w = in_value(w, n->in[VN_COMBINE_WEIGHTS], t * k),
			                     .y = in_value(w, n->out[0], t * D),
			                     .T = (uint32_t)T,
			                     .k = (uint32_t)k,
			                     .D = (uint32_t)D };
		push.eights = D % 8 == 0 && in_eights(w, push.x, push.y, 0);
		dispatch_node(w, n, is_wide(w, n->in[VN_COMBINE_WEIGHTS]) ? VN_K_COMBINE_WIDE : VN_K_COMBINE, &push,
		              groups_of_lanes(T * D, push.eights), 1);
	}
}

/* The sizes of a node: D and F are the widths of a token and of what gate and up make of it. */
typedef struct expert_sizes {
	int64_t E, k, D, F;
	int64_t step; /* tokens of a part of the call */
} expert_sizes;

static expert_sizes sizes_of(const vn_gpu_pass *w, const vn_node *n)
{
	const vn_plan *p = w->g->plan;
	expert_sizes   s = { .E = n->c.experts.experts,
		                 .k = vn_value_row(&p->value[n->in[VN_EXPERTS_IDS]]),
		                 .D = vn_value_row(&p->value[n->in[VN_EXPERTS_X]]),
		                 .F = p->weight[n->w[VN_EXPERT_GATE]].shape.dim[0] };

	s.step = smaller(rows_at_once(s.k * (s.D > s.F ? s.D : s.F)), w->tokens);
	return s;
}

static VkDeviceSize in_zones(VkDeviceSize bytes)
{
	return (bytes + VN_ZONE - 1) & ~(VkDeviceSize)(VN_ZONE - 1);
}

/* Where the parts of g->pairs begin: the sorted pairs, then rows of F numbers for each pair. */
static VkDeviceSize rows_at(const vn_gpu_pass *w, const expert_sizes *s, int part)
{
	const int64_t pairs = s->step * s->k;

	return in_zones((VkDeviceSize)(s->E + 1 + pairs) * sizeof(uint32_t)) +
	       (VkDeviceSize)part * in_zones((VkDeviceSize)(pairs * s->F) * element_bytes(w));
}

static vn_push_linear push_of(const vn_node *n, const expert_sizes *s, bool gated)
{
	return (vn_push_linear) { .M = (uint32_t)(gated ? s->F : s->D),
		                      .N = (uint32_t)(gated ? s->D : s->F),
		                      .y_stride = (uint32_t)(gated ? s->F : s->D),
		                      .act = n->c.experts.act,
		                      .E = (uint32_t)s->E,
		                      .k = (uint32_t)s->k };
}

static vn_product_choice choice_of(const vn_gpu_pass *w, const vn_node *n, const expert_sizes *s, bool gated)
{
	const vn_push_linear push = push_of(n, s, gated);

	return vn_product_choose_experts(&w->g->kernels, w->tokens, &push, gated);
}

VkDeviceSize vn_ops_experts_room(const vn_gpu_pass *w)
{
	VkDeviceSize most = sizeof(uint32_t);

	for (int i = 0; i < w->g->plan->n_nodes; i++) {
		const vn_node *n = &w->g->plan->node[i];
		if (n->op != VN_OP_EXPERTS)
			continue;
		const expert_sizes s = sizes_of(w, n);
		const VkDeviceSize bytes = rows_at(w, &s, vn_product_keeps_both(choice_of(w, n, &s, true)) ? 3 : 1);
		most = bytes > most ? bytes : most;
	}
	return most;
}

/* Where the addresses of a weight of the node and of those behind it are; 0: it has no such
 * weight. */
static uint64_t addresses_of(const vn_gpu_pass *w, const vn_node *n, int slot)
{
	return n->w[slot] < 0 ? 0 : w->g->weights.addresses.address + (uint64_t)n->w[slot] * sizeof(VkDeviceAddress);
}

static void sort_pairs(vn_gpu_pass *w, const vn_node *n, const expert_sizes *s, int64_t t, int64_t T)
{
	vn_encode_reads(&w->g->encoder, buffer_of(w, n->in[VN_EXPERTS_IDS]));
	vn_encode_writes(&w->g->encoder, &w->g->pairs);
	vn_encode_writes(&w->g->encoder, buffer_of(w, n->out[0]));
	vn_encode_dispatch(&w->g->encoder, VN_K_EXPERT_ROWS,
	                   &(vn_push_expert_rows) { .ids = in_value(w, n->in[VN_EXPERTS_IDS], t * s->k),
	                                            .rows = w->g->pairs.address,
	                                            .y = in_value(w, n->out[0], t * s->k * s->D),
	                                            .P = (uint32_t)(T * s->k),
	                                            .D = (uint32_t)s->D,
	                                            .E = (uint32_t)s->E },
	                   s->E + 1, 1);
}

/* Records one of the two products, of T tokens from t on. Weights are only written before the first
 * pass, so their buffers, which may be more than an encoder counts, are not declared. */
static void multiply(vn_gpu_pass *w, const vn_node *n, const expert_sizes *s, int64_t t, int64_t T, bool gated)
{
	const vn_product_choice choice = choice_of(w, n, s, gated);
	const uint64_t          pairs = w->g->pairs.address, ids = in_value(w, n->in[VN_EXPERTS_IDS], t * s->k);
	const int               kind = gated ? VN_EXPERT_GATE : VN_EXPERT_DOWN;
	const float             limits[] = { (float)n->c.experts.limit, (float)n->c.experts.shift };
	vn_product              p = { .element = element_bytes(w), .at = push_of(n, s, gated) };

	p.at.T = (uint32_t)(T * s->k);
	p.at.rows = vn_product_is_sorted(choice) ? pairs : ids;
	p.at.w = addresses_of(w, n, kind);
	p.at.b = addresses_of(w, n, VN_EXPERT_KINDS + kind);
	p.at.w_up = addresses_of(w, n, VN_EXPERT_UP);
	p.at.b_up = addresses_of(w, n, VN_EXPERT_KINDS + VN_EXPERT_UP);
	p.at.x = gated ? in_value(w, n->in[VN_EXPERTS_X], t * s->D) : pairs + rows_at(w, s, 0);
	p.at.y = gated ? pairs + rows_at(w, s, 1) : in_value(w, n->out[0], t * s->k * s->D);
	p.at.up = pairs + rows_at(w, s, 2);
	p.at.gated = pairs + rows_at(w, s, 0);
	if (gated)
		vn_encode_reads(&w->g->encoder, buffer_of(w, n->in[VN_EXPERTS_X]));
	vn_encode_reads(&w->g->encoder, buffer_of(w, n->in[VN_EXPERTS_IDS]));
	vn_encode_reads(&w->g->encoder, &w->g->pairs);
	vn_encode_writes(&w->g->encoder, gated ? &w->g->pairs : buffer_of(w, n->out[0]));
	vn_product_encode_experts(&w->g->encoder, choice, &p, gated, limits);
}

void vn_ops_experts(vn_gpu_pass *w, const vn_node *n)
{
	const expert_sizes s = sizes_of(w, n);
	const bool         omit = w->g->encoder.omit;

	for (int64_t t = 0; t < w->tokens; t += s.step) {
		const int64_t T = smaller(s.step, w->tokens - t);
		if (vn_product_is_sorted(choice_of(w, n, &s, true))) {
			sort_pairs(w, n, &s, t, T);
			w->g->encoder.omit = false; /* an experiment omits what is before the node, not inside it */
		}
		multiply(w, n, &s, t, T, true);
		w->g->encoder.omit = false;
		multiply(w, n, &s, t, T, false);
	}
	w->g->encoder.omit = omit;
}
