/* op_elementwise.c: how operations on single numbers and on rows are built, and their rules. */
#include "libref/plan/op_internal.h"

#include <string.h>

int vn_plan_map(vn_builder *b, vn_op op, int x, vn_point out)
{
	if (b->status)
		return 0;
	int y = vn_build_like(b, x, out);
	vn_build_node(b, (vn_node) { .op = op, VN_IN(1, x), VN_OUT(1, y) });
	return y;
}

int vn_plan_act(vn_builder *b, vn_act act, int x, vn_point out, bool on_demand)
{
	const int y = vn_plan_map(b, VN_OP_ACT, x, out);
	vn_plan_set(b, y, "act", act);
	if (!b->status)
		b->plan->value[y].on_demand = on_demand;
	return y;
}

/* Adds an operation on two inputs of one shape. */
static int add_pair(vn_builder *b, vn_op op, vn_consts c, int a, int x, vn_point out)
{
	if (b->status)
		return 0;
	vn_value u = b->plan->value[a], v = b->plan->value[x];
	if (u.rank != v.rank || memcmp(u.size, v.size, (size_t)u.rank * sizeof *u.size) != 0)
		return vn_build_fail(b, VN_ERR_SHAPE, "%s: its two inputs have different shapes", u.name);
	int y = vn_build_like(b, x, out);
	vn_build_node(b, (vn_node) { .op = op, .c = c, VN_IN(2, a, x), VN_OUT(1, y) });
	return y;
}

int vn_plan_gated(vn_builder *b, vn_act act, int gate, int up, vn_point out)
{
	return add_pair(b, VN_OP_GATED, (vn_consts) { .act.act = act }, gate, up, out);
}

int vn_plan_add(vn_builder *b, int a, int x, vn_point out)
{
	return add_pair(b, VN_OP_ADD, (vn_consts) { 0 }, a, x, out);
}

int vn_plan_delay(vn_builder *b, int x, vn_point out)
{
	if (b->status)
		return 0;
	const vn_value v = b->plan->value[x];
	if (v.rank != 2)
		return vn_build_fail(b, VN_ERR_SHAPE, "%s: only rows of one axis can be delayed", v.name);
	int y = vn_build_like(b, x, out), state = vn_build_value(b, VN_POINT_MTP_HIDDEN_STATE, 2, (int[]) { 1, v.size[1] });
	vn_build_node(b, (vn_node) { .op = VN_OP_DELAY, .c.delay = { v.size[1] }, VN_IN(1, x), VN_OUT(2, y, state) });
	return y;
}

vn_status vn_check_delay(const vn_plan_walk *w)
{
	return vn_plan_check_fit(w, vn_plan_check_row(w->x) && !w->x->wide && !w->y->wide &&
	                                vn_plan_check_shape(w->x, 2, VN_T, w->n->c.delay.columns, 0) &&
	                                vn_plan_check_same_shape(w->x, w->y));
}

vn_status vn_check_act(const vn_plan_walk *w)
{
	const vn_node *n = w->n;

	if (!vn_plan_check_row(w->x) || !vn_plan_check_same_shape(w->x, w->y) ||
	    (n->n_in > 1 && !vn_plan_check_same_shape(w->x, &w->p->value[n->in[1]])))
		return vn_plan_check_fit(w, false);
	return VN_OK;
}

vn_status vn_check_map(const vn_plan_walk *w)
{
	bool fit = vn_plan_check_row(w->x) && vn_plan_check_same_shape(w->x, w->y);

	for (int i = 1; i < w->n->n_in; i++)
		fit = fit && vn_plan_check_same_shape(w->x, &w->p->value[w->n->in[i]]);
	return vn_plan_check_fit(w, fit);
}

vn_status vn_check_rows(const vn_plan_walk *w)
{
	const vn_node *n = w->n;
	const int64_t  row = vn_plan_check_row(w->x);

	if (!row || row != vn_plan_check_row(&w->p->value[n->in[1]]) || !vn_plan_check_same_shape(w->x, w->y))
		return vn_plan_check_fit(w, false);
	if (((n->x.rows.form == VN_ROWS_TILES || n->x.rows.form >= VN_ROWS_APART) && n->x.rows.by < 1) ||
	    (n->x.rows.form == VN_ROWS_ROUND && (n->x.rows.by < 0 || n->x.rows.by >= row)) ||
	    (n->x.rows.form == VN_ROWS_PARTS_FIRST && (n->x.rows.inner < 1 || row % n->x.rows.inner)))
		return vn_plan_check_fail(w, "invalid form %d, by %d or inner %d", n->x.rows.form, n->x.rows.by,
		                          n->x.rows.inner);
	return VN_OK;
}
