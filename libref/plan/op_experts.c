/* op_experts.c: how the operations of experts are built, and their rules. */
#include "libref/plan/op_internal.h"

int vn_plan_top_k(vn_builder *b, int x, int bias, int k, vn_point out)
{
	if (b->status)
		return 0;
	const vn_value v = b->plan->value[x];
	if (v.rank != 2 || k > v.size[1])
		return vn_build_fail(b, VN_ERR_SHAPE, "%s: it has fewer columns than are to be chosen", v.name);
	int y = vn_build_wide(b, vn_build_value(b, out, 2, (int[]) { VN_T, k }));
	vn_build_node(
		b,
		(vn_node) {
			.op = VN_OP_TOP_K, .c.top_k = { .columns = v.size[1], .k = k }, VN_IN(1, x), VN_W(1, bias), VN_OUT(1, y) });
	return y;
}

int vn_plan_route(vn_builder *b, int logits, int ids, bool normalised, bool wide, vn_point out)
{
	if (b->status)
		return 0;
	int y = vn_build_like(b, ids, out);
	if (wide)
		vn_build_wide(b, y);
	vn_build_node(b, (vn_node) { .op = VN_OP_ROUTE,
	                             .c.route = { .columns = b->plan->value[logits].size[1], .normalised = normalised },
	                             VN_IN(2, logits, ids),
	                             VN_W(1, -1),
	                             VN_OUT(1, y) });
	return y;
}

int vn_plan_experts(vn_builder *b, int x, int ids, const int w[2 * VN_EXPERT_KINDS], int experts, vn_act act,
                    vn_point out)
{
	if (b->status)
		return 0;
	const int D = (int)vn_value_row(&b->plan->value[x]), k = b->plan->value[ids].size[1];
	int       y = vn_build_value(b, out, 3, (int[]) { VN_T, k, D });
	vn_build_node(b, (vn_node) { .op = VN_OP_EXPERTS,
	                             .c.experts = { .experts = experts, .act = act },
	                             VN_IN(2, x, ids),
	                             VN_W(2 * VN_EXPERT_KINDS, w[0], w[1], w[2], w[3], w[4], w[5]),
	                             VN_OUT(1, y) });
	return y;
}

int vn_plan_combine(vn_builder *b, int x, int weights, vn_point out)
{
	if (b->status)
		return 0;
	const vn_value v = b->plan->value[x];
	const int      k = v.rank == 3 ? v.size[1] : 1;
	int            y = vn_build_value(b, out, 2, (int[]) { VN_T, v.size[v.rank - 1] });
	vn_build_node(b, (vn_node) { .op = VN_OP_COMBINE, .c.combine.slots = k, VN_IN(2, x, weights), VN_OUT(1, y) });
	return y;
}

/* Is there no bias, or one number for each column? */
static bool bias_fits(const vn_plan_walk *w, int columns)
{
	return !w->m || vn_shape_equal(w->m, &(vn_shape) { 1, { columns } });
}

vn_status vn_check_top_k(const vn_plan_walk *w)
{
	const vn_consts *c = &w->n->c;
	const int        k = c->top_k.k, skip = w->n->x.top_k.skip, groups = c->top_k.groups, E = c->top_k.columns;

	if (!bias_fits(w, E) || !vn_plan_check_shape(w->x, 2, VN_T, E, 0) || !vn_plan_check_row(w->x) ||
	    !vn_plan_check_shape(w->y, 2, VN_T, k, 0))
		return vn_plan_check_fit(w, false);
	if (k < 1 || skip < 0 || k > w->x->size[1] - skip)
		return vn_plan_check_fail(w, "%d of %d columns cannot be chosen", k, w->x->size[1]);
	if ((w->m && !c->top_k.sigmoid) ||
	    (groups && (E % groups || c->top_k.groups_used < 1 || c->top_k.groups_used > groups || c->top_k.best < 1 ||
	                c->top_k.best > E / groups || k > E / groups * c->top_k.groups_used - skip)))
		return vn_plan_check_fail(w, "invalid sigmoid %d, groups %d, groups_used %d or best %d", c->top_k.sigmoid,
		                          groups, c->top_k.groups_used, c->top_k.best);
	return VN_OK;
}

vn_status vn_check_route(const vn_plan_walk *w)
{
	const vn_value *ids = &w->p->value[w->n->in[VN_ROUTE_IDS]];

	if (w->n->x.route.form == VN_ROUTE_BIASED && !w->m)
		return vn_plan_check_fail(w, "form %d needs a bias", w->n->x.route.form);
	return vn_plan_check_fit(w, bias_fits(w, w->n->c.route.columns) &&
	                                vn_plan_check_shape(w->x, 2, VN_T, w->n->c.route.columns, 0) &&
	                                vn_plan_check_row(w->x) && ids->rank == 2 && vn_plan_check_row(ids) &&
	                                vn_plan_check_same_shape(ids, w->y));
}

/* Do weights `slot` exist for all experts, in this shape? */
static bool has_each(const vn_plan_walk *w, int slot, vn_shape shape)
{
	const int first = w->n->w[slot], E = w->n->c.experts.experts;
	bool      fit = E >= 1 && first <= w->p->n_weights - E;

	for (int e = 0; fit && e < E; e++)
		fit = vn_shape_equal(&w->p->weight[first + e].shape, &shape);
	return fit;
}

/* Do all weights of a kind exist, in this shape, and its biases, if there are any? */
static bool has_weights(const vn_plan_walk *w, int kind, int64_t M, int64_t N)
{
	return has_each(w, kind, (vn_shape) { 2, { M, N } }) &&
	       (w->n->w[VN_EXPERT_KINDS + kind] < 0 || has_each(w, VN_EXPERT_KINDS + kind, (vn_shape) { 1, { M } }));
}

vn_status vn_check_experts(const vn_plan_walk *w)
{
	const vn_node  *n = w->n;
	const vn_value *ids = &w->p->value[n->in[VN_EXPERTS_IDS]];
	const int64_t   D = vn_plan_check_row(w->x), F = w->m->rank == 2 ? w->m->dim[0] : 0;

	if (n->x.experts.moved <= -n->c.experts.experts || n->x.experts.moved >= n->c.experts.experts)
		return vn_plan_check_fail(w, "moved is %d, but there are %d experts", n->x.experts.moved, n->c.experts.experts);
	return vn_plan_check_fit(w, D && ids->rank == 2 && vn_plan_check_row(ids) && w->y->rank == 3 &&
	                                vn_plan_check_shape(w->y, 3, VN_T, ids->size[1], (int)D) &&
	                                vn_plan_check_row(w->y) && has_weights(w, VN_EXPERT_GATE, F, D) &&
	                                has_weights(w, VN_EXPERT_UP, F, D) && has_weights(w, VN_EXPERT_DOWN, D, F));
}

vn_status vn_check_combine(const vn_plan_walk *w)
{
	const vn_value *weights = &w->p->value[w->n->in[VN_COMBINE_WEIGHTS]];
	const int       k = w->n->c.combine.slots, rank = w->x->rank;

	return vn_plan_check_fit(w, vn_plan_check_row(w->x) && (rank == 3 ? w->x->size[1] == k : rank == 2 && k == 1) &&
	                                vn_plan_check_shape(weights, 2, VN_T, k, 0) &&
	                                vn_plan_check_shape(w->y, 2, VN_T, w->x->size[rank - 1], 0));
}
