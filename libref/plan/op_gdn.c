/* op_gdn.c: how the operations of Gated DeltaNet are built, and their rules. */
#include "libref/plan/op_internal.h"

int vn_plan_causal_conv(vn_builder *b, int x, int w, vn_point out)
{
	if (b->status)
		return 0;
	const vn_value *v = &b->plan->value[x];
	const vn_shape *s = &b->plan->weight[w].shape;
	if (v->rank != 2 || s->rank != 3 || s->dim[0] != v->size[1] || s->dim[1] != 1 || s->dim[2] < 2)
		return vn_build_fail(b, VN_ERR_SHAPE, "the shape of weight %s does not fit its input", b->plan->weight[w].name);
	const int X = (int)s->dim[0], J = (int)s->dim[2];
	int       y = vn_build_like(b, x, out), state = vn_build_value(b, VN_POINT_GDN_CONV_STATE, 2, (int[]) { J - 1, X });
	vn_build_node(b, (vn_node) { .op = VN_OP_CAUSAL_CONV,
	                             .c.conv = { .channels = X, .taps = J },
	                             VN_IN(1, x),
	                             VN_W(1, w),
	                             VN_OUT(2, y, state) });
	return y;
}

int vn_plan_log_decay(vn_builder *b, int x, int A_log, int dt_bias, vn_point out)
{
	if (b->status)
		return 0;
	const vn_value *v = &b->plan->value[x];
	const vn_shape *s = &b->plan->weight[A_log].shape;
	if (v->rank != 2 || s->rank != 1 || s->dim[0] != v->size[1] || !vn_shape_equal(s, &b->plan->weight[dt_bias].shape))
		return vn_build_fail(b, VN_ERR_SHAPE, "the shape of weight %s or of its bias does not fit its input",
		                     b->plan->weight[A_log].name);
	int y = vn_build_wide(b, vn_build_like(b, x, out));
	vn_build_node(b, (vn_node) { .op = VN_OP_LOG_DECAY, VN_IN(1, x), VN_W(2, A_log, dt_bias), VN_OUT(1, y) });
	return y;
}

int vn_plan_delta_rule(vn_builder *b, const int in[5], double scale, vn_point out)
{
	if (b->status)
		return 0;
	vn_value q = b->plan->value[in[VN_DELTA_Q]], v = b->plan->value[in[VN_DELTA_V]];
	if (q.rank != 3 || v.rank != 3 || v.size[1] % q.size[1])
		return vn_build_fail(b, VN_ERR_SHAPE, "%s: the shapes of keys and values do not fit together", q.name);
	const vn_consts c = { .delta = { .scale = scale,
		                             .key_heads = q.size[1],
		                             .value_heads = v.size[1],
		                             .key_dim = q.size[2],
		                             .value_dim = v.size[2] } };
	int             y = vn_build_like(b, in[VN_DELTA_V], out);
	int             state = vn_build_value(b, VN_POINT_GDN_STATE, 3, (int[]) { v.size[1], q.size[2], v.size[2] });
	vn_build_node(
		b,
		(vn_node) { .op = VN_OP_DELTA_RULE, .c = c, VN_IN(5, in[0], in[1], in[2], in[3], in[4]), VN_OUT(2, y, state) });
	return y;
}

vn_status vn_check_causal_conv(const vn_plan_walk *w)
{
	const vn_node  *n = w->n;
	const vn_shape *m = w->m;
	const int       X = n->c.conv.channels, J = n->c.conv.taps;

	return vn_plan_check_fit(w, X > 0 && J > 1 && n->x.conv.linear >= 0 && n->x.conv.linear <= X &&
	                                !(n->x.conv.forgets & ~1) && n->x.conv.ahead >= 0 && n->x.conv.ahead <= 65536 &&
	                                vn_plan_check_shape(w->x, 2, VN_T, X, 0) && vn_plan_check_same_shape(w->x, w->y) &&
	                                m->rank == 3 && m->dim[0] == X && m->dim[1] == 1 && m->dim[2] == J);
}

vn_status vn_check_log_decay(const vn_plan_walk *w)
{
	return vn_plan_check_fit(
		w, vn_plan_check_row(w->x) && w->m->rank == 1 && vn_plan_check_shape(w->x, 2, VN_T, (int)w->m->dim[0], 0) &&
			   vn_shape_equal(w->m, &w->p->weight[w->n->w[1]].shape) && vn_plan_check_same_shape(w->x, w->y));
}

vn_status vn_check_delta_rule(const vn_plan_walk *w)
{
	const vn_node  *n = w->n;
	const vn_value *in[5];
	const int       nk = n->c.delta.key_heads, nv = n->c.delta.value_heads, dk = n->c.delta.key_dim,
			  dv = n->c.delta.value_dim;

	for (int k = 0; k < 5; k++)
		if (!vn_plan_check_row(in[k] = &w->p->value[n->in[k]]))
			return vn_plan_check_fit(w, false);
	if (nk < 1 || nv < 1 || dk < 1 || dv < 1 || nv % nk || !vn_plan_check_shape(in[VN_DELTA_Q], 3, VN_T, nk, dk) ||
	    !vn_plan_check_shape(in[VN_DELTA_K], 3, VN_T, nk, dk) ||
	    !vn_plan_check_shape(in[VN_DELTA_V], 3, VN_T, nv, dv) || !vn_plan_check_shape(in[VN_DELTA_G], 2, VN_T, nv, 0) ||
	    !vn_plan_check_shape(in[VN_DELTA_BETA], 2, VN_T, nv, 0) || !vn_plan_check_same_shape(in[VN_DELTA_V], w->y))
		return vn_plan_check_fail(
			w, "%d key heads of width %d and %d value heads of width %d do not fit the shapes of its inputs", nk, dk,
			nv, dv);
	return VN_OK;
}
