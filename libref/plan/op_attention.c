/* op_attention.c: how RoPE and attention are built, and their rules. */
#include "libref/plan/op_internal.h"

int vn_plan_rope(vn_builder *b, int x, const vn_rope *rope, vn_point out)
{
	if (b->status)
		return 0;
	const vn_value *v = &b->plan->value[x];
	if (v->rank != 3 || rope->rotary_dim > v->size[2] - rope->first || rope->rotary_dim < 2 || rope->rotary_dim % 2)
		return vn_build_fail(b, VN_ERR_SHAPE, "%s: the rotary width must be even and at most the head width", v->name);
	int y = vn_build_like(b, x, out);
	vn_build_node(b, (vn_node) { .op = VN_OP_ROPE, .c.rope.rope = *rope, VN_IN(1, x), VN_OUT(1, y) });
	return y;
}

int vn_plan_join(vn_builder *b, int a, int x, vn_point out)
{
	if (b->status)
		return 0;
	const vn_value u = b->plan->value[a], v = b->plan->value[x];
	const int      last = u.rank - 1, H = last > 1 ? u.size[1] : 1, G = last > 1 ? v.size[1] : 1;
	if (u.rank < 2 || u.rank > 3 || v.rank != u.rank || H % G)
		return vn_build_fail(b, VN_ERR_SHAPE, "%s: its heads cannot share those that are set beside them", u.name);
	int size[3] = { VN_T, H };
	size[last] = u.size[last] + v.size[last];
	int y = vn_build_value(b, out, u.rank, size);
	vn_build_node(b, (vn_node) { .op = VN_OP_JOIN, .c.join = { H, G, u.size[last] }, VN_IN(2, a, x), VN_OUT(1, y) });
	return y;
}

int vn_plan_attention(vn_builder *b, int q, int k, int v, double scale, int window)
{
	if (b->status)
		return 0;
	vn_value qv = b->plan->value[q], kv = b->plan->value[k], vv = b->plan->value[v];
	int      H = qv.size[1], G = kv.size[1], K = qv.size[2], U = vv.size[2];
	if (qv.rank != 3 || kv.rank != 3 || vv.rank != 3 || kv.size[2] != K || vv.size[1] != G || H % G)
		return vn_build_fail(b, VN_ERR_SHAPE, "%s: the shapes of queries, keys and values do not fit together",
		                     qv.name);
	vn_consts c = { .attention = { .scale = scale,
		                           .heads = H,
		                           .kv_heads = G,
		                           .head_dim = K,
		                           .causal = 1,
		                           .window = window,
		                           .value_dim = U == K ? 0 : U } };
	/* in execution order: the cache, scores, probabilities, context */
	int       keys = vn_build_value(b, VN_POINT_K_CACHE, 3, (int[]) { VN_S, G, K });
	int       values = vn_build_value(b, VN_POINT_V_CACHE, 3, (int[]) { VN_S, G, U });
	int       scores = vn_build_value(b, VN_POINT_ATTN_SCORES, 3, (int[]) { H, VN_T, VN_S });
	int       probs = vn_build_value(b, VN_POINT_ATTN_PROBS, 3, (int[]) { H, VN_T, VN_S });
	int       context = vn_build_value(b, VN_POINT_ATTN_CONTEXT, 3, (int[]) { VN_T, H, U });
	if (b->status)
		return 0;
	b->plan->value[keys].on_demand = b->plan->value[values].on_demand = true;
	b->plan->value[scores].on_demand = b->plan->value[probs].on_demand = true;
	vn_build_node(
		b, (vn_node) {
			   .op = VN_OP_ATTENTION, .c = c, VN_IN(3, q, k, v), VN_OUT(5, context, scores, probs, keys, values) });
	return context;
}

void vn_plan_sinks(vn_builder *b, int context, int w)
{
	for (int i = b->plan->n_nodes - 1; !b->status && i >= 0; i--) {
		vn_node *n = &b->plan->node[i];
		if (n->op != VN_OP_ATTENTION || n->out[VN_ATTN_CONTEXT] != context)
			continue;
		n->n_w = 1;
		n->w[VN_ATTN_SINKS] = w;
		return;
	}
}

vn_status vn_check_rope(const vn_plan_walk *w)
{
	const vn_node  *n = w->n;
	const vn_value *x = w->x;
	const int       R = n->c.rope.rope.rotary_dim;

	if (x->rank != 3 || !vn_plan_check_row(x) || !vn_plan_check_same_shape(x, w->y))
		return vn_plan_check_fit(w, false);
	if (R < 2 || R % 2 || R > x->size[2] - n->c.rope.rope.first)
		return vn_plan_check_fail(w, "rotary_dim is %d, expected an even number from 2 to %d, the columns of a head", R,
		                          x->size[2] - n->c.rope.rope.first);
	char why[VN_ROPE_WHY];
	return vn_rope_check(&n->c.rope.rope, w->p->list, w->p->n_lists, why) ? VN_OK : vn_plan_check_fail(w, "%s", why);
}

vn_status vn_check_join(const vn_plan_walk *w)
{
	const vn_value *b = &w->p->value[w->n->in[VN_JOIN_B]];
	const int       H = w->n->c.join.heads, G = w->n->c.join.shared, A = w->n->c.join.width;

	if (H == 1 && G == 1 && w->x->rank == 2)
		return vn_plan_check_fit(w, A >= 1 && b->rank == 2 && vn_plan_check_row(b) && vn_plan_check_row(w->y) &&
		                                b->size[1] <= INT32_MAX - A && vn_plan_check_shape(w->x, 2, VN_T, A, 0) &&
		                                vn_plan_check_shape(w->y, 2, VN_T, A + b->size[1], 0));
	return vn_plan_check_fit(w, H >= 1 && G >= 1 && A >= 1 && H % G == 0 && b->rank == 3 && vn_plan_check_row(b) &&
	                                vn_plan_check_row(w->x) && vn_plan_check_row(w->y) && b->size[2] <= INT32_MAX - A &&
	                                vn_plan_check_shape(w->x, 3, VN_T, H, A) &&
	                                vn_plan_check_shape(b, 3, VN_T, G, b->size[2]) &&
	                                vn_plan_check_shape(w->y, 3, VN_T, H, A + b->size[2]));
}

vn_keep_rule vn_node_keep_rule(const vn_plan *p, const vn_node *n)
{
	if (n->op != VN_OP_ATTENTION || n->n_in <= VN_ATTN_KEPT)
		return (vn_keep_rule) { -1, -1, -1, 0 };
	return (vn_keep_rule) { .state = n->state[VN_ATTN_KEYS],
		                    .input = VN_ATTN_KEPT,
		                    .rope = n->x.attention.again ? p->value[n->in[VN_ATTN_KEPT]].node : -1,
		                    .n = n->n_in - VN_ATTN_KEPT };
}

static bool has_further_keys(int form)
{
	return form == VN_CACHE_SEEN || form == VN_CACHE_TWICE;
}

vn_status vn_check_attention(const vn_plan_walk *w)
{
	const vn_plan  *p = w->p;
	const vn_node  *n = w->n;
	const vn_value *q = w->x, *k = &p->value[n->in[VN_ATTN_K]], *v = &p->value[n->in[VN_ATTN_V]];
	const int       H = n->c.attention.heads, G = n->c.attention.kv_heads, K = n->c.attention.head_dim,
			  U = vn_attention_value_dim(&n->c);

	if (!vn_plan_check_row(q) || !vn_plan_check_row(k) || !vn_plan_check_row(v))
		return vn_plan_check_fit(w, false);
	if (H < 1 || G < 1 || K < 1 || U < 1 || H % G || !vn_plan_check_shape(q, 3, VN_T, H, K) ||
	    !vn_plan_check_shape(k, 3, VN_T, G, K) || !vn_plan_check_shape(v, 3, VN_T, G, U) ||
	    !vn_plan_check_shape(w->y, 3, VN_T, H, U) ||
	    (n->n_in > VN_ATTN_KEPT && !vn_plan_check_same_shape(&p->value[n->in[VN_ATTN_KEPT]], k)) ||
	    (n->n_in > VN_ATTN_KEPT_VALUES && !vn_plan_check_same_shape(&p->value[n->in[VN_ATTN_KEPT_VALUES]], v)))
		return vn_plan_check_fail(w, "%d heads and %d key heads of width %d do not fit the shapes of its inputs", H, G,
		                          K);
	if (n->w[VN_ATTN_SINKS] >= 0 && !vn_shape_equal(w->m, &(vn_shape) { 1, { H } }))
		return vn_plan_check_fail(w, "its sinks are no vector of %d numbers", H);
	if (w->y->on_demand)
		return vn_plan_check_fail(w, "its context is computed only on demand, so keys and values would not be cached");
	for (int s = VN_ATTN_SCORES; s <= VN_ATTN_PROBS; s++)
		if (n->out[s] >= 0 &&
		    (!vn_plan_check_shape(&p->value[n->out[s]], 3, H, VN_T, VN_S) || !p->value[n->out[s]].on_demand))
			return vn_plan_check_fail(w,
			                          "its scores or probabilities have the wrong shape or are not computed on demand");
	if (n->x.attention.again &&
	    (n->n_in <= VN_ATTN_KEPT || p->node[p->value[n->in[VN_ATTN_KEPT]].node].op != VN_OP_ROPE))
		return vn_plan_check_fail(w, "again is 1, but the cached keys are not the output of a RoPE");
	if ((n->x.attention.cache && n->x.attention.cache_block < 1) ||
	    (n->x.attention.cache_of && has_further_keys(n->x.attention.cache)))
		return vn_plan_check_fail(w, "cache_form %d does not go with cache_block %d and cache_of %d",
		                          n->x.attention.cache, n->x.attention.cache_block, n->x.attention.cache_of);
	return VN_OK;
}
