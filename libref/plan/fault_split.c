/* fault_split.c: faults of weights of several products in one (specs/models.md, 9.4 and 9.5). */
#include "libref/plan/fault_inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A part of three that follow one another in a fused product. */
static const char *of_three(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const vn_point at = vn_fault_point(p, n);
	(void)r;
	return n->c.slice.stride != 3 * n->c.slice.width || (at != VN_POINT_Q_PROJ && at != VN_POINT_K_PROJ && at != VN_POINT_V_PROJ)
	           ? "it is for queries, keys and values out of one product" : NULL;
}

/* x: as digits, which part is taken for the first, the second and the third. */
static int part(const vn_fault_row *r, const vn_node *n)
{
	const int order = (int)r->x, digit[] = { order / 100, order / 10 % 10, order % 10 };
	return digit[n->c.slice.from / n->c.slice.width];
}

static const char *part_of_three(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const char *why = of_three(r, p, n);
	return why ? why : part(r, n) == n->c.slice.from / n->c.slice.width ? "this part stays where it is" : NULL;
}

static vn_status other_part(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];
	return vn_const_set(n, "from", part(r, n) * n->c.slice.width, err);
}

/* Head h of the product holds its queries, its keys, its values. */
static vn_status by_heads(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node  *n = &f->plan->node[node];
	const int K = f->plan->value[n->out[0]].size[2], which = n->c.slice.from / n->c.slice.width;

	(void)r, (void)err;
	n->c.slice.stride = 3 * K;
	n->c.slice.from = which * K;
	n->c.slice.width = K;
	return VN_OK;
}

static const char *fused(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return vn_fault_point(p, n) != VN_POINT_C_ATTN ? "it is for queries, keys and values in one product" : NULL;
}

/* Parts a and b of three exchanged, of the M outputs, which lie last in a transposed matrix: x is 10 a + b, less than 0 for those. */
static void exchanged(const vn_fault_row *r, const vn_shape *s, const double *x, double *y)
{
	const int     pair = (int)fabs(r->x), a = pair / 10, b = pair % 10;
	const bool    last = r->x < 0 && s->rank > 1;
	const int64_t M = s->dim[last], N = vn_shape_count(s) / M, part = M / 3;

	for (int64_t m = 0; m < M; m++) {
		const int64_t is = m / part, from = m + (is == a ? b - a : is == b ? a - b : 0) * part;
		for (int64_t n = 0; n < N; n++)
			y[last ? n * M + m : m * N + n] = x[last ? n * M + from : from * N + n];
	}
}

static vn_status exchange_parts(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change_both(r, f, node, f->plan->node[node].c.linear.transposed ? -r->x : r->x, exchanged, err);
}

/* The products of queries, keys and values of a layer (siblings), each by a matrix of its own, and which of them n is; -1: there are none such. */
static int of_own(const vn_plan *p, const vn_node *n, const vn_node *sibling[3])
{
	static const vn_point of[] = { VN_POINT_Q_PROJ, VN_POINT_K_PROJ, VN_POINT_V_PROJ };
	int                   which = -1;

	for (int i = 0; i < 3; i++) {
		const int v = vn_fault_value(p, n->layer, of[i]);
		sibling[i] = v < 0 ? NULL : &p->node[p->value[v].node];
		if (!sibling[i] || sibling[i]->op != VN_OP_LINEAR || sibling[i]->c.linear.transposed || p->value[v].rank != 3 ||
		    p->weight[sibling[i]->w[0]].shape.dim[1] != p->weight[n->w[0]].shape.dim[1] || (sibling[i]->w[1] < 0) != (n->w[1] < 0))
			return -1;
		which = vn_fault_point(p, n) == of[i] ? i : which;
	}
	return which;
}

static const char *in_groups(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const vn_node *s[3];
	const int      which = vn_fault_point(p, n) == VN_POINT_LOGITS ? -1 : of_own(p, n, s), G = which < 0 ? 0 : p->value[s[1]->out[0]].size[1];

	(void)r;
	return which < 0 ? "it is for queries, keys and values by matrices of their own"
	     : G == 1    ? "with one key head groups follow one another as the whole does"
	     : p->value[s[0]->out[0]].size[1] % G ? "its heads make no groups" : NULL;
}

/* Heads in a row, all queries, all keys, all values, or group by group, queries, key and value: where in the one order a place of the other is. */
static int other_place(int place, int H, int G, bool grouped)
{
	const int r = H / G, each = r + 2, g = place / each, i = place % each;

	if (grouped)
		return i < r ? g * r + i : H + (i - r) * G + g;
	return place < H ? place / r * each + place % r : (place - H) % G * each + r + (place - H) / G;
}

/* x: 0: what lies in groups is taken for a row of heads; 1: back. */
static vn_status regrouped(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *s[3], *n = vn_fault_sound(f, node);
	const int      which = of_own(f->sound, n, s), H = f->sound->value[s[0]->out[0]].size[1], G = f->sound->value[s[1]->out[0]].size[1];
	const int      first = which == 0 ? 0 : which == 1 ? H : H + G, heads = which ? G : H;
	vn_status      st = VN_OK;

	for (int k = 0; k < 2 && !st && n->w[k] >= 0; k++) {
		double *x[3], *y = vn_fault_numbers(f, n->w[k]);
		int     new = -1;
		for (int i = 0; i < 3; i++)
			x[i] = vn_fault_numbers(f, s[i]->w[k]);
		const bool   good = x[0] && x[1] && x[2] && y;
		const size_t head = (size_t)vn_shape_count(&f->sound->weight[n->w[k]].shape) / (size_t)heads;
		for (int h = 0; good && h < heads; h++) {
			const int from = other_place(first + h, H, G, r->x == 0), of = from < H ? 0 : from < H + G ? 1 : 2;
			memcpy(y + (size_t)h * head, x[of] + (size_t)(from - (of == 0 ? 0 : of == 1 ? H : H + G)) * head, head * sizeof *y);
		}
		for (int i = 0; i < 3; i++)
			free(x[i]);
		if (!good)
			free(y);
		if (!(st = good ? vn_fault_weight(f, n->w[k], y, NULL, &new, err) : vn_fail(err, VN_ERR_NOMEM, "no memory for a fault")))
			f->plan->node[node].w[k] = new;
	}
	return st;
}

/* Queries and gates of Qwen3.5, head by head in one product. */
static const char *of_pairs(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const vn_node *x = vn_fault_maker(p, n, 0);
	return vn_fault_point(p, x) != VN_POINT_QG_PROJ ? "it is for queries and gates out of one product"
	     : r->x > 0 && p->value[n->out[0]].size[1] == 1 ? "there is one head" : NULL;
}

static vn_status in_halves(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
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

static const vn_fault_row rows[] = {
	{ "A16", "a matrix of queries, keys and values in groups taken for all queries, all keys, all values", VN_ON(LINEAR), in_groups, regrouped, NULL, 0 },
	{ "W2.qvk", "queries, keys and values split as q, v, k", VN_ON(SLICE), part_of_three, other_part, NULL, 21 },
	{ "W2.kqv", "queries, keys and values split as k, q, v", VN_ON(SLICE), part_of_three, other_part, NULL, 102 },
	{ "W2.kvq", "queries, keys and values split as k, v, q", VN_ON(SLICE), part_of_three, other_part, NULL, 201 },
	{ "W2.vqk", "queries, keys and values split as v, q, k", VN_ON(SLICE), part_of_three, other_part, NULL, 120 },
	{ "W2.vkq", "queries, keys and values split as v, k, q", VN_ON(SLICE), part_of_three, other_part, NULL, 210 },
	{ "W2.heads", "queries, keys and values split head by head", VN_ON(SLICE), of_three, by_heads, NULL, 0 },
	{ "W2.groups", "queries, keys and values split group by group: queries, key, value", VN_ON(LINEAR), in_groups, regrouped, NULL, 1 },
	{ "W2.matrix_kv", "keys and values exchanged in the matrix of all", VN_ON(LINEAR), fused, exchange_parts, NULL, 12 },
	{ "W2.matrix_qk", "queries and keys exchanged in the matrix of all", VN_ON(LINEAR), fused, exchange_parts, NULL, 1 },
	{ "W3.halves", "queries and gates split in halves of the whole", VN_ON(SLICE), of_pairs, in_halves, NULL, 1 },
	{ "W3.gate", "queries and gates split gate first", VN_ON(SLICE), of_pairs, in_halves, NULL, 0 },
};

const vn_fault_chapter vn_faults_split = { rows, sizeof rows / sizeof *rows };
