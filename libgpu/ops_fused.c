/* ops_fused.c: records commands that compute several nodes (fuse.h). */
#include "libgpu/fuse.h"
#include "libgpu/ops.h"
#include "libgpu/ops_internal.h"

/* ---- add, rms_norm: the sum of a residual and what it becomes for the next operation ----- */

static bool in_one_dispatch(const vn_gpu_pass *w, int node)
{
	return w->tokens <= rows_at_once(vn_value_row(&w->g->plan->value[w->g->plan->node[node].out[0]]));
}

/* linear: the product whose partial sums are joined here too; -1: none. */
static void add_norm(vn_gpu_pass *w, int add, int linear)
{
	const vn_plan *p = w->g->plan;
	const vn_node *n = &p->node[add], *norm = &p->node[add + 1];
	const int64_t  N = vn_value_row(&p->value[n->out[0]]);
	const int      bias = linear < 0 ? -1 : bias_of(&p->node[linear]);
	vn_encoder    *e = &w->g->encoder;
	vn_buffer     *a = buffer_of(w, n->in[0]), *b = buffer_of(w, n->in[1]), *x = buffer_of(w, n->out[0]);
	vn_buffer     *y = buffer_of(w, norm->out[0]);

	vn_encode_reads(e, a);
	vn_encode_reads(e, weight_buffer(w, norm->w[0]));
	if (linear < 0) {
		vn_encode_reads(e, b);
	} else {
		vn_encode_reads(e, &w->g->sums);
		vn_encode_writes(e, b);
	}
	if (bias >= 0)
		vn_encode_reads(e, weight_buffer(w, bias));
	vn_encode_writes(e, x);
	vn_encode_writes(e, y);
	vn_encode_dispatch(e, VN_K_ADD_NORM,
	                   &(vn_push_add_norm) {
						   .a = a->address,
						   .b = b->address,
						   .x = x->address,
						   .g = in_weight(w, norm->w[0], 0),
						   .y = y->address,
						   .sums = linear < 0 ? 0 : w->g->sums.address,
						   .bias = bias < 0 ? 0 : in_weight(w, bias, 0),
						   .R = (uint32_t)w->tokens,
						   .N = (uint32_t)N,
						   .eps = (float)norm->c.norm.eps,
						   .offset = (float)norm->c.norm.offset,
						   .shares = linear < 0 ? 0 : (uint32_t)vn_ops_linear_choice(w, &p->node[linear]).shares,
						   .has_bias = bias >= 0,
					   },
	                   w->tokens, 1);
}

static void encode_add_norm(vn_gpu_pass *w, int node)
{
	add_norm(w, node, -1);
}

/* ---- linear, add, rms_norm: where the product's parts are joined anyway --------------------- */

static bool is_joined(const vn_gpu_pass *w, int node)
{
	const vn_node *n = &w->g->plan->node[node];
	vn_product     p;

	return vn_product_is_joined(vn_ops_linear_choice(w, n)) && vn_ops_linear_whole(w, n, &p) &&
	       in_one_dispatch(w, node);
}

static void encode_linear_add_norm(vn_gpu_pass *w, int node)
{
	const vn_node *n = &w->g->plan->node[node];
	vn_product     p;

	if (vn_ops_linear_whole(w, n, &p))
		vn_product_encode_parts(&w->g->encoder, vn_ops_linear_choice(w, n), &p);
	add_norm(w, node + 1, node);
}

/* ---- linear, linear, gated ------------------------------------------------------------------- */

static bool choose_gated(const vn_gpu_pass *w, int node, vn_product_choice *choice)
{
	const vn_plan *p = w->g->plan;

	return vn_product_choose_gated(&w->g->kernels, w->tokens, vn_value_row(&p->value[p->node[node].out[0]]),
	                               vn_value_row(&p->value[p->node[node].in[0]]), choice);
}

static bool is_gated_pair(const vn_gpu_pass *w, int node)
{
	vn_product        p;
	vn_product_choice choice;

	return choose_gated(w, node, &choice) && vn_ops_linear_whole(w, &w->g->plan->node[node], &p);
}

static void encode_gated_pair(vn_gpu_pass *w, int node)
{
	const vn_node    *n = &w->g->plan->node[node], *gated = n[2].op == VN_OP_GATED ? n + 2 : n + 3;
	vn_product        gate, up;
	vn_product_choice choice;

	if (choose_gated(w, node, &choice) && vn_ops_linear_whole(w, n, &gate) && vn_ops_linear_whole(w, n + 1, &up))
		vn_product_encode_gated(&w->g->encoder, choice, &gate, &up, gated->c.act.act, buffer_of(w, gated->out[0]));
}

/* ---- rms_norm, rms_norm, rope, rope: of queries and keys ------------------------------------- */

static bool heads_in_one_dispatch(const vn_gpu_pass *w, int node)
{
	return in_one_dispatch(w, node) && in_one_dispatch(w, node + 1);
}

static void norm_rope(vn_gpu_pass *w, int node, int rope)
{
	const vn_node  *norm = &w->g->plan->node[node], *n = &w->g->plan->node[rope];
	const vn_value *v = &w->g->plan->value[n->out[0]];
	vn_encoder     *e = &w->g->encoder;
	vn_buffer      *x = buffer_of(w, norm->in[0]), *y = buffer_of(w, norm->out[0]), *z = buffer_of(w, n->out[0]);

	vn_encode_reads(e, x);
	vn_encode_reads(e, weight_buffer(w, norm->w[0]));
	vn_encode_reads(e, &w->g->upload);
	vn_encode_writes(e, y);
	vn_encode_writes(e, z);
	vn_encode_dispatch(e, VN_K_NORM_ROPE,
	                   &(vn_push_norm_rope) {
						   .x = x->address,
						   .g = in_weight(w, norm->w[0], 0),
						   .table = w->g->upload.address + w->g->rope[w->g->node[rope].rope].at,
						   .y = y->address,
						   .z = z->address,
						   .rows = (uint32_t)(w->tokens * v->size[1]),
						   .H = (uint32_t)v->size[1],
						   .K = (uint32_t)v->size[2],
						   .R = (uint32_t)n->c.rope.rope.rotary_dim,
						   .eps = (float)norm->c.norm.eps,
						   .offset = (float)norm->c.norm.offset,
					   },
	                   w->tokens * v->size[1], 1);
}

static void encode_norm_ropes(vn_gpu_pass *w, int node)
{
	norm_rope(w, node, node + 2);
	norm_rope(w, node + 1, node + 3);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct {
	bool (*now)(const vn_gpu_pass *w, int node); /* in a call like this one */
	void (*encode)(vn_gpu_pass *w, int node);
} table[VN_FUSIONS] = {
	[VN_FUSE_NORM_ROPES] = { heads_in_one_dispatch, encode_norm_ropes },
	[VN_FUSE_GATED_ACT] = { is_gated_pair, encode_gated_pair },
	[VN_FUSE_GATED] = { is_gated_pair, encode_gated_pair },
	[VN_FUSE_LINEAR_ADD_NORM] = { is_joined, encode_linear_add_norm },
	[VN_FUSE_ADD_NORM] = { in_one_dispatch, encode_add_norm },
};

static bool leaves_one_out(const vn_gpu *g, int node, int n)
{
	for (int i = node; i < node + n; i++)
		if (i == g->break_skip || vn_gpu_is_early(g, i))
			return true;
	return false;
}

/* Returns what to fuse at this node; VN_FUSIONS: nothing. */
static vn_fusion fusion_of(const vn_gpu_pass *w, int node, int to)
{
	vn_fusion f = 0;

	while (f < VN_FUSIONS && !(vn_fuse_nodes(f) <= to - node && w->g->node[node].fitting >> f & 1 &&
	                           table[f].now(w, node) && !leaves_one_out(w->g, node, vn_fuse_nodes(f))))
		f++;
	return f;
}

int vn_ops_fused(const vn_gpu_pass *w, int node, int to)
{
	const vn_fusion f = w->g->break_fusion ? VN_FUSIONS : fusion_of(w, node, to);

	return f < VN_FUSIONS ? vn_fuse_nodes(f) : 1;
}

void vn_ops_encode_fused(vn_gpu_pass *w, int node, int n)
{
	table[fusion_of(w, node, node + n)].encode(w, node);
}
