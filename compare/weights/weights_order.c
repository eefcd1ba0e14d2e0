/* weights_order.c: the orders that a weight's numbers may be in by mistake
 * (specs/faults.md, chapter W; of RoPE specs/models.md 1.5, of value heads 4.5). */
#include "compare/weights/weights_order.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

vn_weight_heads vn_weight_heads_of(const vn_plan *p, int layer)
{
	vn_weight_heads h = { 0 };

	for (int i = 0; p && i < p->n_nodes; i++) {
		const vn_node *n = &p->node[i];
		if (n->layer != layer)
			continue;
		if (n->op == VN_OP_ATTENTION) {
			h.H = n->c.attention.heads;
			h.G = n->c.attention.kv_heads;
			h.K = n->c.attention.head_dim;
		} else if (n->op == VN_OP_ROPE) {
			h.R = n->c.rope.rope.rotary_dim;
		} else if (n->op == VN_OP_DELTA_RULE) {
			h.nk = n->c.delta.key_heads;
			h.nv = n->c.delta.value_heads;
			h.dk = n->c.delta.key_dim;
			h.dv = n->c.delta.value_dim;
		}
	}
	return h;
}

/* ---- where it comes from --------------------------------------------------------- */

vn_arrange vn_weight_order_rule(const vn_weight_order *o, int64_t n)
{
	const int64_t *p = o->p;

	switch (o->kind) {
	case VN_ORDER_PAIRS: /* p: period, rotated columns */
		return (vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = 2, .b = p[1] / 2, .period = p[0] };
	case VN_ORDER_PARTS_BY_HEAD: /* p: heads, width */
		return (vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = 3, .b = p[0], .each = p[1] };
	case VN_ORDER_HALVES: /* p: heads, width; 1: the second half comes first */
		return (vn_arrange) { VN_ARRANGE_SECTIONS, .a = p[0], .part = { p[1], p[1], 0 },
			                  .order = { p[2], 1 - p[2], 2 } };
	case VN_ORDER_TILED: /* p: leading rows, key heads, value heads for each key head, width */
		return (vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = p[1], .b = p[2], .each = p[3], .before = p[0] };
	case VN_ORDER_BLOCKS: /* p: three sizes; indices of the first, second and third block */
		return (vn_arrange) { VN_ARRANGE_PARTS, .a = 1, .part = { p[0], p[1], p[2] }, .order = { p[3], p[4], p[5] } };
	/* p: groups, query heads in a group, width; one key head and one value head in each */
	case VN_ORDER_PARTS_BY_GROUP:
		return (vn_arrange) { VN_ARRANGE_PARTS, .a = p[0], .part = { p[1] * p[2], p[2], p[2] }, .order = { 0, 1, 2 } };
	case VN_ORDER_REVERSED: return (vn_arrange) { VN_ARRANGE_REVERSED, .each = 1 };
	case VN_ORDER_SHARDS: /* p: number of shards, shift; -1: reversed */
		return (vn_arrange) { p[1] < 0 ? VN_ARRANGE_REVERSED : VN_ARRANGE_ROUND, .a = p[1] * (n / p[0]),
			                  .each = n / p[0] };
	case VN_ORDER_LISTED: /* p: number of blocks */
		return (vn_arrange) { VN_ARRANGE_LISTED, .a = p[0], .list = o->list };
	case VN_ORDER_EVERY_OTHER: return (vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = n / 2, .b = 2 };
	case VN_ORDER_TRANSPOSED: /* p: rows, columns */
		return (vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = p[0], .b = p[1] };
	case VN_ORDER_SHEARED: /* p: stride, columns */
		return (vn_arrange) { VN_ARRANGE_PADDED, .a = p[1], .b = p[0] - p[1] };
	default: return (vn_arrange) { VN_ARRANGE_ROUND, .a = 0 };
	}
}

/* ---- which there are ----------------------------------------------------------------- */

typedef struct order_list {
	vn_weight_order *o;
	int              n;
} order_list;

__attribute__((format(printf, 5, 6))) static vn_weight_order *add(order_list *l, vn_weight_order_kind kind, int axis,
                                                                  vn_weight_finding found, const char *title, ...)
{
	va_list args;

	if (l->n < VN_MOST_ORDERS) /* there are 40 at most */
		l->n++;
	vn_weight_order *o = &l->o[l->n - 1];
	*o = (vn_weight_order) { .kind = kind, .axis = axis, .found = found };
	o->id = vn_weight_entry_of(found)->id;
	va_start(args, title);
	o->key = vn_weight_say(o->says, found, title, args);
	va_end(args);
	return o;
}

static void set_order(vn_weight_order *o, int64_t a, int64_t b, int64_t c, int64_t d)
{
	o->p[0] = a;
	o->p[1] = b;
	o->p[2] = c;
	o->p[3] = d;
}

/* Adds an order and its inverse, with the finding and title of each: titles without parameters. */
static void add_both(order_list *l, vn_weight_order_kind kind, int axis, vn_weight_finding found, const char *title,
                     vn_weight_finding back, const char *back_title, const int64_t p[4])
{
	for (int k = 0; k < 2; k++) {
		assert(!*vn_weight_entry_of(k ? back : found)->parameters);
		vn_weight_order *o = add(l, kind, axis, k ? back : found, "%s", k ? back_title : title);
		set_order(o, p[0], p[1], p[2], p[3]);
		o->key = vn_weight_key_of(o->found, 0); /* the title is no parameter */
		o->back = k == 1;
	}
}

static void add_pairs(order_list *l, const vn_weight_heads *h, int64_t n, bool doubled)
{
	const int64_t period = doubled ? 2 * (int64_t)h->K : h->K;
	if (h->K < 2 || n % period || h->K % 2)
		return;
	for (int k = 0; k < 2; k++) {
		const int64_t width = k ? h->R : h->K;
		if (width < 4 || width % 2 || width > h->K || (k && width == h->K))
			continue;
		add_both(l, VN_ORDER_PAIRS, 0, VN_FOUND(PAIRS), VN_FOUND(PAIRS_BACK), (int64_t[]) { period, width, 0, 0 });
	}
}

static void add_blocks(order_list *l, int axis, vn_mistake id, const int64_t size[3], const char *const name[3],
                       int64_t n)
{
	static const int orders[][3] = { { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	if (size[0] <= 0 || size[1] <= 0 || size[2] <= 0 || size[0] + size[1] + size[2] != n)
		return;
	for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
		vn_weight_order *o = add(l, VN_ORDER_BLOCKS, axis, VN_FOUND(PARTS), name[orders[i][0]], name[orders[i][1]],
		                         name[orders[i][2]]);
		set_order(o, size[0], size[1], size[2], orders[i][0]);
		o->id = id;
		o->p[4] = orders[i][1];
		o->p[5] = orders[i][2];
	}
}

static const char *const qkv[] = { "q", "k", "v" };

static void add_fused(order_list *l, const vn_weight_heads *h, vn_weight_part part, int axis, int64_t n)
{
	const int64_t q = (int64_t)h->H * h->K, k = (int64_t)h->G * h->K;
	if (part == VN_PART_C_ATTN) {
		add_blocks(l, axis, VN_MISTAKE_W2, (int64_t[]) { n / 3, n / 3, n / 3 }, qkv, n);
		if (h->H > 1 && 3 * q == n)
			add_both(l, VN_ORDER_PARTS_BY_HEAD, axis, VN_FOUND(BY_HEAD), VN_FOUND(SEPARATE),
			         (int64_t[]) { h->H, h->K, 0, 0 });
		return;
	}
	add_blocks(l, axis, VN_MISTAKE_W2, (int64_t[]) { q, k, k }, qkv, n);
	if (h->G > 1 && h->H % h->G == 0 && q + 2 * k == n)
		add_both(l, VN_ORDER_PARTS_BY_GROUP, axis, VN_FOUND(BY_GROUP), VN_FOUND(SEPARATE),
		         (int64_t[]) { h->G, h->H / h->G, h->K, 0 });
}

static void add_tiled(order_list *l, const vn_weight_heads *h, int axis, int64_t before, int64_t width, int64_t n)
{
	if (h->nk < 2 || h->nv <= h->nk || h->nv % h->nk || before + h->nv * width != n)
		return;
	add_both(l, VN_ORDER_TILED, axis, VN_FOUND(TILED), VN_FOUND(TILED_BACK),
	         (int64_t[]) { before, h->nk, h->nv / h->nk, width });
}

static void of_delta_rule(order_list *l, const vn_weight_heads *h, vn_weight_part part, int64_t M, int64_t N)
{
	const int64_t keys = (int64_t)h->nk * h->dk, values = (int64_t)h->nv * h->dv;
	if (part == VN_PART_GDN_QKV || part == VN_PART_GDN_CONV) {
		add_blocks(l, 0, part == VN_PART_GDN_CONV ? VN_MISTAKE_G14 : VN_MISTAKE_W2, (int64_t[]) { keys, keys, values },
		           qkv, M);
		add_tiled(l, h, 0, 2 * keys, h->dv, M);
	}
	if (part == VN_PART_GDN_CONV && N > 1)
		add(l, VN_ORDER_REVERSED, 1, VN_FOUND(TAPS));
	if (part == VN_PART_GDN_Z)
		add_tiled(l, h, 0, 0, h->dv, M);
	if (part == VN_PART_GDN_B || part == VN_PART_GDN_A || part == VN_PART_GDN_DT || part == VN_PART_GDN_LOG)
		add_tiled(l, h, 0, 0, 1, M);
	if (part == VN_PART_GDN_OUT)
		add_tiled(l, h, 1, 0, h->dv, N);
}

static void add_shards(order_list *l, int64_t n)
{
	for (int64_t w = 2; w <= 8; w *= 2) {
		if (n % w || n / w < 2)
			continue;
		set_order(w == 2 ? add(l, VN_ORDER_SHARDS, 0, VN_FOUND(HALVES))
		                 : add(l, VN_ORDER_SHARDS, 0, VN_FOUND(SHARDS_REVERSED), (int)w),
		          w, -1, 0, 0);
		for (int64_t k = 1; w > 2 && k < w; k++)
			set_order(add(l, VN_ORDER_SHARDS, 0, VN_FOUND(SHARDS_ROTATED), (int)w, (int)k), w, k, 0, 0);
	}
}

static void add_transposed(order_list *l, int64_t M, int64_t N, bool swapped)
{
	if (swapped || M == N) {
		set_order(add(l, VN_ORDER_TRANSPOSED, 0, VN_FOUND(TRANSPOSED)), M, N, 0, 0);
		return;
	}
	set_order(add(l, VN_ORDER_TRANSPOSED, 0, VN_FOUND(OLD_SHAPE)), M, N, 0, 0);
	set_order(add(l, VN_ORDER_TRANSPOSED, 0, VN_FOUND(TRANSPOSED_SHAPE)), N, M, 0, 0);
}

static void add_sheared(order_list *l, int64_t N)
{
	static const int multiples[] = { 16, 32, 64, 128, 256 };
	int64_t          last = 0;
	for (size_t i = 0; i < sizeof multiples / sizeof *multiples; i++) {
		const int64_t stride = (N + multiples[i] - 1) / multiples[i] * multiples[i];
		if (stride == N || stride == last)
			continue;
		last = stride;
		set_order(add(l, VN_ORDER_SHEARED, 0, VN_FOUND(STRIDE), (int)stride), stride, N, 0, 0);
	}
	set_order(add(l, VN_ORDER_SHEARED, 0, VN_FOUND(PADDING)), N + 8, N, 0, 0);
}

int vn_weight_orders_of(const vn_weight_name *name, const vn_shape *shape, const vn_shape *other,
                        const vn_weight_heads *h, vn_weight_order o[VN_MOST_ORDERS])
{
	order_list           l = { o, 0 };
	const vn_weight_part part = name->part;
	const int64_t        M = shape->rank ? shape->dim[0] : 1, N = M ? vn_shape_count(shape) / M : 0;
	const bool           matrix = shape->rank == 2 && M > 1 && N > 1,
			   swapped = matrix && other->rank == 2 && other->dim[0] == N && other->dim[1] == M;

	if (M <= 0 || N <= 0)
		return 0;
	if (!vn_shape_equal(shape, other)) {
		if (swapped)
			add_transposed(&l, M, N, true);
		return l.n;
	}
	if (part == VN_PART_Q || part == VN_PART_K || part == VN_PART_NORM_Q || part == VN_PART_NORM_K)
		add_pairs(&l, h, M, part == VN_PART_Q && M == 2 * (int64_t)h->H * h->K);
	if (part == VN_PART_Q && h->H > 0 && M == 2 * (int64_t)h->H * h->K) {
		add_both(&l, VN_ORDER_HALVES, 0, VN_FOUND(QUERIES_FIRST), VN_FOUND(HALVES_BACK),
		         (int64_t[]) { h->H, h->K, 0, 0 });
		add_both(&l, VN_ORDER_HALVES, 0, VN_FOUND(GATES_FIRST), VN_FOUND(HALVES_BACK),
		         (int64_t[]) { h->H, h->K, 1, 0 });
	}
	if (part == VN_PART_QKV || part == VN_PART_C_ATTN)
		add_fused(&l, h, part, part == VN_PART_C_ATTN && matrix, part == VN_PART_C_ATTN && matrix ? N : M);
	if (part == VN_PART_GATE_UP && M % 2 == 0) {
		set_order(add(&l, VN_ORDER_SHARDS, 0, VN_FOUND(GATE_UP)), 2, -1, 0, 0);
		add_both(&l, VN_ORDER_EVERY_OTHER, 0, VN_FOUND(ROWS), VN_FOUND(ROWS_BACK), (int64_t[]) { 0, 0, 0, 0 });
	}
	of_delta_rule(&l, h, part, M, N);
	if (matrix)
		add_transposed(&l, M, N, false);
	if (part == VN_PART_EMBED || part == VN_PART_HEAD)
		add_shards(&l, M);
	if (matrix)
		add_sheared(&l, N);
	return l.n;
}
