/* weights_order.c: the orders that a weight's numbers may be in by mistake
 * (specs/faults.md, chapter W; of RoPE specs/models.md 1.5, of value heads 4.5). */
#include "compare/weights/weights_order.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

vn_weight_heads vn_weight_heads_of(const vn_plan *p, int layer)
{
	vn_weight_heads h = { 0 };

	/* that of a prediction head which the plan lacks is like any with attention */
	for (int i = 0; p && layer >= p->layers && i < p->n_nodes; i++)
		layer = p->node[i].op == VN_OP_ATTENTION ? p->node[i].layer : layer;
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

/* ---- which there are ----------------------------------------------------------------- */

typedef struct order_list {
	vn_weight_order *o;
	int              n;
} order_list;

#define ORDER(k, a, ...) ((vn_weight_order) { .kind = VN_ORDER_##k, .axis = a, .rule = __VA_ARGS__ })

/* like: an ORDER. */
__attribute__((format(printf, 4, 5))) static vn_weight_order *add(order_list *l, vn_weight_order like,
                                                                  vn_weight_finding found, const char *title, ...)
{
	va_list args;

	if (l->n < VN_MOST_ORDERS) /* there are 40 at most */
		l->n++;
	vn_weight_order *o = &l->o[l->n - 1];
	*o = like;
	o->found = found;
	o->id = vn_weight_entry_of(found)->id;
	va_start(args, title);
	o->key = vn_weight_say(o->says, found, title, args);
	va_end(args);
	return o;
}

/* Adds an order and its inverse. found, back: their findings, whose titles have no parameters. */
static void add_both(order_list *l, vn_weight_order like, vn_weight_finding found, vn_weight_finding back)
{
	assert(!*vn_weight_entry_of(found)->parameters && !*vn_weight_entry_of(back)->parameters);
	add(l, like, found, "%s", vn_weight_entry_of(found)->title);
	like.rule = vn_arrange_back(&like.rule);
	add(l, like, back, "%s", vn_weight_entry_of(back)->title);
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
		add_both(l,
		         ORDER(PAIRS, VN_WEIGHT_ROWS,
		               (vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = 2, .b = width / 2, .period = period }),
		         VN_FOUND_PAIRS, VN_FOUND_PAIRS_BACK);
	}
}

static void add_blocks(order_list *l, vn_weight_axis axis, vn_mistake id, const int64_t size[3],
                       const char *const name[3], int64_t n)
{
	static const int orders[][3] = { { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	if (size[0] <= 0 || size[1] <= 0 || size[2] <= 0 || size[0] + size[1] + size[2] != n)
		return;
	for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
		const int       *order = orders[i];
		const vn_arrange rule = { VN_ARRANGE_PARTS, .a = 1, .part = { size[0], size[1], size[2] },
			                      .order = { order[0], order[1], order[2] } };
		add(l, ORDER(PARTS, axis, rule), VN_FOUND(PARTS), name[order[0]], name[order[1]], name[order[2]])->id = id;
	}
}

static const char *const qkv[] = { "q", "k", "v" };

static void add_fused(order_list *l, const vn_weight_heads *h, int part, vn_weight_axis axis, int64_t n)
{
	const int64_t q = (int64_t)h->H * h->K, k = (int64_t)h->G * h->K;
	if (part == VN_POINT_C_ATTN) {
		add_blocks(l, axis, VN_MISTAKE_W2, (int64_t[]) { n / 3, n / 3, n / 3 }, qkv, n);
		if (h->H > 1 && 3 * q == n)
			add_both(l, ORDER(PARTS, axis, (vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = 3, .b = h->H, .each = h->K }),
			         VN_FOUND_BY_HEAD, VN_FOUND_SEPARATE);
		return;
	}
	add_blocks(l, axis, VN_MISTAKE_W2, (int64_t[]) { q, k, k }, qkv, n);
	if (h->G > 1 && h->H % h->G == 0 && q + 2 * k == n)
		add_both(l,
		         ORDER(PARTS, axis,
		               (vn_arrange) { VN_ARRANGE_PARTS, .a = h->G, .part = { h->H / h->G * (int64_t)h->K, h->K, h->K },
		                              .order = { 0, 1, 2 } }),
		         VN_FOUND_BY_GROUP, VN_FOUND_SEPARATE);
}

/* before: rows that lead and stay where they are. */
static void add_tiled(order_list *l, const vn_weight_heads *h, vn_weight_axis axis, int64_t before, int64_t width,
                      int64_t n)
{
	if (h->nk < 2 || h->nv <= h->nk || h->nv % h->nk || before + h->nv * width != n)
		return;
	add_both(
		l,
		ORDER(TILED, axis,
	          (vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = h->nk, .b = h->nv / h->nk, .each = width, .before = before }),
		VN_FOUND_TILED, VN_FOUND_TILED_BACK);
}

static void of_delta_rule(order_list *l, const vn_weight_heads *h, const vn_weight_name *name, int64_t M, int64_t N)
{
	const int     part = name->part;
	const int64_t keys = (int64_t)h->nk * h->dk, values = (int64_t)h->nv * h->dv;
	if (part == VN_POINT_GDN_QKV || part == VN_POINT_GDN_CONV) {
		add_blocks(l, VN_WEIGHT_ROWS, part == VN_POINT_GDN_CONV ? VN_MISTAKE_G14 : VN_MISTAKE_W2,
		           (int64_t[]) { keys, keys, values }, qkv, M);
		add_tiled(l, h, VN_WEIGHT_ROWS, 2 * keys, h->dv, M);
	}
	if (part == VN_POINT_GDN_CONV && N > 1)
		add(l, ORDER(SINGLE, VN_WEIGHT_COLUMNS, (vn_arrange) { VN_ARRANGE_REVERSED, .each = 1 }), VN_FOUND(TAPS));
	if (part == VN_POINT_GDN_Z)
		add_tiled(l, h, VN_WEIGHT_ROWS, 0, h->dv, M);
	if (part == VN_POINT_GDN_B || part == VN_POINT_GDN_A || part == VN_POINT_GDN_G)
		add_tiled(l, h, VN_WEIGHT_ROWS, 0, 1, M);
	if (name->change == VN_GGUF_TILED_COLUMNS)
		add_tiled(l, h, VN_WEIGHT_COLUMNS, 0, h->dv, N);
}

static void add_shards(order_list *l, int64_t n)
{
	for (int64_t w = 2; w <= 8; w *= 2) {
		if (n % w || n / w < 2)
			continue;
		const vn_arrange reversed = { VN_ARRANGE_REVERSED, .each = n / w };
		if (w == 2)
			add(l, ORDER(SHARDS, VN_WEIGHT_ROWS, reversed), VN_FOUND(HALVES));
		else
			add(l, ORDER(SHARDS, VN_WEIGHT_ROWS, reversed), VN_FOUND(SHARDS_REVERSED), (int)w);
		for (int64_t k = 1; w > 2 && k < w; k++)
			add(l, ORDER(SHARDS, VN_WEIGHT_ROWS, (vn_arrange) { VN_ARRANGE_ROUND, .a = k * (n / w) }),
			    VN_FOUND(SHARDS_ROTATED), (int)w, (int)k);
	}
}

static void add_transposed(order_list *l, int64_t M, int64_t N, bool swapped)
{
	const vn_arrange rule = { VN_ARRANGE_TRANSPOSED, .a = M, .b = N };

	if (swapped || M == N) {
		add(l, ORDER(TRANSPOSED, VN_WEIGHT_NUMBERS, rule), VN_FOUND(TRANSPOSED));
		return;
	}
	add(l, ORDER(TRANSPOSED, VN_WEIGHT_NUMBERS, rule), VN_FOUND(OLD_SHAPE));
	add(l, ORDER(TRANSPOSED, VN_WEIGHT_NUMBERS, vn_arrange_back(&rule)), VN_FOUND(TRANSPOSED_SHAPE));
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
		add(l, ORDER(SINGLE, VN_WEIGHT_NUMBERS, (vn_arrange) { VN_ARRANGE_PADDED, .a = N, .b = stride - N }),
		    VN_FOUND(STRIDE), (int)stride);
	}
	add(l, ORDER(SINGLE, VN_WEIGHT_NUMBERS, (vn_arrange) { VN_ARRANGE_PADDED, .a = N, .b = 8 }), VN_FOUND(PADDING));
}

int vn_weight_orders_of(const vn_weight_name *name, const vn_shape *shape, const vn_shape *other,
                        const vn_weight_heads *h, vn_weight_order o[VN_MOST_ORDERS])
{
	order_list    l = { o, 0 };
	const int     part = name->part;
	const int64_t M = shape->rank ? shape->dim[0] : 1, N = M ? vn_shape_count(shape) / M : 0;
	const bool    matrix = shape->rank == 2 && M > 1 && N > 1,
			   swapped = matrix && other->rank == 2 && other->dim[0] == N && other->dim[1] == M;

	if (M <= 0 || N <= 0)
		return 0;
	if (!vn_shape_equal(shape, other)) {
		if (swapped)
			add_transposed(&l, M, N, true);
		return l.n;
	}
	if (part == VN_POINT_Q_PROJ || part == VN_POINT_K_PROJ || part == VN_POINT_Q_NORM || part == VN_POINT_K_NORM)
		add_pairs(&l, h, M, part == VN_POINT_Q_PROJ && M == 2 * (int64_t)h->H * h->K);
	if (part == VN_POINT_Q_PROJ && h->H > 0 && M == 2 * (int64_t)h->H * h->K) {
		vn_arrange halves = { VN_ARRANGE_SECTIONS, .a = h->H, .part = { h->K, h->K, 0 }, .order = { 0, 1, 2 } };
		add_both(&l, ORDER(HALVES, VN_WEIGHT_ROWS, halves), VN_FOUND_QUERIES_FIRST, VN_FOUND_HALVES_BACK);
		halves.order[0] = 1;
		halves.order[1] = 0;
		add_both(&l, ORDER(HALVES, VN_WEIGHT_ROWS, halves), VN_FOUND_GATES_FIRST, VN_FOUND_HALVES_BACK);
	}
	if (part == VN_POINT_C_ATTN && matrix)
		add_fused(&l, h, part, VN_WEIGHT_COLUMNS, N);
	else if (part == VN_PART_QKV || part == VN_POINT_C_ATTN)
		add_fused(&l, h, part, VN_WEIGHT_ROWS, M);
	if (part == VN_PART_GATE_UP && M % 2 == 0) {
		add(&l, ORDER(SHARDS, VN_WEIGHT_ROWS, (vn_arrange) { VN_ARRANGE_REVERSED, .each = M / 2 }), VN_FOUND(GATE_UP));
		add_both(&l, ORDER(EVERY_OTHER, VN_WEIGHT_ROWS, (vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = M / 2, .b = 2 }),
		         VN_FOUND_ROWS, VN_FOUND_ROWS_BACK);
	}
	of_delta_rule(&l, h, name, M, N);
	if (matrix)
		add_transposed(&l, M, N, false);
	if (part == VN_POINT_EMBED || part == VN_POINT_LOGITS)
		add_shards(&l, M);
	if (matrix)
		add_sheared(&l, N);
	return l.n;
}
