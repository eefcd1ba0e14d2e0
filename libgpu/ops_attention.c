/* ops_attention.c: records attention into the command buffer. */
#include "libgpu/ops.h"

#include "libgpu/ops_internal.h"

#define FEW_QUERIES 8   /* tokens of a call that go to attention_few.comp */
#define QUERIES     64  /* of a block, and keys of a tile: attention.comp */
#define PARTS_MAX   64  /* attention_join.comp */
#define CHUNK       128 /* keys of a part at least; of cooperative matrices twice as many, as joining takes time, too */
/* Workgroups that keep a big device busy (an H200 has 132 processors). With fewer than the first
 * number, keys are divided into parts, for up to the second number. These are constants, not the
 * device's own numbers, so that the bits of a run depend on its tokens alone. */
#define BUSY      256
#define BUSY_MOST 512

/* Returns the push block of the attention shaders, for queries from row `row` on. */
static vn_push_attention attention_push(const vn_gpu_pass *w, const vn_node *n, int64_t row, int64_t rows)
{
	const int64_t H = n->c.attention.heads, K = n->c.attention.head_dim;
	const int     sinks = n->w[VN_ATTN_SINKS];

	return (vn_push_attention) { .q = in_buffer(w, buffer_of(w, n->in[VN_ATTN_Q]), row * H * K),
		                         .k = state_of(w, n, VN_ATTN_KEYS)->address,
		                         .v = state_of(w, n, VN_ATTN_VALUES)->address,
		                         .T = (uint32_t)rows,
		                         .S = (uint32_t)(w->past + w->tokens),
		                         .P = (uint32_t)(w->past + row),
		                         .H = (uint32_t)H,
		                         .G = (uint32_t)n->c.attention.kv_heads,
		                         .K = (uint32_t)K,
		                         .U = (uint32_t)vn_attention_value_dim(&n->c),
		                         .causal = n->c.attention.causal != 0,
		                         .window = (uint32_t)n->c.attention.window,
		                         .scale = (float)n->c.attention.scale,
		                         .B = (uint32_t)w->g->cache.pages.block,
		                         .cap = (float)n->c.attention.cap,
		                         .has_sinks = sinks >= 0,
		                         .table = w->g->cache.pages.table.address,
		                         .sinks = sinks < 0 ? 0 : in_weight(w, sinks, 0),
		                         .first = (uint32_t)n->c.attention.first };
}

static void reads_state(vn_gpu_pass *w, const vn_node *n, int slot)
{
	vn_encode_reads(&w->g->encoder, state_of(w, n, slot));
	if (w->g->cache.pages.block)
		vn_encode_reads(&w->g->encoder, &w->g->cache.pages.table);
}

static void reads_sinks(vn_gpu_pass *w, const vn_node *n)
{
	if (n->w[VN_ATTN_SINKS] >= 0)
		vn_encode_reads(&w->g->encoder, weight_buffer(w, n->w[VN_ATTN_SINKS]));
}

/* The kernel for calls of many tokens. Cooperative matrices have no soft cap. */
static vn_kernel kernel_of(const vn_gpu_pass *w, const vn_node *n)
{
	return n->c.attention.cap != 0 ? VN_K_ATTENTION : vn_kernel_of_attention(&w->g->kernels, n);
}

/* How the keys of a call are divided into parts (shaders/parts.glsl). */
typedef struct key_parts {
	int64_t first, keys, n;
} key_parts;

/* The division depends only on the tokens and keys of the call, never on taps. */
static key_parts parts_of(const vn_gpu_pass *w, const vn_node *n)
{
	const int64_t S = w->past + w->tokens, window = n->c.attention.window;
	const int64_t first = window && w->past + 1 > window ? (w->past + 1 - window) / QUERIES * QUERIES : 0;
	const int64_t workgroups = count_groups(w->tokens, QUERIES) * n->c.attention.heads;
	const bool    few = w->tokens <= FEW_QUERIES;
	const int64_t most = few ? PARTS_MAX : workgroups >= BUSY ? 1 : smaller(BUSY_MOST / workgroups, PARTS_MAX);
	const bool    plain = kernel_of(w, n) == VN_K_ATTENTION;
	const int64_t unit = few ? CHUNK : QUERIES;
	const int64_t wanted = smaller(most, count_groups(S - first, few || plain ? CHUNK : 2 * CHUNK));
	const int64_t keys = count_groups(count_groups(S - first, wanted), unit) * unit;

	return (key_parts) { first, keys, count_groups(S - first, keys) };
}

/* Number of floats for one head of a query: its sums, their maximum and the sum of weights. */
static int64_t part_floats(const vn_node *n)
{
	return vn_attention_value_dim(&n->c) + 2;
}

VkDeviceSize vn_ops_attention_parts(const vn_gpu_pass *w)
{
	VkDeviceSize most = 0;

	for (int i = 0; i < w->g->plan->n_nodes; i++) {
		const vn_node *n = &w->g->plan->node[i];
		if (n->op != VN_OP_ATTENTION)
			continue;
		const key_parts    k = parts_of(w, n);
		const VkDeviceSize bytes = (VkDeviceSize)(w->tokens * n->c.attention.heads * k.n * part_floats(n)) *
		                           sizeof(float);
		if (k.n > 1 && bytes > most)
			most = bytes;
	}
	return most;
}

/* T queries from row t on. */
static void encode_queries(vn_gpu_pass *w, const vn_node *n, int64_t t, int64_t T)
{
	const bool        few = w->tokens <= FEW_QUERIES;
	const int64_t     H = n->c.attention.heads;
	const key_parts   k = parts_of(w, n);
	const vn_kernel   kernel = few ? VN_K_ATTENTION_FEW : kernel_of(w, n);
	vn_buffer        *y = buffer_of(w, n->out[VN_ATTN_CONTEXT]), *to = k.n > 1 ? &w->g->sums : y;
	const uint64_t    context = in_buffer(w, y, t * H * vn_attention_value_dim(&n->c));
	vn_push_attention push = attention_push(w, n, t, T);
	vn_encoder       *e = &w->g->encoder;

	push.h0 = (uint32_t)k.n;
	push.j0 = (uint32_t)k.first;
	push.n_keys = (uint32_t)k.keys;
	push.y = k.n > 1 ? to->address : context;
	vn_encode_reads(e, buffer_of(w, n->in[VN_ATTN_Q]));
	reads_state(w, n, VN_ATTN_KEYS);
	reads_state(w, n, VN_ATTN_VALUES);
	reads_sinks(w, n);
	vn_encode_writes(e, to);
	if (few)
		vn_encode_dispatch(e, kernel, &push, T * k.n, H);
	else if (kernel == VN_K_ATTENTION)
		vn_encode_dispatch(e, kernel, &push, count_groups(T, QUERIES) * k.n, H);
	else
		vn_encode_dispatch(e, kernel, &push, H, count_groups(T, 4 * w->g->kernels.side) * k.n);
	if (k.n == 1)
		return;
	push.q = push.y;
	push.y = context;
	vn_encode_reads(e, to);
	reads_sinks(w, n);
	vn_encode_writes(e, y);
	vn_encode_dispatch(e, VN_K_ATTENTION_JOIN, &push, T * H, 1);
}

void vn_ops_attention(vn_gpu_pass *w, const vn_node *n)
{
	const int64_t K = n->c.attention.head_dim, U = vn_attention_value_dim(&n->c);
	const int64_t step = rows_at_once(n->c.attention.heads * (K > U ? K : U));

	for (int64_t t = 0; t < w->tokens; t += step)
		encode_queries(w, n, t, smaller(step, w->tokens - t));
}

void vn_ops_attention_part(vn_gpu_pass *w, int node, int slot, int64_t head, vn_gpu_piece p)
{
	const vn_node    *n = &w->g->plan->node[node];
	vn_push_attention push = attention_push(w, n, p.row, p.rows);

	push.y = w->g->scratch.address;
	push.h0 = (uint32_t)head;
	push.j0 = (uint32_t)p.col;
	push.n_keys = (uint32_t)p.cols;
	vn_encode_reads(&w->g->encoder, buffer_of(w, n->in[VN_ATTN_Q]));
	reads_state(w, n, VN_ATTN_KEYS);
	reads_sinks(w, n);
	vn_encode_writes(&w->g->encoder, &w->g->scratch);
	if (slot == VN_ATTN_SCORES)
		vn_encode_dispatch(&w->g->encoder, VN_K_ATTN_SCORES, &push, count_groups(p.rows * p.cols, 64), 1);
	else
		vn_encode_dispatch(&w->g->encoder, VN_K_ATTN_PROBS, &push, p.rows, 1);
}
