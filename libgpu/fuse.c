/* fuse.c: see fuse.h. */
#include "libgpu/fuse.h"

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

/* ---- linear, add, rms_norm: where the product's parts are joined anyway --------------------- */

static bool product_is_added(const vn_plan *p, int node)
{
	return feeds_input(p, node, node + 1, 1) && !feeds_input(p, node, node + 1, 0) && sum_is_normed(p, node + 1) &&
	       p->value[p->node[node].out[0]].rank == 2;
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

/* ---- rms_norm, rms_norm, rope, rope: of queries and keys ------------------------------------- */

static bool is_rotated(const vn_plan *p, int norm, int rope)
{
	const vn_value *v = &p->value[p->node[rope].out[0]];
	const vn_rope  *r = &p->node[rope].c.rope.rope;

	return !r->first && r->pairs == VN_PAIR_HALVES && feeds_input(p, norm, rope, 0) && v->rank == 3 &&
	       p->value[p->node[norm].out[0]].rank == 3 && v->size[2] <= HEAD_MOST &&
	       p->weight[p->node[norm].w[0]].shape.dim[0] == v->size[2];
}

static bool both_are_rotated(const vn_plan *p, int node)
{
	return is_rotated(p, node, node + 2) && is_rotated(p, node + 1, node + 3) && !feeds_input(p, node, node + 1, 0);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct pattern {
	int   n;
	vn_op op[VN_FUSE_MOST];
	bool (*wired)(const vn_plan *p, int node);
} table[VN_FUSIONS] = {
	[VN_FUSE_NORM_ROPES] = { 4, { VN_OP_RMS_NORM, VN_OP_RMS_NORM, VN_OP_ROPE, VN_OP_ROPE }, both_are_rotated },
	[VN_FUSE_GATED_ACT] = { 4, { VN_OP_LINEAR, VN_OP_LINEAR, VN_OP_ACT, VN_OP_GATED }, are_gate_and_up },
	[VN_FUSE_GATED] = { 3, { VN_OP_LINEAR, VN_OP_LINEAR, VN_OP_GATED }, are_gate_and_up },
	[VN_FUSE_LINEAR_ADD_NORM] = { 3, { VN_OP_LINEAR, VN_OP_ADD, VN_OP_RMS_NORM }, product_is_added },
	[VN_FUSE_ADD_NORM] = { 2, { VN_OP_ADD, VN_OP_RMS_NORM }, sum_is_normed },
};

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
	for (int i = 0; i < VN_FUSIONS; i++)
		if (matches_pattern(plan, node, &table[i]))
			return table[i].n;
	return 1;
}

unsigned vn_fuse_fitting(const vn_plan *plan, int node)
{
	unsigned fitting = 0;

	for (int i = 0; i < VN_FUSIONS; i++)
		fitting |= (unsigned)matches_pattern(plan, node, &table[i]) << i;
	return fitting;
}

int vn_fuse_nodes(vn_fusion f)
{
	return table[f].n;
}
