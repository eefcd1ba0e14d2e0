/* op_linear.c: how tables, products and slices are built, and their rules. */
#include "libref/plan/op_internal.h"

/* Looks up rows of a table with at least `rows` rows. */
static int add_lookup(vn_builder *b, vn_op op, int w, int rows, const char *of_what, vn_point out)
{
	if (b->status)
		return 0;
	const vn_shape *s = &b->plan->weight[w].shape;
	if (s->rank != 2 || s->dim[0] != rows)
		return vn_build_fail(b, VN_ERR_SHAPE, of_what, b->plan->weight[w].name);
	int y = vn_build_value(b, out, 2, (int[]) { VN_T, (int)s->dim[1] });
	vn_build_node(b, (vn_node) { .op = op, VN_W(1, w), VN_OUT(1, y) });
	return y;
}

int vn_plan_embed(vn_builder *b, int w, vn_point out)
{
	return add_lookup(b, VN_OP_EMBED, w, b->plan->vocab, "weight %s does not have a row for every token", out);
}

int vn_plan_positions(vn_builder *b, int w, vn_point out)
{
	return add_lookup(b, VN_OP_POSITIONS, w, b->plan->context, "weight %s does not have a row for every position", out);
}

/* (T, heads, m/heads), or (T, m). */
static int in_heads(vn_builder *b, int m, int heads, vn_point out)
{
	return heads ? vn_build_value(b, out, 3, (int[]) { VN_T, heads, m / heads })
	             : vn_build_value(b, out, 2, (int[]) { VN_T, m });
}

/* x (T,n) times a weight (m,n), or (n,m) if transposed, and a bias (m) or -1. */
static int add_linear(vn_builder *b, int x, const int w[2], int transposed, int heads, vn_point out)
{
	if (b->status)
		return 0;
	const vn_shape *s = &b->plan->weight[w[0]].shape;
	if (s->rank != 2 || s->dim[!transposed] != vn_value_row(&b->plan->value[x]) ||
	    (heads && s->dim[transposed] % heads))
		return vn_build_fail(b, VN_ERR_SHAPE, "the shape of weight %s does not fit its input",
		                     b->plan->weight[w[0]].name);
	const vn_shape *of = w[1] >= 0 ? &b->plan->weight[w[1]].shape : NULL;
	if (of && (of->rank != 1 || of->dim[0] != s->dim[transposed]))
		return vn_build_fail(b, VN_ERR_SHAPE, "the shape of bias %s does not fit its weight",
		                     b->plan->weight[w[1]].name);
	int y = in_heads(b, (int)s->dim[transposed], heads, out);
	vn_build_node(
		b, (vn_node) {
			   .op = VN_OP_LINEAR, .c.linear.transposed = transposed, VN_IN(1, x), VN_W(2, w[0], w[1]), VN_OUT(1, y) });
	return y;
}

int vn_plan_linear(vn_builder *b, int x, int w, int bias, int heads, vn_point out)
{
	return add_linear(b, x, (int[]) { w, bias }, 0, heads, out);
}

int vn_plan_conv1d(vn_builder *b, int x, int w, int bias, int heads, vn_point out)
{
	return add_linear(b, x, (int[]) { w, bias }, 1, heads, out);
}

int vn_plan_slice(vn_builder *b, int x, vn_columns c, int heads, vn_point out)
{
	if (b->status)
		return 0;
	const int       stride = c.stride, from = c.from, width = c.width;
	const vn_value *v = &b->plan->value[x];
	const int64_t   row = vn_value_row(v), all = stride < 1 ? 0 : row / stride * width;
	if (stride < 1 || row % stride || from < 0 || width < 1 || width > stride || from > stride - width ||
	    (heads && all % heads))
		return vn_build_fail(b, VN_ERR_SHAPE, "%s: its input does not have the columns to take", v->name);
	int y = in_heads(b, (int)all, heads, out);
	vn_build_node(b, (vn_node) { .op = VN_OP_SLICE, .c.slice = c, VN_IN(1, x), VN_OUT(1, y) });
	return y;
}

/* A table with a row for each of n. */
static bool table_fits(const vn_plan_walk *w, int n)
{
	return w->m->rank == 2 && w->m->dim[0] >= n && vn_plan_check_shape(w->y, 2, VN_T, (int)w->m->dim[1], 0);
}

vn_status vn_check_embed(const vn_plan_walk *w)
{
	return vn_plan_check_fit(w, table_fits(w, w->p->vocab));
}

vn_status vn_check_positions(const vn_plan_walk *w)
{
	return vn_plan_check_fit(w, table_fits(w, w->p->context));
}

vn_status vn_check_linear(const vn_plan_walk *w)
{
	const vn_shape *m = w->m, *bias = w->n->w[1] >= 0 ? &w->p->weight[w->n->w[1]].shape : NULL;
	const int       transposed = w->n->c.linear.transposed;

	return vn_plan_check_fit(w, m->rank == 2 && vn_plan_check_row(w->x) == m->dim[!transposed] &&
	                                vn_plan_check_row(w->y) == m->dim[transposed] &&
	                                (w->y->rank == 2 || w->y->rank == 3) &&
	                                (!bias || (bias->rank == 1 && bias->dim[0] == m->dim[transposed])));
}

vn_status vn_check_slice(const vn_plan_walk *w)
{
	const int     stride = w->n->c.slice.stride, from = w->n->c.slice.from, width = w->n->c.slice.width;
	const int64_t row = vn_plan_check_row(w->x);

	return vn_plan_check_fit(w, row && vn_plan_check_row(w->y) && stride >= 1 && row % stride == 0 && from >= 0 &&
	                                width >= 1 && width <= stride && from <= stride - width &&
	                                row / stride * width == vn_plan_check_row(w->y));
}
