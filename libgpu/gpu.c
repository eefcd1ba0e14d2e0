/* gpu.c: the engine under test: create, one forward pass, what it says of itself. */
#include "libgpu/engine.h"

#include "libgpu/ops.h"
#include "libgpu/pieces.h"

#include "libref/base/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KMAX 256 /* shaders/attention.comp */

/* Constants can be set by experiments: what a shader relies on is checked here. */
static vn_status check_node(const vn_plan *p, const vn_node *n, vn_error *err)
{
	const vn_value *y = &p->value[n->out[0]];

	if (n->op == VN_OP_ATTENTION) {
		const int       H = n->c.attention.heads, G = n->c.attention.kv_heads, K = n->c.attention.head_dim;
		const vn_value *q = &p->value[n->in[VN_ATTN_Q]];
		const vn_value *k = &p->value[n->in[VN_ATTN_K]], *v = &p->value[n->in[VN_ATTN_V]];
		if (H < 1 || G < 1 || K < 1 || H % G || vn_value_row(q) != (int64_t)H * K ||
		    vn_value_row(k) != (int64_t)G * K || vn_value_row(v) != (int64_t)G * K)
			return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: %d heads, %d key heads of width %d do not fit its inputs",
			               y->name, H, G, K);
		if (K > KMAX)
			return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: heads are %d wide, and the GPU engine takes %d at most",
			               y->name, K, KMAX);
		if ((int64_t)p->context * G * K > INT32_MAX)
			return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: a cache of %d tokens is over 2^31 elements", y->name, p->context);
		if (n->c.attention.cache < 0 || n->c.attention.cache >= p->caches || n->c.attention.window < 0)
			return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: no cache %d, or a window of %d", y->name,
			               n->c.attention.cache, n->c.attention.window);
	} else if (n->op == VN_OP_ROPE) {
		const int R = n->c.rope.rope.rotary_dim;
		if (y->rank != 3 || R < 2 || R % 2 || R > y->size[2])
			return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: rotary width %d of a head of %d", y->name, R,
			               y->size[y->rank - 1]);
	} else if (n->op == VN_OP_ACT || n->op == VN_OP_GATED) {
		if (n->c.act.act != VN_SILU)
			return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: activation %s is not on the GPU", y->name,
			               vn_act_name(n->c.act.act));
	} else if (n->op != VN_OP_EMBED && n->op != VN_OP_RMS_NORM && n->op != VN_OP_LINEAR && n->op != VN_OP_ADD) {
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: operation %s is not on the GPU", y->name, vn_op_name(n->op));
	}
	return VN_OK;
}

static vn_status check_plan(const vn_plan *p, vn_error *err)
{
	vn_status st = VN_OK;

	for (int i = 0; i < p->n_nodes && !st; i++)
		st = check_node(p, &p->node[i], err);
	for (int i = 0; i < p->n_nodes && !st; i++)
		for (int k = i + 1; k < p->n_nodes && p->node[i].op == VN_OP_ATTENTION; k++)
			if (p->node[k].op == VN_OP_ATTENTION && p->node[k].c.attention.cache == p->node[i].c.attention.cache)
				return vn_fail(err, VN_ERR_UNSUPPORTED, "%s and %s use the same cache",
				               p->value[p->node[i].out[0]].name, p->value[p->node[k].out[0]].name);
	return st;
}

/* Nodes with the same settings share one table. */
static vn_status find_ropes(vn_gpu *g, vn_error *err)
{
	const vn_plan *p = g->plan;
	const size_t   n = p->n_nodes ? (size_t)p->n_nodes : 1;

	g->rope_of = calloc(n, sizeof(*g->rope_of));
	g->rope_node = calloc(n, sizeof(*g->rope_node));
	g->table_at = calloc(n, sizeof(*g->table_at));
	g->node_ms = calloc(n, sizeof(*g->node_ms));
	g->stamp = calloc(n + 1, sizeof(*g->stamp));
	if (!g->rope_of || !g->rope_node || !g->table_at || !g->node_ms || !g->stamp)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for an engine of %d nodes", p->n_nodes);
	for (int i = 0; i < p->n_nodes; i++) {
		int r = 0;
		g->rope_of[i] = -1;
		if (p->node[i].op != VN_OP_ROPE)
			continue;
		while (r < g->n_ropes && memcmp(&p->node[g->rope_node[r]].c.rope.rope, &p->node[i].c.rope.rope, sizeof(vn_rope)))
			r++;
		if (r == g->n_ropes)
			g->rope_node[g->n_ropes++] = i;
		g->rope_of[i] = r;
	}
	return VN_OK;
}

vn_status vn_gpu_create(const vn_plan *plan, const vn_tensor *weights, const vn_gpu_options *o, vn_gpu **gpu,
                        vn_error *err)
{
	const bool half_sums = o->policy.sums == VN_F16;
	vn_gpu    *g;
	vn_status  st;

	*gpu = NULL;
	if (!(o->policy.storage == VN_F32 && o->policy.sums == VN_F32) &&
	    !(o->policy.storage == VN_F16 && (half_sums || o->policy.sums == VN_F32)))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "the GPU engine computes in f16, f16-acc16 and f32, not in %s",
		               vn_policy_name(o->policy));
	if (!(g = calloc(1, sizeof(*g))))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for an engine");
	g->plan = plan;
	g->policy = o->policy;
	g->guard = o->guard;
	g->validate = o->validate;
	g->progress = o->progress;
	g->break_skip = g->break_overrun = -1;
	if ((st = check_plan(plan, err)) || (st = find_ropes(g, err)) ||
	    (st = vn_device_open(&g->device, o->device, half_sums, o->validate, err)) ||
	    (st = vn_kernels_create(&g->device, &g->kernels, o->policy, o->cache_dir, err)) ||
	    (st = vn_encoder_create(&g->device, &g->kernels, (uint32_t)plan->n_nodes + 1, &g->encoder, err)) ||
	    (st = vn_arena_create(&g->arena, plan, err)) || (st = vn_cache_create(&g->cache, plan, o->policy.storage, err)) ||
	    (st = vn_staging_create(&g->device, &g->staging, o->staging, err)) ||
	    (st = vn_weights_create(&g->encoder, &g->weights, plan, weights, o->policy.storage, o->guard, o->progress, err)) ||
	    (st = vn_device_complaint(&g->device, err))) {
		vn_gpu_destroy(g);
		return st;
	}
	*gpu = g;
	return VN_OK;
}

void vn_gpu_destroy(vn_gpu *g)
{
	if (!g)
		return;
	vn_encoder_destroy(&g->encoder);
	vn_guard_destroy(&g->device, &g->zones);
	if (g->scratch.buffer)
		vn_buffer_destroy(&g->device, &g->scratch);
	if (g->upload.buffer)
		vn_buffer_destroy(&g->device, &g->upload);
	vn_weights_destroy(&g->device, &g->weights);
	vn_staging_destroy(&g->device, &g->staging);
	vn_cache_destroy(&g->device, &g->cache);
	vn_arena_destroy(&g->device, &g->arena);
	if (g->device.device)
		vn_kernels_destroy(&g->device, &g->kernels);
	vn_device_close(&g->device);
	free(g->stamp);
	free(g->node_ms);
	free(g->table_at);
	free(g->rope_node);
	free(g->rope_of);
	free(g);
}

/* A buffer of at least (with guard: exactly) that size; contents are lost. */
static vn_status ensure(vn_gpu *g, vn_buffer *b, vn_place place, VkDeviceSize bytes, const char *name, vn_error *err)
{
	if (b->buffer && (g->guard ? b->size == bytes : b->size >= bytes))
		return VN_OK;
	if (b->buffer)
		vn_buffer_destroy(&g->device, b);
	return vn_buffer_create(&g->device, b, place, bytes, g->guard, name, err);
}

/* (T, R/2, 2): cosine and sine of each pair's angle. The angle is the float32
 * product, as models compute it; its cosine is taken in double. */
static vn_status fill_table(const vn_rope *r, float *table, int64_t past, int64_t tokens, vn_error *err)
{
	const int half = r->rotary_dim / 2;
	float    *freq = malloc((size_t)half * sizeof(*freq));
	float     factor;

	if (!freq)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d frequencies", half);
	vn_rope_frequencies(r, freq, &factor);
	for (int64_t t = 0; t < tokens; t++)
		for (int i = 0; i < half; i++) {
			const float angle = freq[i] * (float)(past + t);
			*table++ = (float)cos((double)angle) * factor;
			*table++ = (float)sin((double)angle) * factor;
		}
	free(freq);
	return VN_OK;
}

/* What the host gives to a pass: ids and tables. */
static vn_status upload(vn_walk *w, const int32_t *ids, vn_error *err)
{
	vn_gpu      *g = w->g;
	VkDeviceSize bytes = (VkDeviceSize)w->tokens * 4;
	vn_status    st;

	for (int r = 0; r < g->n_ropes; r++) {
		g->table_at[r] = (bytes + VN_ZONE - 1) & ~(VkDeviceSize)(VN_ZONE - 1);
		bytes = g->table_at[r] + (VkDeviceSize)w->tokens * (VkDeviceSize)g->plan->node[g->rope_node[r]].c.rope.rope.rotary_dim * 4;
	}
	if ((st = ensure(g, &g->upload, VN_FOR_UPLOAD, bytes, "ids and rope tables", err)))
		return st;
	if (g->guard)
		memset((char *)g->upload.map - g->upload.offset, 0xFF, g->upload.total);
	memcpy(g->upload.map, ids, (size_t)w->tokens * 4);
	for (int r = 0; r < g->n_ropes && !st; r++)
		st = fill_table(&g->plan->node[g->rope_node[r]].c.rope.rope, (float *)(void *)((char *)g->upload.map + g->table_at[r]),
		                w->past, w->tokens, err);
	return st;
}

/* Lists every zone and makes room to read them back. */
static vn_status prepare_guard(vn_gpu *g, vn_error *err)
{
	const vn_plan *p = g->plan;

	vn_guard_clear(&g->zones);
	for (int s = 0; s < g->arena.n_slots; s++)
		vn_guard_buffer(&g->zones, &g->arena.slot[s]);
	for (int i = 0; i < g->cache.n; i++) {
		vn_guard_buffer(&g->zones, &g->cache.slot[i].k);
		vn_guard_buffer(&g->zones, &g->cache.slot[i].v);
	}
	vn_guard_buffer(&g->zones, &g->scratch);
	vn_guard_buffer(&g->zones, &g->upload);
	for (int i = 0; i < g->weights.n_blocks; i++)
		vn_guard_buffer(&g->zones, &g->weights.block[i]);
	for (int i = 0; i + 1 < g->weights.n; i++) {
		const vn_weight_place *a = &g->weights.at[i], *b = &g->weights.at[i + 1];
		vn_buffer *block = &g->weights.block[a->block];
		if (b->block == a->block)
			vn_guard_zone(&g->zones, block, block->offset + a->offset + a->bytes, b->offset - a->offset - a->bytes,
			              p->weight[i].name, p->weight[i + 1].name);
	}
	return vn_guard_prepare(&g->device, &g->zones, err);
}

static void poison(vn_gpu *g)
{
	for (int s = 0; s < g->arena.n_slots; s++)
		vn_encode_poison(&g->encoder, &g->arena.slot[s]);
	for (int i = 0; i < g->cache.n && g->position == 0; i++) {
		vn_encode_poison(&g->encoder, &g->cache.slot[i].k);
		vn_encode_poison(&g->encoder, &g->cache.slot[i].v);
	}
	vn_encode_poison(&g->encoder, &g->scratch);
}

/* For the tests of the guard: four bytes right behind an output. */
static void overrun(vn_walk *w, int node)
{
	vn_buffer *b = &w->g->arena.slot[w->g->arena.slot_of[w->g->plan->node[node].out[0]]];

	vn_encode_copy(&w->g->encoder, &w->g->upload, 0, b, b->size, 4);
}

/* A node's outputs in the order of the plan's values, which is that of execution. */
static vn_status taps_of(vn_walk *w, int node, vn_error *err)
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
		if (vn_arena_pieced(&w->g->arena, w->g->plan, v))
			st = vn_pieces_encode(w, v, err);
		else
			st = vn_staging_tap(w, v, &w->g->arena.slot[w->g->arena.slot_of[v]], err);
	}
	return st;
}

static vn_status walk(vn_walk *w, vn_error *err)
{
	vn_gpu     *g = w->g;
	vn_progress p = { 0 };
	vn_status   st;

	if ((st = vn_encode_begin(&g->encoder, err)))
		return st;
	if (g->guard)
		poison(g);
	vn_encode_reset_stamps(&g->encoder);
	vn_encode_stamp(&g->encoder, 0);
	if (g->progress)
		vn_progress_start(&p, "node", g->plan->n_nodes);
	for (int i = 0; i < g->plan->n_nodes && !st; i++) {
		if (i != g->break_skip)
			vn_ops_encode(w, i);
		if (i == g->break_overrun)
			overrun(w, i);
		if (!(st = taps_of(w, i, err))) /* a failure may leave nothing to record into */
			vn_encode_stamp(&g->encoder, (uint32_t)i + 1);
		if (g->progress)
			vn_progress_at(&p, i + 1);
	}
	if (!st && g->guard)
		vn_guard_encode(&g->encoder, &g->zones);
	if (!st)
		st = vn_staging_finish(w, err);
	if (!st && g->guard)
		st = vn_guard_check(&g->zones, err);
	if (g->progress)
		vn_progress_stop(&p);
	return st;
}

static void read_stamps(vn_gpu *g)
{
	const uint32_t   n = (uint32_t)g->plan->n_nodes;
	const vn_device *d = &g->device;

	g->timed = g->encoder.queries &&
	           vkGetQueryPoolResults(d->device, g->encoder.queries, 0, n + 1, (n + 1) * sizeof(*g->stamp), g->stamp,
	                                 sizeof(*g->stamp), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT) == VK_SUCCESS;
	if (!g->timed)
		return;
	for (uint32_t i = 0; i < n; i++)
		g->node_ms[i] = (double)((g->stamp[i + 1] - g->stamp[i]) & d->tick_mask) * d->ns_per_tick * 1e-6;
	g->total_ms = (double)((g->stamp[n] - g->stamp[0]) & d->tick_mask) * d->ns_per_tick * 1e-6;
}

static vn_status check_ids(const vn_gpu *g, const int32_t *ids, int64_t tokens, vn_error *err)
{
	if (tokens < 1)
		return vn_fail(err, VN_ERR_USAGE, "a forward pass needs at least one token");
	if (tokens > g->plan->context - g->position)
		return vn_fail(err, VN_ERR_USAGE, "%lld tokens behind %lld are more than the model's context of %d",
		               (long long)tokens, (long long)g->position, g->plan->context);
	for (int64_t t = 0; t < tokens; t++)
		if (ids[t] < 0 || ids[t] >= g->plan->vocab)
			return vn_fail(err, VN_ERR_USAGE, "token %lld: id %ld is outside the vocabulary of %d", (long long)t,
			               (long)ids[t], g->plan->vocab);
	return VN_OK;
}

vn_status vn_gpu_forward(vn_gpu *g, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err)
{
	vn_walk   w = { .g = g, .taps = taps, .tokens = tokens, .past = g->position };
	vn_status st;

	g->timed = false;
	g->encoder.submits = 0;
	if ((st = check_ids(g, ids, tokens, err)))
		return st;
	if (taps)
		vn_taps_select(taps, w.past, tokens, &w.first, &w.count);
	if ((st = vn_cache_grow(&g->encoder, &g->cache, w.past + tokens, w.past, g->plan->context, g->guard, err)) ||
	    (st = vn_arena_layout(&g->device, &g->arena, g->plan, g->policy.storage, tokens, g->guard, err)) ||
	    (st = ensure(g, &g->scratch, VN_ON_DEVICE, vn_pieces_scratch(&w), "scratch", err)) ||
	    (st = upload(&w, ids, err)) || (g->guard && (st = prepare_guard(g, err))))
		return st;
	g->encoder.submits = 0;
	vn_staging_reset(&g->staging, g->guard);
	if ((st = walk(&w, err)) || (st = vn_device_complaint(&g->device, err))) {
		vn_encode_abandon(&g->encoder);
		return st;
	}
	read_stamps(g);
	g->position += tokens;
	return VN_OK;
}

int64_t vn_gpu_position(const vn_gpu *g)
{
	return g->position;
}

void vn_gpu_reset(vn_gpu *g)
{
	g->position = 0;
}

void vn_gpu_facts(const vn_gpu *g, vn_facts *f)
{
	const vn_gpu_device *d = &g->device.info;

	vn_facts_set(f, "engine", "gpu");
	vn_facts_set(f, "device", "%s", d->name);
	vn_facts_set(f, "device_type", "%s", d->type);
	vn_facts_set(f, "driver", "%s", d->driver);
	vn_facts_set(f, "vulkan", "%s", d->api);
	vn_facts_set(f, "precision", "%s", vn_policy_name(g->policy));
	vn_facts_set(f, "bytes_weights", "%lld", (long long)g->weights.bytes);
	vn_facts_set(f, "bytes_arena", "%lld", (long long)(g->arena.bytes + (int64_t)(g->scratch.held + g->upload.held)));
	vn_facts_set(f, "bytes_cache", "%lld", (long long)g->cache.bytes);
	vn_facts_set(f, "bytes_staging", "%lld", (long long)(g->staging.buf[0].held + g->staging.buf[1].held));
	vn_facts_set(f, "submits", "%d", g->encoder.submits);
	if (g->timed)
		vn_facts_set(f, "device_ms", "%.3f", g->total_ms);
	vn_facts_set(f, "weights_overflowed", "%lld", (long long)g->weights.overflowed);
	if (g->weights.overflowed)
		vn_facts_set(f, "weights_overflowed_in", "%s", g->plan->weight[g->weights.first_overflowed].name);
}

const double *vn_gpu_node_ms(const vn_gpu *g, double *total)
{
	if (!g->timed)
		return NULL;
	if (total)
		*total = g->total_ms;
	return g->node_ms;
}
