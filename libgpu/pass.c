/* pass.c: see pass.h. */
#include "libgpu/pass.h"

#include "libgpu/compile.h"
#include "libgpu/load.h"
#include "libgpu/ops.h"
#include "libgpu/pieces.h"
#include "libgpu/transfer.h"
#include "libref/plan/gemm.h"

#include <string.h>

static vn_status ensure_buffer(vn_gpu *g, vn_buffer *b, vn_gpu_block place, VkDeviceSize bytes, const char *name,
                               vn_error *err)
{
	return vn_buffer_ensure(&g->device, b, &(vn_buffer_need) { place, bytes, g->guard, name }, err);
}

/* Uploads the host's inputs of a pass: ids and tables. */
static vn_status upload_inputs(vn_gpu_pass *w, const int32_t *ids, vn_error *err)
{
	vn_gpu      *g = w->g;
	VkDeviceSize bytes = (VkDeviceSize)w->tokens * 4;
	vn_status    st;

	for (vn_gpu_rope *r = g->rope; r < g->rope + g->n_ropes; r++) {
		r->at = (bytes + VN_ZONE - 1) & ~(VkDeviceSize)(VN_ZONE - 1);
		bytes = r->at + (VkDeviceSize)w->tokens * (VkDeviceSize)g->plan->node[r->node].c.rope.rope.rotary_dim * 4;
	}
	if ((st = ensure_buffer(g, &g->upload, VN_FOR_UPLOAD, bytes, "ids and rope tables", err)))
		return st;
	if (g->guard)
		memset((char *)g->upload.map - g->upload.offset, 0xFF, g->upload.total);
	memcpy(g->upload.map, ids, (size_t)w->tokens * 4);
	for (vn_gpu_rope *r = g->rope; r < g->rope + g->n_ropes && !st; r++) {
		st = vn_rope_table_fill(&r->kept, (float *)(void *)((char *)g->upload.map + r->at), w->past, w->tokens, err);
	}
	return st;
}

/* Lists every zone and makes room to read them back. */
static vn_status prepare_guard(vn_gpu *g, vn_error *err)
{
	const vn_plan *p = g->plan;

	vn_guard_clear(&g->zones);
	for (int s = 0; s < g->arena.n_slots; s++)
		vn_guard_buffer(&g->zones, &g->arena.slot[s].b);
	for (int i = 0; i < g->cache.n; i++) {
		vn_guard_buffer(&g->zones, &g->cache.slot[i].now);
		if (!g->cache.slot[i].grows)
			vn_guard_buffer(&g->zones, &g->cache.slot[i].next);
	}
	if (g->cache.pages.block)
		vn_guard_buffer(&g->zones, &g->cache.pages.table);
	vn_guard_buffer(&g->zones, &g->scratch);
	vn_guard_buffer(&g->zones, &g->sums);
	vn_guard_buffer(&g->zones, &g->pairs);
	vn_guard_buffer(&g->zones, &g->upload);
	vn_guard_buffer(&g->zones, &g->staging.buf[0]);
	vn_guard_buffer(&g->zones, &g->staging.buf[1]);
	vn_guard_buffer(&g->zones, &g->weights.addresses);
	for (int i = 0; i < g->weights.n_blocks; i++)
		vn_guard_buffer(&g->zones, &g->weights.block[i]);
	for (int i = 0; i < g->weights.n; i++) {
		const vn_gpu_weight_place *a = &g->weights.at[i], *b;
		vn_buffer                 *block = &g->weights.block[a->block];
		int                        k = i + 1; /* the next weight in its block; others may be between */
		while (k < g->weights.n && g->weights.at[k].block != a->block)
			k++;
		if (k == g->weights.n || a->bytes > vn_gpu_weights_block)
			continue;
		b = &g->weights.at[k];
		vn_guard_zone(&g->zones, block, block->offset + a->offset + a->bytes, b->offset - a->offset - a->bytes,
		              p->weight[i].name, p->weight[k].name);
	}
	return vn_guard_prepare(&g->device, &g->zones, err);
}

static void poison_buffers(vn_gpu *g)
{
	for (int s = 0; s < g->arena.n_slots; s++)
		vn_encode_poison(&g->encoder, &g->arena.slot[s].b);
	for (int i = 0; i < g->cache.n; i++) {
		if (g->position == 0)
			vn_encode_poison(&g->encoder, &g->cache.slot[i].now);
		if (!g->cache.slot[i].grows)
			vn_encode_poison(&g->encoder, &g->cache.slot[i].next);
	}
	vn_encode_poison(&g->encoder, &g->scratch);
	vn_encode_poison(&g->encoder, &g->sums);
	vn_encode_poison(&g->encoder, &g->pairs);
}

/* For tests of the guard: writes four bytes directly after an output. */
static void overrun_output(vn_gpu_pass *w, int node)
{
	vn_buffer *b = vn_gpu_place(w->g, w->g->plan->node[node].out[0]);

	vn_encode_copy(&w->g->encoder, &w->g->upload, 0, b, b->size, 4);
}

static vn_status tap_state(vn_gpu_pass *w, int value, vn_error *err)
{
	vn_buffer *now = vn_cache_see(&w->g->cache, w->g->plan->value[value].state, w->past, w->tokens);
	vn_status  st = VN_OK;

	if (w->g->guard && now)
		st = vn_pieces_state(w, (vn_transfer_part) { .value = value }, now, err);
	if (!st && now && vn_pass_wants(w, value))
		st = vn_pieces_state(w, (vn_transfer_part) { .value = value, .hand = true }, now, err);
	return st;
}

/* Taps a node's outputs in the order of the plan's values, which is the order of execution. */
static vn_status taps_of(vn_gpu_pass *w, int node, vn_error *err)
{
	const vn_node *n = &w->g->plan->node[node];
	int            done = -1;
	vn_status      st = VN_OK;

	for (int k = 0; k < n->n_out && !st; k++) {
		int v = -1;
		for (int i = 0; i < n->n_out; i++)
			if (n->out[i] > done && (v < 0 || n->out[i] < v))
				v = n->out[i];
		if (v < 0)
			break;
		done = v;
		if (w->g->plan->value[v].state >= 0)
			st = tap_state(w, v, err);
		else if (vn_value_streams(w->g->plan, v))
			st = vn_pieces_encode(w, v, err);
		else
			st = vn_transfer_tap(w, v, vn_gpu_place(w->g, v), err);
	}
	return st;
}

static bool fetch_stamps(vn_gpu *g, uint32_t from, uint32_t n)
{
	return vn_vk.GetQueryPoolResults(g->device.device, g->encoder.queries, from, n, n * sizeof(*g->stamp),
	                                 g->stamp + from, sizeof(*g->stamp),
	                                 VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT) == VK_SUCCESS;
}

/* Records a timestamp after a node; after the last node in any case. */
static void record_stamp(vn_gpu *g, int node)
{
	if (g->times_nodes || node + 1 == g->plan->n_nodes)
		vn_encode_stamp(&g->encoder, (uint32_t)node + 1);
}

static void read_stamps(vn_gpu *g)
{
	const uint32_t   n = (uint32_t)g->plan->n_nodes;
	const vn_device *d = &g->device;

	g->timed = g->encoder.queries &&
	           (g->times_nodes ? fetch_stamps(g, 0, n + 1) : fetch_stamps(g, 0, 1) && fetch_stamps(g, n, 1));
	if (!g->timed)
		return;
	for (uint32_t i = 0, first = 0; i < n && g->times_nodes; i++) {
		first = g->node[i].joined ? first : i;
		g->node_ms[i] = 0;
		g->node_ms[first] += (double)((g->stamp[i + 1] - g->stamp[i]) & d->tick_mask) * d->ns_per_tick * 1e-6;
	}
	g->total_ms = (double)((g->stamp[n] - g->stamp[0]) & d->tick_mask) * d->ns_per_tick * 1e-6;
}

static vn_status check_ids(const vn_gpu *g, const int32_t *ids, int64_t tokens, vn_error *err)
{
	if (tokens < 1)
		return vn_fail(err, VN_ERR_USAGE, "a forward pass needs at least one token");
	if (tokens > g->plan->context - g->position)
		return vn_fail(err, VN_ERR_USAGE, "%lld tokens exceed the model's context of %d",
		               (long long)(g->position + tokens), g->plan->context);
	for (int64_t t = 0; t < tokens; t++)
		if (ids[t] < 0 || ids[t] >= g->plan->vocab)
			return vn_fail(err, VN_ERR_USAGE, "token %lld: id %ld is outside the vocabulary of %d", (long long)t,
			               (long)ids[t], g->plan->vocab);
	return VN_OK;
}

/* Shaders count the elements of a state in 31 bits. */
static vn_status check_room(const vn_gpu *g, int64_t keys, vn_error *err)
{
	const vn_plan *p = g->plan;

	for (int i = 0; i < p->n_states; i++) {
		const vn_state *s = &p->state[i];
		if (vn_cache_reach(&g->cache, i, keys) > INT32_MAX)
			return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: the %s of %lld tokens have more than 2^31 elements",
			               p->value[p->node[s->node].out[0]].name, vn_state_word(p, i), (long long)keys);
	}
	return VN_OK;
}

void vn_pass_give_up(vn_gpu *g)
{
	if (!g->open)
		return;
	vn_progress_stop(&g->bar);
	vn_encode_abandon(&g->encoder);
	g->open = false;
}

vn_status vn_pass_failed(vn_gpu *g, vn_status st)
{
	vn_pass_give_up(g);
	return st;
}

/* A call is recorded long before it is computed. On a software device, which may compute for
 * minutes, the device itself counts the nodes that are done. */
static vn_status start_progress(vn_gpu *g, vn_error *err)
{
	vn_status st = VN_OK;

	g->bar = (vn_progress) { 0 };
	if (g->progress) {
		vn_gemm_shares(g->plan, g->walk.tokens, g->walk.past + g->walk.tokens, g->share);
		vn_progress_begin(&g->bar, &(vn_progress) { .what = "node", .total = g->plan->n_nodes, .share = g->share });
	}
	if (!g->bar.on || strcmp(g->device.info.type, "cpu") != 0)
		return VN_OK;
	if (!(st = ensure_buffer(g, &g->counter, VN_FOR_READBACK, sizeof(uint32_t), "node counter", err))) {
		*(uint32_t *)g->counter.map = 0;
		vn_progress_watch(&g->bar, g->counter.map);
	}
	return st;
}

vn_status vn_pass_begin(void *gpu, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err)
{
	vn_gpu      *g = gpu;
	vn_gpu_pass *w = &g->walk;
	vn_status    st;

	vn_pass_give_up(g);
	g->timed = false;
	g->encoder.submits = 0;
	if ((st = check_ids(g, ids, tokens, err)) || (st = check_room(g, g->position + tokens, err)))
		return st;
	*w = (vn_gpu_pass) { .g = g, .tokens = tokens, .past = g->position };
	if (taps) {
		g->taps = *taps;
		w->taps = &g->taps;
		vn_taps_select(taps, w->past, tokens, &w->first, &w->count);
	}
	const VkDeviceSize linear = vn_ops_linear_sums(w), parts = vn_ops_attention_parts(w);
	if ((st = vn_cache_begin(&g->encoder, &g->cache, w->past, tokens, err)) ||
	    (st = vn_arena_layout(&g->device, &g->arena, tokens, err)) ||
	    (st = ensure_buffer(g, &g->scratch, VN_ON_DEVICE, vn_pieces_scratch(w), "scratch", err)) ||
	    (st = ensure_buffer(g, &g->sums, VN_ON_DEVICE, linear > parts ? linear : parts, "sums", err)) ||
	    (st = ensure_buffer(g, &g->pairs, VN_ON_DEVICE, vn_ops_experts_room(w), "rows of experts", err)) ||
	    (st = upload_inputs(w, ids, err)) || (g->guard && (st = prepare_guard(g, err))))
		return st;
	g->encoder.submits = g->encoder.barriers = 0;
	vn_staging_reset(&g->staging, g->guard);
	for (int v = 0; v < g->plan->n_values; v++)
		g->made[v] = false;
	g->next = 0;
	g->times_nodes = g->time_nodes;
	g->foreign_used = 0;
	g->encoder.cur = 0; /* nothing is running: taps use the buffer that the last call used */
	vn_encode_begin(&g->encoder);
	g->open = true;
	if (g->guard)
		poison_buffers(g);
	if (w->past == 0)
		vn_cache_clear(&g->encoder, &g->cache);
	vn_encode_reset_stamps(&g->encoder);
	vn_encode_stamp(&g->encoder, 0);
	return (st = start_progress(g, err)) ? vn_pass_failed(g, st) : VN_OK;
}

vn_status vn_pass_is_open(const vn_gpu *g, vn_error *err)
{
	return g->open ? VN_OK : vn_fail(err, VN_ERR_USAGE, "no call has begun");
}

void vn_pass_over(vn_gpu *g, int to)
{
	for (; g->next < to; g->next++) {
		const vn_node *n = &g->plan->node[g->next];
		for (int k = 0; k < n->n_state; k++) {
			const int from = g->plan->state[n->state[k]].input;
			if (from < 0 || !g->made[n->in[from]])
				continue;
			vn_ops_append(&g->walk, n->state[k]);
			vn_cache_appended(&g->cache, n->state[k], g->walk.past, g->walk.tokens);
		}
		g->node[g->next].joined = false;
		record_stamp(g, g->next);
	}
}

static vn_status check_inputs(const vn_gpu *g, int node, vn_error *err)
{
	const vn_plan *p = g->plan;
	const vn_node *n = &p->node[node];

	if (p->value[n->out[0]].on_demand && !vn_pass_wants(&g->walk, n->out[0]))
		return VN_OK; /* there is nothing to do */
	for (int k = 0; k < n->n_in; k++)
		if (!g->made[vn_plan_root(p, n->in[k])])
			return vn_fail(err, VN_ERR_USAGE, "%s reads %s, which was neither run nor written",
			               p->value[n->out[0]].name, p->value[n->in[k]].name);
	for (int k = 0; k < n->n_state; k++)
		if (g->cache.slot[n->state[k]].upto != g->walk.past)
			return vn_fail(err, VN_ERR_USAGE, "%s: its %s lack an earlier call, which another engine ran",
			               p->value[n->out[0]].name, vn_state_word(p, n->state[k]));
	return VN_OK;
}

/* Shaders have the formulas of models alone. */
static vn_status check_formulas(const vn_gpu *g, int from, int to, vn_error *err)
{
	for (int i = from; i < to; i++) {
		const int       value = g->plan->node[i].out[0];
		const vn_value *v = &g->plan->value[value];
		if (g->node[i].experiment && (!v->on_demand || vn_pass_wants(&g->walk, value)))
			return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: a fault changes its formula, and no shader computes that",
			               v->name);
	}
	return VN_OK;
}

/* The device starts on the first nodes of a long call while the others are recorded. Returns how
 * many nodes keep it busy for that time; 0: the call is submitted as a whole. The next command
 * buffer begins with a barrier, so a call whose barriers an experiment omits is not divided. */
static int first_part(const vn_gpu *g)
{
	enum { LONG = 100 };
	const int n = g->plan->n_nodes < LONG ? 0 : g->plan->n_nodes / 3;

	return n && !vn_gpu_is_early(g, n) && !g->encoder.omit ? n : 0;
}

static void encode_node(vn_gpu *g, int node)
{
	const vn_node *n = &g->plan->node[node];
	const bool     omit = g->encoder.omit;

	g->encoder.omit = omit || vn_gpu_is_early(g, node);
	vn_ops_encode(&g->walk, node);
	g->encoder.omit = omit;
	for (int k = 0; k < n->n_state; k++)
		if (g->plan->state[n->state[k]].input >= 0)
			vn_cache_appended(&g->cache, n->state[k], g->walk.past, g->walk.tokens);
}

/* Checks a node before it runs, and marks its outputs as made. */
static vn_status check_node(vn_gpu *g, int node, vn_error *err)
{
	const vn_node *n = &g->plan->node[node];
	vn_status      st;

	if ((st = vn_encode_asked_to_stop(&g->encoder, err)) || (st = check_inputs(g, node, err)))
		return st;
	for (int k = 0; k < n->n_out; k++)
		if (n->out[k] >= 0)
			g->made[n->out[k]] = true;
	return VN_OK;
}

/* Does what follows the commands of a node: taps, timestamp, progress. */
static vn_status finish_node(vn_gpu *g, int node, vn_error *err)
{
	const vn_node *n = &g->plan->node[node];
	vn_status      st;

	for (int k = 0; k < n->n_state; k++)
		g->cache.slot[n->state[k]].made = !g->cache.slot[n->state[k]].grows;
	if (node == g->break_overrun)
		overrun_output(&g->walk, node);
	if ((st = taps_of(&g->walk, node, err)))
		return st; /* there may be no command buffer to record into */
	record_stamp(g, node);
	if (g->bar.count)
		vn_encode_count(&g->encoder, &g->counter, (uint32_t)node + 1);
	if (node + 1 == first_part(g) && (st = vn_transfer_send(&g->walk, err)))
		return st;
	g->next = node + 1;
	vn_progress_at(&g->bar, g->next);
	return VN_OK;
}

/* Runs one node, or n fused ones. The first of fused nodes is charged with the time of their
 * command. */
static vn_status run_nodes(vn_gpu *g, int node, int n, vn_error *err)
{
	vn_status st = VN_OK;

	for (int k = 0; k < n && !st; k++)
		st = check_node(g, node + k, err);
	if (!st && n > 1)
		vn_ops_encode_fused(&g->walk, node, n);
	else if (!st && node != g->break_skip)
		encode_node(g, node);
	for (int k = 0; k < n && !st; k++) {
		g->node[node + k].joined = k > 0;
		st = finish_node(g, node + k, err);
	}
	return st;
}

vn_status vn_pass_run(void *gpu, int from, int to, vn_error *err)
{
	vn_gpu   *g = gpu;
	vn_status st;

	if ((st = vn_pass_is_open(g, err)))
		return st;
	if (from < g->next || to < from || to > g->plan->n_nodes)
		return vn_pass_failed(g, vn_fail(err, VN_ERR_USAGE,
		                                 "nodes %d to %d cannot run: the next of the plan's %d nodes is %d", from,
		                                 to - 1, g->plan->n_nodes, g->next));
	if ((st = check_formulas(g, from, to, err)))
		return vn_pass_failed(g, st);
	vn_pass_over(g, from);
	if ((st = vn_compile(&g->walk, from, to, err)))
		return vn_pass_failed(g, st);
	for (int i = from, n; i < to; i += n) {
		n = vn_ops_fused(&g->walk, i, to);
		if ((st = run_nodes(g, i, n, err)))
			return vn_pass_failed(g, st);
	}
	return VN_OK;
}

/* An experiment that omits no barrier shows nothing. */
static vn_status check_early(const vn_gpu *g, vn_error *err)
{
	for (int i = 0; i < g->n_early && !g->encoder.left_out; i++)
		if (g->made[g->early[i]])
			return vn_fail(err, VN_ERR_USAGE, "%s: no barrier to omit: an earlier barrier already waits for its inputs",
			               g->plan->value[g->early[i]].name);
	return VN_OK;
}

vn_status vn_pass_end(void *gpu, bool keep, vn_error *err)
{
	vn_gpu   *g = gpu;
	vn_status st;

	if (!g->open && !keep)
		return VN_OK;
	if ((st = vn_pass_is_open(g, err)))
		return st;
	vn_pass_over(g, g->plan->n_nodes);
	if ((st = check_early(g, err)))
		return vn_pass_failed(g, st);
	if (g->guard)
		vn_guard_encode(&g->encoder, &g->zones);
	if ((st = vn_transfer_finish(&g->walk, err)) || (g->guard && (st = vn_guard_check(&g->zones, err))) ||
	    (st = vn_device_complaint(&g->device, err)))
		return vn_pass_failed(g, st);
	vn_progress_stop(&g->bar);
	g->open = false;
	read_stamps(g);
	if (keep) {
		g->position += g->walk.tokens;
		vn_cache_keep(&g->cache, g->position);
	}
	return VN_OK;
}
