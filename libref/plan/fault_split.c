/* fault_split.c: faults of fused weights (specs/faults.md, chapters A and W). */
#include "libref/plan/fault_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* x: three digits, which part is taken for the first, second and third. */
int vn_fault_part(const vn_fault_row *r, const vn_node *n)
{
	const int order = (int)r->x, digit[] = { order / 100, order / 10 % 10, order % 10 };
	return digit[n->c.slice.from / n->c.slice.width];
}

vn_status vn_make_other_part(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];
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

/* Swaps parts a and b of three: x is 10 a + b. */
vn_status vn_make_exchange_parts(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const int64_t    M = vn_value_row(&f->plan->value[f->plan->node[node].out[0]]);
	const vn_arrange exchanged = { VN_ARRANGE_EXCHANGED, .a = (int)r->x / 10, .b = (int)r->x % 10, .each = M / 3 };

	return vn_fault_arrange_outputs(f, node, &exchanged, err);
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

/* Two orders of heads: all queries, all keys, all values; or, group by group, queries, key and
 * value. Returns the place in one order that the place in the other comes from. */
static int other_place(int place, int H, int G, bool grouped)
{
	const vn_arrange other = { grouped ? VN_ARRANGE_PARTS : VN_ARRANGE_SECTIONS, .a = G, .part = { H / G, 1, 1 },
		                       .order = { 0, 1, 2 } };

	return (int)vn_arranged(&other, place, H + 2 * G);
}

/* x: 0: takes the grouped order for the other; 1: the reverse. */
vn_status vn_make_regrouped(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *s[3], *n = vn_fault_unmodified(f, node);
	const int      which = of_own(f->unmodified, n, s), H = f->unmodified->value[s[0]->out[0]].size[1],
			  G = f->unmodified->value[s[1]->out[0]].size[1];
	const int first = which == 0 ? 0 : which == 1 ? H : H + G, heads = which ? G : H;
	vn_status st = VN_OK;

	for (int k = 0; k < 2 && !st && n->w[k] >= 0; k++) {
		double *x[3], *y = vn_fault_numbers(f, n->w[k]);
		int new = -1;
		for (int i = 0; i < 3; i++)
			x[i] = vn_fault_numbers(f, s[i]->w[k]);
		const bool   good = x[0] && x[1] && x[2] && y;
		const size_t head = (size_t)vn_shape_count(&f->unmodified->weight[n->w[k]].shape) / (size_t)heads;
		for (int h = 0; good && h < heads; h++) {
			const int from = other_place(first + h, H, G, r->x == 0), of = from < H ? 0 : from < H + G ? 1 : 2;
			memcpy(y + (size_t)h * head,
			       x[of] + (size_t)(from - (of == 0   ? 0
			                                : of == 1 ? H
			                                          : H + G)) *
			                   head,
			       head * sizeof *y);
		}
		for (int i = 0; i < 3; i++)
			free(x[i]);
		if (!good)
			free(y);
		if (!(st = good ? vn_fault_weight(f, n->w[k], y, NULL, &new, err)
		                : vn_fail(err, VN_ERR_NOMEM, "no memory for a fault")))
			f->plan->node[node].w[k] = new;
	}
	return st;
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
