/* ops.c: records operations into the command buffer, one function each. */
#include "libgpu/ops.h"

#include "libgpu/ops_internal.h"

#include <assert.h>

static void embed(vn_gpu_pass *w, const vn_node *n)
{
	const int64_t D = vn_value_row(&w->g->plan->value[n->out[0]]), step = rows_at_once(D);

	for (int64_t t = 0; t < w->tokens; t += step) {
		const int64_t T = smaller(step, w->tokens - t);
		vn_encode_reads(&w->g->encoder, &w->g->upload);
		dispatch_node(w, n, VN_K_EMBED,
		              &(vn_push_embed) { .w = in_weight(w, n->w[0], 0),
		                                 .ids = w->g->upload.address + (uint64_t)t * 4,
		                                 .y = in_value(w, n->out[0], t * D),
		                                 .T = (uint32_t)T,
		                                 .D = (uint32_t)D },
		              count_groups(T * D, 64), 1);
	}
}

/* Returns how many columns a norm takes together: those of its weight, or the last axis. */
static int64_t norm_width(const vn_plan *p, const vn_node *n)
{
	const vn_value *v = &p->value[n->out[0]];

	return n->n_w > 0 ? vn_shape_count(&p->weight[n->w[0]].shape) : v->size[v->rank - 1];
}

/* Any norm. */
static void norm(vn_gpu_pass *w, const vn_node *n)
{
	static const vn_kernel kernel[VN_N_OPS] = {
		[VN_OP_RMS_NORM] = VN_K_RMS_NORM,
		[VN_OP_LAYER_NORM] = VN_K_LAYER_NORM,
		[VN_OP_L2_NORM] = VN_K_L2_NORM,
		[VN_OP_GATED_NORM] = VN_K_GATED_NORM,
	};
	const int64_t N = norm_width(w->g->plan, n);
	const int64_t R = w->tokens * (vn_value_row(&w->g->plan->value[n->out[0]]) / N), step = rows_at_once(N);
	const int     bias = bias_of(n);

	for (int64_t r = 0; r < R; r += step) {
		const int64_t rows = smaller(step, R - r);
		dispatch_node(w, n, kernel[n->op],
		              &(vn_push_norm) { .x = in_value(w, n->in[0], r * N),
		                                .z = n->n_in > 1 ? in_value(w, n->in[1], r * N) : 0,
		                                .g = n->n_w > 0 ? in_weight(w, n->w[0], 0) : 0,
		                                .b = bias < 0 ? 0 : in_weight(w, bias, 0),
		                                .y = in_value(w, n->out[0], r * N),
		                                .R = (uint32_t)rows,
		                                .N = (uint32_t)N,
		                                .eps = (float)n->c.norm.eps,
		                                .offset = (float)n->c.norm.offset,
		                                .has_bias = bias >= 0 },
		              rows, 1);
	}
}

/* Appends n numbers bit by bit. */
static void append_numbers(vn_gpu_pass *w, vn_buffer *from, uint64_t from_at, vn_buffer *to, uint64_t to_at, int64_t n)
{
	vn_push_append push = { .from = from_at, .to = to_at, .n = (uint32_t)n };

	push.eights = in_eights(w, push.from, push.to, 0);
	vn_encode_reads(&w->g->encoder, from);
	vn_encode_writes(&w->g->encoder, to);
	vn_encode_dispatch(&w->g->encoder, VN_K_APPEND, &push, groups_of_lanes(n, push.eights), 1);
}

/* Rows of the table one after the other. */
static void positions(vn_gpu_pass *w, const vn_node *n)
{
	const int64_t row = vn_value_row(&w->g->plan->value[n->out[0]]), step = rows_at_once(row);
	vn_buffer    *y = buffer_of(w, n->out[0]);

	for (int64_t t = 0; t < w->tokens; t += step)
		append_numbers(w, weight_buffer(w, n->w[0]), in_weight(w, n->w[0], (w->past + t) * row), y,
		               in_buffer(w, y, t * row), smaller(step, w->tokens - t) * row);
}

static void slice(vn_gpu_pass *w, const vn_node *n)
{
	const int64_t N = n->c.slice.stride, width = n->c.slice.width, step = rows_at_once(N);
	const int64_t R = w->tokens * (vn_value_row(&w->g->plan->value[n->out[0]]) / width);

	for (int64_t r = 0; r < R; r += step) {
		const int64_t rows = smaller(step, R - r);
		dispatch_node(w, n, VN_K_SLICE,
		              &(vn_push_slice) { .x = in_value(w, n->in[0], r * N),
		                                 .y = in_value(w, n->out[0], r * width),
		                                 .R = (uint32_t)rows,
		                                 .N = (uint32_t)N,
		                                 .from = (uint32_t)n->c.slice.from,
		                                 .width = (uint32_t)width },
		              count_groups(rows * width, 64), 1);
	}
}

static void join(vn_gpu_pass *w, const vn_node *n)
{
	const int64_t H = n->c.join.heads, G = n->c.join.shared, A = n->c.join.width;
	const int64_t row = vn_value_row(&w->g->plan->value[n->out[0]]), B = row / H - A, step = rows_at_once(row);

	for (int64_t t = 0; t < w->tokens; t += step) {
		const int64_t rows = smaller(step, w->tokens - t);
		dispatch_node(w, n, VN_K_JOIN,
		              &(vn_push_join) { .a = in_value(w, n->in[VN_JOIN_A], t * H * A),
		                                .b = in_value(w, n->in[VN_JOIN_B], t * G * B),
		                                .y = in_value(w, n->out[0], t * row),
		                                .R = (uint32_t)(rows * H),
		                                .A = (uint32_t)A,
		                                .B = (uint32_t)B,
		                                .share = (uint32_t)(H / G) },
		              count_groups(rows * row, 64), 1);
	}
}

/* Rows one token later: the last one stays for the next call. */
static void delay(vn_gpu_pass *w, const vn_node *n)
{
	const int64_t N = n->c.delay.columns, step = rows_at_once(N);
	vn_buffer    *x = buffer_of(w, n->in[0]), *y = buffer_of(w, n->out[0]), *before = state_of(w, n, 0),
			  *after = &w->g->cache.slot[n->state[0]].next;

	append_numbers(w, before, before->address, y, y->address, N);
	for (int64_t t = 1; t < w->tokens; t += step)
		append_numbers(w, x, in_buffer(w, x, (t - 1) * N), y, in_buffer(w, y, t * N), smaller(step, w->tokens - t) * N);
	append_numbers(w, x, in_buffer(w, x, (w->tokens - 1) * N), after, after->address, N);
}

vn_product_choice vn_ops_linear_choice(const vn_gpu_pass *w, const vn_node *n)
{
	return (is_wide(w, n->out[0]) ? vn_product_choose_joined : vn_product_choose)(
		&w->g->kernels, w->tokens, vn_value_row(&w->g->plan->value[n->out[0]]),
		vn_value_row(&w->g->plan->value[n->in[0]]));
}

/* Piece p of y: x (rows,N) from row `row` times rows [col, col + cols) of the weight. y's rows are
 * y_stride apart and its first element is at y_at. */
static vn_product product_of(const vn_gpu_pass *w, const vn_node *n, vn_gpu_piece p, vn_buffer *y, int64_t y_at,
                             int64_t y_stride)
{
	const int64_t N = vn_value_row(&w->g->plan->value[n->in[0]]);
	const int     bias = bias_of(n);
	const bool    wide = is_wide(w, n->out[0]);
	vn_buffer    *x = buffer_of(w, n->in[0]);

	return (vn_product) {
		.x = x,
		.w = weight_buffer(w, n->w[0]),
		.b = bias < 0 ? NULL : weight_buffer(w, bias),
		.y = y,
		.sums = &w->g->sums,
		.element = element_bytes(w),
		.wide = wide,
		.at = { .x = in_buffer(w, x, p.row * N),
		        .w = in_weight(w, n->w[0], p.col * N),
		        .b = bias < 0 ? 0 : in_weight(w, bias, p.col),
		        .y = y->address + (uint64_t)y_at * (wide ? sizeof(float) : element_bytes(w)),
		        .T = (uint32_t)p.rows,
		        .M = (uint32_t)p.cols,
		        .N = (uint32_t)N,
		        .y_stride = (uint32_t)y_stride },
	};
}

/* Returns how many rows and columns of y one dispatch computes. */
static int64_t row_step(const vn_gpu_pass *w, const vn_node *n, int64_t y_stride)
{
	const int64_t N = vn_value_row(&w->g->plan->value[n->in[0]]);

	return rows_at_once(N > y_stride ? N : y_stride);
}

static int64_t col_step(const vn_gpu_pass *w, const vn_node *n)
{
	return rows_at_once(vn_value_row(&w->g->plan->value[n->in[0]]));
}

static void linear_part(vn_gpu_pass *w, const vn_node *n, vn_gpu_piece p, vn_buffer *y, int64_t y_stride)
{
	const int64_t           down = row_step(w, n, y_stride), across = col_step(w, n);
	const vn_product_choice choice = vn_ops_linear_choice(w, n);

	for (int64_t r = 0; r < p.rows; r += down)
		for (int64_t c = 0; c < p.cols; c += across) {
			const vn_gpu_piece at = { p.row + r, smaller(down, p.rows - r), p.col + c, smaller(across, p.cols - c) };
			const vn_product   part = product_of(w, n, at, y, r * y_stride + c, y_stride);
			vn_product_encode(&w->g->encoder, choice, &part);
		}
}

static void linear(vn_gpu_pass *w, const vn_node *n)
{
	const int64_t M = vn_value_row(&w->g->plan->value[n->out[0]]);

	linear_part(w, n, (vn_gpu_piece) { 0, w->tokens, 0, M }, buffer_of(w, n->out[0]), M);
}

bool vn_ops_linear_whole(const vn_gpu_pass *w, const vn_node *n, vn_product *p)
{
	const int64_t M = vn_value_row(&w->g->plan->value[n->out[0]]);

	if (!vn_gpu_place(w->g, n->out[0]) || w->tokens > row_step(w, n, M) || M > col_step(w, n))
		return false;
	*p = product_of(w, n, (vn_gpu_piece) { 0, w->tokens, 0, M }, buffer_of(w, n->out[0]), 0, M);
	return true;
}

VkDeviceSize vn_ops_linear_sums(const vn_gpu_pass *w)
{
	VkDeviceSize most = sizeof(float);

	for (int i = 0; i < w->g->plan->n_nodes; i++) {
		const vn_node *n = &w->g->plan->node[i];
		if (n->op != VN_OP_LINEAR)
			continue;
		const VkDeviceSize bytes = vn_product_sums(vn_ops_linear_choice(w, n), w->tokens,
		                                           vn_value_row(&w->g->plan->value[n->out[0]]));
		most = bytes > most ? bytes : most;
	}
	return most;
}

void vn_ops_linear_part(vn_gpu_pass *w, int node, vn_gpu_piece p)
{
	linear_part(w, &w->g->plan->node[node], p, &w->g->scratch, p.cols);
}

static void rope(vn_gpu_pass *w, const vn_node *n)
{
	const vn_value *v = &w->g->plan->value[n->out[0]];
	const int64_t   H = v->size[1], K = v->size[2], R = n->c.rope.rope.rotary_dim, step = rows_at_once(H * K);
	const vn_rope  *r = &n->c.rope.rope;
	const bool      fours = R % 8 == 0 && K % 4 == 0 && !r->first && r->pairs == VN_PAIR_HALVES; /* rope.comp */
	const uint64_t  angles = w->g->upload.address + w->g->rope[w->g->node[n - w->g->plan->node].rope].at;

	for (int64_t t = 0; t < w->tokens; t += step) {
		const int64_t rows = smaller(step, w->tokens - t);
		vn_encode_reads(&w->g->encoder, &w->g->upload);
		dispatch_node(w, n, VN_K_ROPE,
		              &(vn_push_rope) { .x = in_value(w, n->in[0], t * H * K),
		                                .table = angles + (uint64_t)(t * R) * 4,
		                                .y = in_value(w, n->out[0], t * H * K),
		                                .T = (uint32_t)rows,
		                                .H = (uint32_t)H,
		                                .K = (uint32_t)K,
		                                .R = (uint32_t)R,
		                                .first = (uint32_t)r->first,
		                                .pairs = (uint32_t)r->pairs },
		              count_groups(rows * H * (fours ? (K - R / 2) / 4 : K), 64), 1);
	}
}

/* Copies between token-major rows and the pool of a state: n elements, from element `at` of the
 * whole state on. */
static void copy_paged(vn_gpu_pass *w, vn_kernel kernel, int state, vn_buffer *rows, int64_t at, int64_t n)
{
	const vn_state *s = &w->g->plan->state[state];
	const int64_t   K = s->size[s->rank - 1];
	vn_pages       *p = &w->g->cache.pages;
	vn_buffer      *pool = &w->g->cache.slot[state].now;

	vn_encode_reads(&w->g->encoder, kernel == VN_K_PAGED_PUT ? rows : pool);
	vn_encode_reads(&w->g->encoder, &p->table);
	vn_encode_writes(&w->g->encoder, kernel == VN_K_PAGED_PUT ? pool : rows);
	vn_encode_dispatch(&w->g->encoder, kernel,
	                   &(vn_push_pages) { .rows = rows->address,
	                                      .pool = pool->address,
	                                      .table = p->table.address,
	                                      .at = (uint32_t)at,
	                                      .n = (uint32_t)n,
	                                      .G = (uint32_t)(vn_state_row(s) / K),
	                                      .K = (uint32_t)K,
	                                      .B = (uint32_t)p->block },
	                   count_groups(n, 64), 1);
}

void vn_ops_gather(vn_gpu_pass *w, int state, int64_t at, int64_t n)
{
	copy_paged(w, VN_K_PAGED_GET, state, &w->g->scratch, at, n);
}

void vn_ops_append(vn_gpu_pass *w, int state)
{
	const vn_state *s = &w->g->plan->state[state];
	const int       value = w->g->plan->node[s->node].in[s->input];
	const int64_t   row = vn_state_row(s);
	vn_buffer      *now = &w->g->cache.slot[state].now, *rows = buffer_of(w, value);

	if (w->g->arena.state_of[value] == state)
		return; /* they were made there */
	if (w->g->cache.pages.block)
		copy_paged(w, VN_K_PAGED_PUT, state, rows, w->past * row, w->tokens * row);
	else
		append_numbers(w, rows, rows->address, now, in_buffer(w, now, w->past * row), w->tokens * row);
}

/* Computes elements [at, at + count) of act, gated or add into y from its element y_at on. */
static void map_elements(vn_gpu_pass *w, const vn_node *n, int64_t at, int64_t count, vn_buffer *y, int64_t y_at)
{
	const int64_t   step = (int64_t)1 << 30;
	const vn_kernel usual = n->op == VN_OP_ACT ? VN_K_ACT : n->op == VN_OP_GATED ? VN_K_GATED : VN_K_ADD;

	for (int64_t e = 0; e < count; e += step) {
		const int64_t part = smaller(step, count - e);
		vn_push_map   push = { .a = in_value(w, n->in[0], at + e),
			                   .b = n->n_in > 1 ? in_value(w, n->in[1], at + e) : 0,
			                   .y = in_buffer(w, y, y_at + e),
			                   .n = (uint32_t)part,
			                   .act = n->c.act.act };
		push.eights = in_eights(w, push.a, push.b, push.y);
		use_operands(w, n, y);
		vn_encode_dispatch(&w->g->encoder, usual, &push, groups_of_lanes(part, push.eights), 1);
	}
}

static void map(vn_gpu_pass *w, const vn_node *n)
{
	const int64_t row = vn_value_row(&w->g->plan->value[n->out[0]]);

	map_elements(w, n, 0, w->tokens * row, buffer_of(w, n->out[0]), 0);
}

void vn_ops_act_part(vn_gpu_pass *w, int node, vn_gpu_piece p)
{
	const vn_node *n = &w->g->plan->node[node];

	map_elements(w, n, p.row * vn_value_row(&w->g->plan->value[n->out[0]]) + p.col, p.rows * p.cols, &w->g->scratch, 0);
}

static void scale(vn_gpu_pass *w, const vn_node *n)
{
	const int64_t row = vn_value_row(&w->g->plan->value[n->out[0]]), step = rows_at_once(row);
	float         factor = (float)n->c.scale.scale;

	vn_round_f32(&factor, element_bytes(w) == 2 ? VN_F16 : VN_F32, 1);
	for (int64_t t = 0; t < w->tokens; t += step) {
		const int64_t count = smaller(step, w->tokens - t) * row;
		dispatch_node(w, n, VN_K_SCALE,
		              &(vn_push_scale) { .x = in_value(w, n->in[0], t * row),
		                                 .y = in_value(w, n->out[0], t * row),
		                                 .n = (uint32_t)count,
		                                 .scale = factor,
		                                 .cap = (float)n->c.scale.cap },
		              count_groups(count, 64), 1);
	}
}

void vn_ops_encode(vn_gpu_pass *w, int node)
{
	static void (*const encode[VN_N_OPS])(vn_gpu_pass * w, const vn_node *n) = {
		[VN_OP_EMBED] = embed,
		[VN_OP_RMS_NORM] = norm,
		[VN_OP_POSITIONS] = positions,
		[VN_OP_LAYER_NORM] = norm,
		[VN_OP_LINEAR] = linear,
		[VN_OP_SLICE] = slice,
		[VN_OP_JOIN] = join,
		[VN_OP_DELAY] = delay,
		[VN_OP_ROPE] = rope,
		[VN_OP_ATTENTION] = vn_ops_attention,
		[VN_OP_ACT] = map,
		[VN_OP_GATED] = map,
		[VN_OP_ADD] = map,
		[VN_OP_SCALE] = scale,
		[VN_OP_CAUSAL_CONV] = vn_ops_causal_conv,
		[VN_OP_L2_NORM] = norm,
		[VN_OP_LOG_DECAY] = vn_ops_log_decay,
		[VN_OP_DELTA_RULE] = vn_ops_delta_rule,
		[VN_OP_GATED_NORM] = norm,
		[VN_OP_TOP_K] = vn_ops_top_k,
		[VN_OP_ROUTE] = vn_ops_route,
		[VN_OP_EXPERTS] = vn_ops_experts,
		[VN_OP_COMBINE] = vn_ops_combine,
	};
	const vn_node *n = &w->g->plan->node[node];

	for (int k = 0; k < n->n_state; k++)
		if (w->g->plan->state[n->state[k]].input >= 0)
			vn_ops_append(w, n->state[k]);
	if (vn_gpu_place(w->g, n->out[0])) { /* otherwise pieces.c computes it in pieces */
		assert(encode[n->op]);           /* a new operation needs a row */
		encode[n->op](w, n);
	}
}
