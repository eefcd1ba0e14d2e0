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
	vn_build_node(b, op, (vn_consts) { 0 }, 0, NULL, 1, &w, 1, &y);
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

static int add_linear(vn_builder *b, int x, int w, int bias, int transposed, int heads, vn_point out)
{
	if (b->status)
		return 0;
	const vn_shape *s = &b->plan->weight[w].shape;
	if (s->rank != 2 || s->dim[!transposed] != vn_value_row(&b->plan->value[x]) ||
	    (heads && s->dim[transposed] % heads))
		return vn_build_fail(b, VN_ERR_SHAPE, "the shape of weight %s does not fit its input", b->plan->weight[w].name);
	const vn_shape *of = bias >= 0 ? &b->plan->weight[bias].shape : NULL;
	if (of && (of->rank != 1 || of->dim[0] != s->dim[transposed]))
		return vn_build_fail(b, VN_ERR_SHAPE, "the shape of bias %s does not fit its weight",
		                     b->plan->weight[bias].name);
	int y = in_heads(b, (int)s->dim[transposed], heads, out);
	vn_build_node(b, VN_OP_LINEAR, (vn_consts) { .linear.transposed = transposed }, 1, &x, 2, (int[]) { w, bias }, 1,
	              &y);
	return y;
}

int vn_plan_linear(vn_builder *b, int x, int w, int bias, int heads, vn_point out)
{
	return add_linear(b, x, w, bias, 0, heads, out);
}

int vn_plan_conv1d(vn_builder *b, int x, int w, int bias, int heads, vn_point out)
{
	return add_linear(b, x, w, bias, 1, heads, out);
}

int vn_plan_slice(vn_builder *b, int x, int stride, int from, int width, int heads, vn_point out)
{
	if (b->status)
		return 0;
	const vn_value *v = &b->plan->value[x];
	const int64_t   row = vn_value_row(v), all = stride < 1 ? 0 : row / stride * width;
	if (stride < 1 || row % stride || from < 0 || width < 1 || width > stride || from > stride - width ||
	    (heads && all % heads))
		return vn_build_fail(b, VN_ERR_SHAPE, "%s: its input does not have the columns to take", v->name);
	int y = in_heads(b, (int)all, heads, out);
	vn_build_node(b, VN_OP_SLICE, (vn_consts) { .slice = { stride, from, width } }, 1, &x, 0, NULL, 1, &y);
	return y;
}

vn_status vn_check_embed(const vn_plan_walk *w, int i)
{
	const vn_plan  *p = w->p;
	const vn_node  *n = &p->node[i];
	const vn_value *y = &p->value[n->out[0]];
	const vn_shape *m = &p->weight[n->w[0]].shape;

	return m->rank == 2 && m->dim[0] >= p->vocab && vn_plan_check_shape(y, 2, VN_T, (int)m->dim[1], 0)
	           ? VN_OK
	           : vn_plan_check_unfit(w, i);
}

vn_status vn_check_positions(const vn_plan_walk *w, int i)
{
	const vn_plan  *p = w->p;
	const vn_node  *n = &p->node[i];
	const vn_value *y = &p->value[n->out[0]];
	const vn_shape *m = &p->weight[n->w[0]].shape;

	return m->rank == 2 && m->dim[0] >= p->context && vn_plan_check_shape(y, 2, VN_T, (int)m->dim[1], 0) &&
	               !(n->x.positions.step_zero & ~1)
	           ? VN_OK
	           : vn_plan_check_unfit(w, i);
}

static bool linear_fits(const vn_value *x, const vn_value *y, const vn_shape *w, int transposed, const vn_shape *bias)
{
	return !(transposed & ~1) && w->rank == 2 && vn_plan_check_row(x) == w->dim[!transposed] &&
	       vn_plan_check_row(y) == w->dim[transposed] && (y->rank == 2 || y->rank == 3) &&
	       (!bias || (bias->rank == 1 && bias->dim[0] == w->dim[transposed]));
}

vn_status vn_check_linear(const vn_plan_walk *w, int i)
{
	const vn_plan  *p = w->p;
	const vn_node  *n = &p->node[i];
	const vn_value *x = &p->value[n->in[0]], *y = &p->value[n->out[0]];
	const vn_shape *m = &p->weight[n->w[0]].shape;
	const vn_shape *bias = n->w[1] >= 0 ? &p->weight[n->w[1]].shape : NULL;

	return linear_fits(x, y, m, n->c.linear.transposed, bias) ? VN_OK : vn_plan_check_unfit(w, i);
}

static bool slice_fits(const vn_value *x, const vn_value *y, int stride, int from, int width)
{
	return vn_plan_check_row(x) && vn_plan_check_row(y) && stride >= 1 && vn_plan_check_row(x) % stride == 0 &&
	       from >= 0 && width >= 1 && width <= stride && from <= stride - width &&
	       vn_plan_check_row(x) / stride * width == vn_plan_check_row(y);
}

vn_status vn_check_slice(const vn_plan_walk *w, int i)
{
	const vn_plan  *p = w->p;
	const vn_node  *n = &p->node[i];
	const vn_value *x = &p->value[n->in[0]], *y = &p->value[n->out[0]];

	return slice_fits(x, y, n->c.slice.stride, n->c.slice.from, n->c.slice.width) ? VN_OK : vn_plan_check_unfit(w, i);
}
