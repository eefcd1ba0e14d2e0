/* op_norm.c: how norms are built, and their rules. */
#include "libref/plan/op_internal.h"

/* Does a norm of x have weights of this shape? They are as wide as the last axis or, where all
 * heads of a token are normed together, as its row. */
static bool is_weight_of(const vn_shape *s, const vn_value *x)
{
	return s->rank == 1 && (s->dim[0] == x->size[x->rank - 1] || s->dim[0] == vn_value_row(x));
}

/* Norm of one input, or of two with one shape. The bias of a layer norm is as wide as its
 * weight. */
static int add_norm(vn_builder *b, vn_node n, vn_point out)
{
	if (b->status)
		return 0;
	const vn_value *v = &b->plan->value[n.in[0]];
	for (int k = 0; k < n.n_w; k++) {
		const vn_shape *s = n.w[k] < 0 ? NULL : &b->plan->weight[n.w[k]].shape;
		if (s && !is_weight_of(s, v))
			return vn_build_fail(b, VN_ERR_SHAPE, "weight %s is not as wide as the tensor that it norms",
			                     b->plan->weight[n.w[k]].name);
	}
	n.n_out = 1;
	n.out[0] = vn_build_like(b, n.in[0], out);
	vn_build_node(b, n);
	return n.out[0];
}

int vn_plan_rms_norm(vn_builder *b, int x, int w, double eps, vn_point out)
{
	return add_norm(b, (vn_node) { .op = VN_OP_RMS_NORM, .c.norm.eps = eps, VN_IN(1, x), VN_W(1, w) }, out);
}

int vn_plan_rms_norm_one(vn_builder *b, int x, int w, double eps, vn_point out)
{
	return add_norm(
		b, (vn_node) { .op = VN_OP_RMS_NORM, .c.norm = { .eps = eps, .offset = 1.0 }, VN_IN(1, x), VN_W(1, w) }, out);
}

int vn_plan_gated_norm(vn_builder *b, int x, int z, int w, double eps, vn_point out)
{
	return add_norm(b, (vn_node) { .op = VN_OP_GATED_NORM, .c.norm.eps = eps, VN_IN(2, x, z), VN_W(1, w) }, out);
}

int vn_plan_layer_norm(vn_builder *b, int x, int w, int bias, double eps, vn_point out)
{
	return add_norm(b, (vn_node) { .op = VN_OP_LAYER_NORM, .c.norm.eps = eps, VN_IN(1, x), VN_W(2, w, bias) }, out);
}

int vn_plan_l2_norm(vn_builder *b, int x, double eps, vn_point out)
{
	if (b->status)
		return 0;
	int y = vn_build_wide(b, vn_build_like(b, x, out));
	vn_build_node(b, (vn_node) { .op = VN_OP_L2_NORM, .c.norm.eps = eps, VN_IN(1, x), VN_OUT(1, y) });
	return y;
}

vn_status vn_check_norm(const vn_plan_walk *w)
{
	const vn_node  *n = w->n;
	const vn_value *x = w->x;
	const vn_shape *bias = n->n_w > 1 && n->w[1] >= 0 ? &w->p->weight[n->w[1]].shape : NULL;
	const int       width = n->x.norm.width;

	if (!vn_plan_check_row(x) || (w->m && !is_weight_of(w->m, x)) || !vn_plan_check_same_shape(x, w->y) ||
	    (bias && !vn_shape_equal(bias, w->m)) || (n->n_in > 1 && !vn_plan_check_same_shape(x, &w->p->value[n->in[1]])))
		return vn_plan_check_fit(w, false);
	if (n->op == VN_OP_GATED_NORM && n->x.norm.gate != VN_SILU && n->x.norm.gate != VN_SIGMOID)
		return vn_plan_check_fail(w, "unknown activation");
	if (width && (n->op != VN_OP_RMS_NORM || width < 1 || vn_plan_check_row(x) % width || width % x->size[x->rank - 1]))
		return vn_plan_check_fail(w, "its input cannot be normed in groups of %d columns", width);
	return VN_OK;
}
