/* fuse.c: see fuse.h. */
#include "libgpu/fuse.h"

#include "libgpu/ops_internal.h"

enum { HEAD_MOST = 256 }; /* norm_rope.comp */

/* Is input k of node b the output of node a? */
static bool feeds_input(const vn_plan *p, int a, int b, int k)
{
	return vn_plan_root(p, p->node[b].in[k]) == p->node[a].out[0];
}

static bool same_weight_shape(const vn_plan *p, int a, int b)
{
	const vn_shape *x = &p->weight[p->node[a].w[0]].shape, *y = &p->weight[p->node[b].w[0]].shape;

	return x->dim[0] == y->dim[0] && x->dim[1] == y->dim[1];
}

/* ---- add, rms_norm: the sum of a residual and what it becomes for the next operation ----- */

static bool sum_is_normed(const vn_plan *p, int add)
{
	return feeds_input(p, add, add + 1, 0) && p->value[p->node[add].out[0]].rank == 2;
}

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

static bool product_is_added(const vn_plan *p, int node)
{
	return feeds_input(p, node, node + 1, 1) && !feeds_input(p, node, node + 1, 0) && sum_is_normed(p, node + 1) &&
	       p->value[p->node[node].out[0]].rank == 2;
}

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
		vn_product_encode_parts(&w->g->encoder, vn_ops_linear_choice(w, n), &p, element_bytes(w));
	add_norm(w, node + 1, node);
}

/* ---- linear, linear, gated ------------------------------------------------------------------- */

static bool are_gate_and_up(const vn_plan *p, int node)
{
	const int gated = p->node[node + 2].op == VN_OP_GATED ? node + 2 : node + 3;
	const int act = gated == node + 3 ? p->node[node + 2].out[0] : -1;

	return p->node[node].in[0] == p->node[node + 1].in[0] && same_weight_shape(p, node, node + 1) &&
	       feeds_input(p, node, gated, 0) && feeds_input(p, node + 1, gated, 1) &&
	       (act < 0 || (p->value[act].on_demand && vn_value_streams(p, act)));
}

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
		vn_product_encode_gated(&w->g->encoder, choice, &gate, &up, gated->c.act.act, buffer_of(w, gated->out[0]),
		                        element_bytes(w));
}

/* ---- rms_norm, rms_norm, rope, rope: of queries and keys ------------------------------------- */

static bool is_rotated(const vn_plan *p, int norm, int rope)
{
	const vn_value *v = &p->value[p->node[rope].out[0]];

	return feeds_input(p, norm, rope, 0) && v->rank == 3 && p->value[p->node[norm].out[0]].rank == 3 &&
	       v->size[2] <= HEAD_MOST;
}

static bool both_are_rotated(const vn_plan *p, int node)
{
	return is_rotated(p, node, node + 2) && is_rotated(p, node + 1, node + 3) && !feeds_input(p, node, node + 1, 0);
}

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

static const struct pattern {
	int   n;
	vn_op op[VN_FUSE_MOST];
	bool (*wired)(const vn_plan *p, int node);
	bool (*now)(const vn_gpu_pass *w, int node); /* in a call like this one */
	void (*encode)(vn_gpu_pass *w, int node);
} table[] = {
	/* the longest first */
	{ 4,
	  { VN_OP_RMS_NORM, VN_OP_RMS_NORM, VN_OP_ROPE, VN_OP_ROPE },
	  both_are_rotated,
	  heads_in_one_dispatch,
	  encode_norm_ropes },
	{ 4, { VN_OP_LINEAR, VN_OP_LINEAR, VN_OP_ACT, VN_OP_GATED }, are_gate_and_up, is_gated_pair, encode_gated_pair },
	{ 3, { VN_OP_LINEAR, VN_OP_LINEAR, VN_OP_GATED }, are_gate_and_up, is_gated_pair, encode_gated_pair },
	{ 3, { VN_OP_LINEAR, VN_OP_ADD, VN_OP_RMS_NORM }, product_is_added, is_joined, encode_linear_add_norm },
	{ 2, { VN_OP_ADD, VN_OP_RMS_NORM }, sum_is_normed, in_one_dispatch, encode_add_norm },
};
enum { PATTERNS = sizeof table / sizeof *table };

static bool is_plain(const vn_plan *p, const vn_node *n)
{
	return !vn_value_wide(p, n->out[0]) && (n->op == VN_OP_ACT || !vn_value_streams(p, n->out[0]));
}

static bool matches_pattern(const vn_plan *p, int node, const struct pattern *t)
{
	if (t->n > p->n_nodes - node)
		return false;
	for (int k = 0; k < t->n; k++)
		if (p->node[node + k].op != t->op[k] || !is_plain(p, &p->node[node + k]))
			return false;
	return t->wired(p, node);
}

int vn_fuse_most(const vn_plan *plan, int node)
{
	for (int i = 0; i < PATTERNS; i++)
		if (matches_pattern(plan, node, &table[i]))
			return table[i].n;
	return 1;
}

unsigned vn_fuse_fitting(const vn_plan *plan, int node)
{
	unsigned fitting = 0;

	for (int i = 0; i < PATTERNS; i++)
		fitting |= (unsigned)matches_pattern(plan, node, &table[i]) << i;
	return fitting;
}

static bool leaves_one_out(const vn_gpu *g, int node, int n)
{
	for (int i = node; i < node + n; i++)
		if (i == g->break_skip || vn_gpu_is_early(g, i))
			return true;
	return false;
}

static const struct pattern *pattern_of(const vn_gpu_pass *w, int node, int to)
{
	for (int i = 0; i < PATTERNS; i++)
		if (table[i].n <= to - node && w->g->node[node].fitting >> i & 1 && table[i].now(w, node) &&
		    !leaves_one_out(w->g, node, table[i].n))
			return &table[i];
	return NULL;
}

int vn_fuse_count(const vn_gpu_pass *w, int node, int to)
{
	const struct pattern *t = w->g->break_fusion ? NULL : pattern_of(w, node, to);

	return t ? t->n : 1;
}

void vn_fuse_encode(vn_gpu_pass *w, int node, int n)
{
	pattern_of(w, node, node + n)->encode(w, node);
}
