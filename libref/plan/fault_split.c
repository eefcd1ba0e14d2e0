/* fault_split.c: faults of fused weights (specs/faults.md, chapters A and W). */
#include "libref/plan/fault_internal.h"

/* x: three digits, which part is taken for the first, second and third. */
int vn_fault_part(const vn_fault_row *r, const vn_node *n)
{
	const int order = (int)r->x, digit[] = { order / 100, order / 10 % 10, order % 10 };
	return digit[n->c.slice.from / n->c.slice.width];
}

static vn_status take_rows(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err);

vn_status vn_make_other_part(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];

	if (n->op == VN_OP_LINEAR)
		return take_rows(r, f, node, err);
	return vn_const_set(n, "from", vn_fault_part(r, n) * n->c.slice.width, err);
}

/* Head h of the product holds its queries, keys and values. */
vn_status vn_make_by_heads(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node  *n = &f->plan->node[node];
	const int K = f->plan->value[n->out[0]].size[2], which = n->c.slice.from / n->c.slice.width;

	(void)r, (void)err;
	n->c.slice.stride = 3 * K;
	n->c.slice.from = which * K;
	n->c.slice.width = K;
	return VN_OK;
}

/* Finds a layer's query, key and value products (siblings), when each has its own matrix. Returns
 * the index of n among them; -1: there are no such products. */
static int of_own(const vn_plan *p, const vn_node *n, const vn_node *sibling[3])
{
	static const vn_point of[] = { VN_POINT_Q_PROJ, VN_POINT_K_PROJ, VN_POINT_V_PROJ };
	int                   which = -1;

	for (int i = 0; i < 3; i++) {
		const int v = vn_fault_value(p, n->layer, of[i]);
		sibling[i] = v < 0 ? NULL : &p->node[p->value[v].node];
		if (!sibling[i] || sibling[i]->op != VN_OP_LINEAR || sibling[i]->c.linear.transposed || p->value[v].rank != 3 ||
		    p->weight[sibling[i]->w[0]].shape.dim[1] != p->weight[n->w[0]].shape.dim[1] ||
		    (sibling[i]->w[1] < 0) != (n->w[1] < 0))
			return -1;
		which = vn_fault_point(p, n) == of[i] ? i : which;
	}
	return which;
}

int vn_fault_groups(const vn_plan *p, const vn_node *n)
{
	const vn_node *s[3];
	const int      which = vn_fault_point(p, n) == VN_POINT_LOGITS ? -1 : of_own(p, n, s);
	const int H = which < 0 ? 0 : p->value[s[0]->out[0]].size[1], G = which < 0 ? 0 : p->value[s[1]->out[0]].size[1];

	return which < 0 ? -1 : G > 1 && H % G ? 0 : G;
}

/* The order of three matrices joined to one, three digits: in which they are split, though they are
 * queries, keys, values; 1000 more: in which they are stored, though they are split as queries,
 * keys, values. */
static vn_arrange joined_order(const vn_fault_row *r, int64_t H, int64_t G)
{
	const int order = (int)r->x % 1000;

	/* the digits of a split say which part is taken for queries, keys, values: its inverse */
	vn_arrange m = { r->x >= 1000 ? VN_ARRANGE_PARTS : VN_ARRANGE_SECTIONS, .a = 1, .part = { H, G, G } };
	for (int i = 0; i < 3; i++) {
		const int digit = i == 0 ? order / 100 : i == 1 ? order / 10 % 10 : order % 10;
		m.order[r->x >= 1000 ? i : digit] = r->x >= 1000 ? digit : i;
	}
	return m;
}

bool vn_fault_rows_move(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const vn_node   *s[3];
	const int        which = of_own(p, n, s);
	const int64_t    H = p->value[s[0]->out[0]].size[1], G = p->value[s[1]->out[0]].size[1];
	const vn_arrange m = joined_order(r, H, G);
	const int64_t    first = which == 0 ? 0 : which == 1 ? H : H + G;

	/* parts of one size: to be stored in an order is to be split in another */
	return (r->x < 1000 || H != G) && vn_arranged(&m, first, H + 2 * G) != first;
}

/* The product takes rows of its size out of the three. */
static vn_status take_rows(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node   *s[3];
	const int        which = of_own(f->unmodified, vn_fault_unmodified(f, node), s);
	const int64_t    H = f->unmodified->value[s[0]->out[0]].size[1], G = f->unmodified->value[s[1]->out[0]].size[1];
	const vn_arrange other = joined_order(r, H, G);

	return vn_fault_mix(f, node, &(vn_fault_joined) { s, (int64_t[]) { H, G, G }, 3, which }, &other, err);
}

/* Two orders of heads: all queries, all keys, all values; or, group by group, queries, key and
 * value. x: 0: takes the grouped order for the other; 1: the reverse. */
vn_status vn_make_regrouped(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node   *s[3];
	const int        which = of_own(f->unmodified, vn_fault_unmodified(f, node), s);
	const int64_t    H = f->unmodified->value[s[0]->out[0]].size[1], G = f->unmodified->value[s[1]->out[0]].size[1];
	const vn_arrange other = { r->x == 0 ? VN_ARRANGE_PARTS : VN_ARRANGE_SECTIONS, .a = G, .part = { H / G, 1, 1 },
		                       .order = { 0, 1, 2 } };

	return vn_fault_mix(f, node, &(vn_fault_joined) { s, (int64_t[]) { H, G, G }, 3, which }, &other, err);
}

vn_status vn_make_in_halves(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node  *n = &f->plan->node[node];
	const int all = (int)vn_value_row(&f->plan->value[n->out[0]]), K = n->c.slice.width;
	const int second = n->c.slice.from > 0;

	(void)err;
	if (r->x > 0)
		n->c.slice.stride = 2 * all, n->c.slice.width = all, n->c.slice.from = second ? all : 0;
	else
		n->c.slice.from = second ? 0 : K;
	return VN_OK;
}
