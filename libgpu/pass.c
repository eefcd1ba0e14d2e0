/* pass.c: one call: begun, run node by node, read from and written to, ended. */
#include "libgpu/engine.h"

#include "libgpu/ops.h"
#include "libgpu/pieces.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FOREIGN ((VkDeviceSize)1 << 20) /* least room for values from elsewhere */

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
static vn_status fill_table(const vn_rope *r, const vn_list *lists, float *table, int64_t past, int64_t tokens, vn_error *err)
{
	const int half = r->rotary_dim / 2;
	float    *freq = malloc((size_t)half * sizeof(*freq));
	float     factor;

	if (!freq)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d frequencies", half);
	vn_rope_frequencies(r, lists, past + tokens, freq, &factor);
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
		st = fill_table(&g->plan->node[g->rope_node[r]].c.rope.rope, g->plan->list,
		                (float *)(void *)((char *)g->upload.map + g->table_at[r]), w->past, w->tokens, err);
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
		vn_guard_buffer(&g->zones, &g->cache.slot[i].now);
		if (!g->cache.slot[i].grows)
			vn_guard_buffer(&g->zones, &g->cache.slot[i].next);
	}
	vn_guard_buffer(&g->zones, &g->scratch);
	vn_guard_buffer(&g->zones, &g->upload);
	vn_guard_buffer(&g->zones, &g->staging.buf[0]);
	vn_guard_buffer(&g->zones, &g->staging.buf[1]);
	for (int i = 0; i < g->weights.n_blocks; i++)
		vn_guard_buffer(&g->zones, &g->weights.block[i]);
	for (int i = 0; i < g->weights.n; i++) {
		const vn_weight_place *a = &g->weights.at[i], *b;
		vn_buffer *block = &g->weights.block[a->block];
		int        k = i + 1; /* the next in its block; one with a block of its own may stand between */
		while (k < g->weights.n && g->weights.at[k].block != a->block)
			k++;
		if (k == g->weights.n || a->bytes > vn_weights_block)
			continue;
		b = &g->weights.at[k];
		vn_guard_zone(&g->zones, block, block->offset + a->offset + a->bytes, b->offset - a->offset - a->bytes,
		              p->weight[i].name, p->weight[k].name);
	}
	return vn_guard_prepare(&g->device, &g->zones, err);
}

static void poison(vn_gpu *g)
{
	for (int s = 0; s < g->arena.n_slots; s++)
		vn_encode_poison(&g->encoder, &g->arena.slot[s]);
	for (int i = 0; i < g->cache.n; i++) {
		if (g->position == 0)
			vn_encode_poison(&g->encoder, &g->cache.slot[i].now);
		if (!g->cache.slot[i].grows)
			vn_encode_poison(&g->encoder, &g->cache.slot[i].next);
	}
	vn_encode_poison(&g->encoder, &g->scratch);
}

static int64_t elements_of(const vn_walk *w, int value)
{
	const vn_shape s = vn_value_shape(&w->g->plan->value[value], w->tokens, w->past + w->tokens);

	return vn_shape_count(&s);
}

/* For the tests of the guard: four bytes right behind an output. */
static void overrun(vn_walk *w, int node)
{
	vn_buffer *b = &w->g->arena.slot[w->g->arena.slot_of[w->g->plan->node[node].out[0]]];

	vn_encode_copy(&w->g->encoder, &w->g->upload, 0, b, b->size, 4);
}

static vn_status tap_state(vn_walk *w, int value, vn_error *err)
{
	vn_buffer *now = vn_cache_see(&w->g->cache, w->g->plan->value[value].state, w->past, w->tokens);
	vn_status  st = VN_OK;

	if (w->g->guard && now)
		st = vn_staging_take(w, value, false, 0, now, 0, elements_of(w, value), err);
	if (!st && now && vn_walk_wants(w, value))
		st = vn_staging_take(w, value, true, 0, now, 0, elements_of(w, value), err);
	return st;
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
		if (w->g->plan->value[v].state >= 0)
			st = tap_state(w, v, err);
		else if (vn_value_streams(w->g->plan, v))
			st = vn_pieces_encode(w, v, err);
		else
			st = vn_staging_tap(w, v, &w->g->arena.slot[w->g->arena.slot_of[v]], err);
	}
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

/* Shaders count the elements of a state in 31 bits. */
static vn_status check_room(const vn_gpu *g, int64_t keys, vn_error *err)
{
	const vn_plan *p = g->plan;

	for (int i = 0; i < p->n_states; i++) {
		const vn_state *s = &p->state[i];
		if (vn_state_row(s) > INT32_MAX / (s->input >= 0 ? keys : 1))
			return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: the %s of %lld tokens are over 2^31 elements",
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

static vn_status failed(vn_gpu *g, vn_status st)
{
	vn_pass_give_up(g);
	return st;
}

vn_status vn_gpu_begin(vn_gpu *g, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err)
{
	vn_walk  *w = &g->walk;
	vn_status st;

	vn_pass_give_up(g);
	g->timed = false;
	g->encoder.submits = 0;
	if ((st = check_ids(g, ids, tokens, err)) || (st = check_room(g, g->position + tokens, err)))
		return st;
	*w = (vn_walk){ .g = g, .tokens = tokens, .past = g->position };
	if (taps) {
		g->taps = *taps;
		w->taps = &g->taps;
		vn_taps_select(taps, w->past, tokens, &w->first, &w->count);
	}
	if ((st = vn_cache_begin(&g->encoder, &g->cache, w->past, tokens, g->guard, err)) ||
	    (st = vn_arena_layout(&g->device, &g->arena, g->plan, g->policy.storage, tokens, g->guard, err)) ||
	    (st = ensure(g, &g->scratch, VN_ON_DEVICE, vn_pieces_scratch(w), "scratch", err)) ||
	    (st = upload(w, ids, err)) || (g->guard && (st = prepare_guard(g, err))))
		return st;
	g->encoder.submits = 0;
	vn_staging_reset(&g->staging, g->guard);
	for (int v = 0; v < g->plan->n_values; v++)
		g->made[v] = false;
	g->next = 0;
	g->foreign_used = 0;
	if ((st = vn_encode_begin(&g->encoder, err)))
		return st;
	g->open = true;
	if (g->guard)
		poison(g);
	if (w->past == 0)
		vn_cache_clear(&g->encoder, &g->cache);
	vn_encode_reset_stamps(&g->encoder);
	vn_encode_stamp(&g->encoder, 0);
	g->bar = (vn_progress){ 0 };
	if (g->progress)
		vn_progress_start(&g->bar, "node", g->plan->n_nodes);
	return VN_OK;
}

static vn_status check_open(const vn_gpu *g, vn_error *err)
{
	return g->open ? VN_OK : vn_fail(err, VN_ERR_USAGE, "no call is begun");
}

/* Nodes up to `to` are not run here. What joins their states does so even then,
 * if it is there: a later call may run the attention. */
static void pass_over(vn_gpu *g, int to)
{
	for (; g->next < to; g->next++) {
		const vn_node *n = &g->plan->node[g->next];
		for (int k = 0; k < n->n_state; k++) {
			const int from = g->plan->state[n->state[k]].input;
			if (from >= 0 && g->made[n->in[from]])
				vn_ops_append(&g->walk, n->state[k]);
		}
		vn_encode_stamp(&g->encoder, (uint32_t)g->next + 1);
	}
}

static vn_status check_inputs(const vn_gpu *g, int node, vn_error *err)
{
	const vn_plan *p = g->plan;
	const vn_node *n = &p->node[node];

	if (p->value[n->out[0]].on_demand && !vn_walk_wants(&g->walk, n->out[0]))
		return VN_OK; /* there is nothing to do */
	for (int k = 0; k < n->n_in; k++)
		if (!g->made[vn_plan_root(p, n->in[k])])
			return vn_fail(err, VN_ERR_USAGE, "%s reads %s, which was neither run nor written",
			               p->value[n->out[0]].name, p->value[n->in[k]].name);
	for (int k = 0; k < n->n_state; k++)
		if (g->cache.slot[n->state[k]].upto != g->walk.past)
			return vn_fail(err, VN_ERR_USAGE, "%s was run elsewhere in an earlier call, and its %s lack that one",
			               p->value[n->out[0]].name, vn_state_word(p, n->state[k]));
	return VN_OK;
}

static vn_status run_node(vn_gpu *g, int node, vn_error *err)
{
	const vn_node *n = &g->plan->node[node];
	vn_status      st;

	if ((st = vn_encode_asked_to_stop(&g->encoder, err)) || (st = check_inputs(g, node, err)))
		return st;
	if (node != g->break_skip)
		vn_ops_encode(&g->walk, node);
	for (int k = 0; k < n->n_state; k++)
		g->cache.slot[n->state[k]].made = !g->cache.slot[n->state[k]].grows;
	if (node == g->break_overrun)
		overrun(&g->walk, node);
	if ((st = taps_of(&g->walk, node, err)))
		return st; /* there may be nothing to record into */
	vn_encode_stamp(&g->encoder, (uint32_t)node + 1);
	for (int k = 0; k < n->n_out; k++)
		if (n->out[k] >= 0)
			g->made[n->out[k]] = true;
	g->next = node + 1;
	vn_progress_at(&g->bar, g->next);
	return VN_OK;
}

vn_status vn_gpu_run(vn_gpu *g, int from, int to, vn_error *err)
{
	vn_status st;

	if ((st = check_open(g, err)))
		return st;
	if (from < g->next || to < from || to > g->plan->n_nodes)
		return failed(g, vn_fail(err, VN_ERR_USAGE, "nodes %d to %d cannot be run behind %d, of %d in all", from, to,
		                         g->next, g->plan->n_nodes));
	pass_over(g, from);
	for (int i = from; i < to; i++)
		if ((st = run_node(g, i, err)))
			return failed(g, st);
	return VN_OK;
}

/* Where a state is read or written; NULL after saying what is wrong. */
static vn_buffer *state_slot(vn_gpu *g, int value, bool write, vn_error *err)
{
	const int      state = g->plan->value[value].state;
	vn_cache_slot *c = &g->cache.slot[state];
	vn_buffer     *now = write && !c->grows ? &c->next : vn_cache_see(&g->cache, state, g->walk.past, g->walk.tokens);

	if (write && c->grows) {
		vn_fail(err, VN_ERR_USAGE, "%s cannot be written: it grows by what its node reads", g->plan->value[value].name);
		return NULL;
	}
	if (!now)
		vn_fail(err, VN_ERR_USAGE, "%s cannot be read: it was neither run nor written", g->plan->value[value].name);
	return now;
}

/* The slot of a value that a node from g->next on reads; NULL after saying what is wrong. */
static vn_buffer *slot_of(vn_gpu *g, int value, const char *what, vn_error *err)
{
	const vn_plan *p = g->plan;

	if (value < 0 || value >= p->n_values) {
		vn_fail(err, VN_ERR_USAGE, "there is no value %d to %s: the plan has %d", value, what, p->n_values);
		return NULL;
	}
	const int root = vn_plan_root(p, value);
	if (p->value[root].state >= 0)
		return state_slot(g, value, strcmp(what, "write") == 0, err);
	if (g->arena.slot_of[root] < 0 || p->value[root].last_use < g->next) {
		vn_fail(err, VN_ERR_USAGE, "%s cannot be %s: no node from %d on reads it", p->value[value].name,
		        strcmp(what, "read") == 0 ? "read" : "written", g->next);
		return NULL;
	}
	return &g->arena.slot[g->arena.slot_of[root]];
}

vn_status vn_gpu_read(vn_gpu *g, int value, void *data, vn_error *err)
{
	vn_buffer *b;
	vn_status  st;

	if ((st = check_open(g, err)))
		return st;
	if (!(b = slot_of(g, value, "read", err)))
		return failed(g, VN_ERR_USAGE);
	const int root = vn_plan_root(g->plan, value);
	if (!g->made[root] && g->plan->value[root].state < 0)
		return failed(g, vn_fail(err, VN_ERR_USAGE, "%s cannot be read: it was neither run nor written",
		                         g->plan->value[value].name));
	if ((st = vn_staging_read(&g->walk, root, b, elements_of(&g->walk, root), data, err)) ||
	    (st = vn_device_complaint(&g->device, err)))
		return failed(g, st);
	g->foreign_used = 0;
	return VN_OK;
}

/* Room for so many bytes that no copy still to be executed reads. */
static vn_status foreign_room(vn_gpu *g, VkDeviceSize bytes, vn_error *err)
{
	vn_status st;

	if (g->foreign.buffer && g->foreign_used + bytes <= g->foreign.size)
		return VN_OK;
	if (g->foreign_used > 0 && (st = vn_staging_flush(&g->walk, err)))
		return st;
	g->foreign_used = 0;
	if (g->foreign.buffer && bytes <= g->foreign.size)
		return VN_OK;
	if (g->foreign.buffer)
		vn_buffer_destroy(&g->device, &g->foreign);
	return vn_buffer_create(&g->device, &g->foreign, VN_FOR_UPLOAD, bytes > FOREIGN ? bytes : FOREIGN, false,
	                        "values from elsewhere", err);
}

vn_status vn_gpu_write(vn_gpu *g, int value, const void *data, vn_error *err)
{
	vn_buffer *b;
	vn_status  st;

	if ((st = check_open(g, err)))
		return st;
	if (!(b = slot_of(g, value, "write", err)))
		return failed(g, VN_ERR_USAGE);
	const int          root = vn_plan_root(g->plan, value), node = g->plan->value[root].node;
	const VkDeviceSize bytes = (VkDeviceSize)elements_of(&g->walk, root) *
	                           vn_dtype_size(vn_policy_dtype(g->policy, vn_value_wide(g->plan, root)));
	if (node > g->next) /* its slot may still be another's */
		return failed(g, vn_fail(err, VN_ERR_USAGE, "%s cannot be written yet: nodes %d to %d come before it",
		                         g->plan->value[value].name, g->next, node - 1));
	if ((st = foreign_room(g, bytes, err)))
		return failed(g, st);
	memcpy((char *)g->foreign.map + g->foreign_used, data, bytes);
	pass_over(g, node + 1);
	vn_encode_copy(&g->encoder, &g->foreign, g->foreign_used, b, 0, bytes);
	g->foreign_used += (bytes + VN_ZONE - 1) & ~(VkDeviceSize)(VN_ZONE - 1);
	g->made[root] = true;
	if (g->plan->value[root].state >= 0)
		g->cache.slot[g->plan->value[root].state].made = true;
	return VN_OK;
}

vn_status vn_gpu_end(vn_gpu *g, bool keep, vn_error *err)
{
	vn_status st;

	if (!g->open && !keep)
		return VN_OK;
	if ((st = check_open(g, err)))
		return st;
	pass_over(g, g->plan->n_nodes);
	if (g->guard)
		vn_guard_encode(&g->encoder, &g->zones);
	if ((st = vn_staging_finish(&g->walk, err)) || (g->guard && (st = vn_guard_check(&g->zones, err))) ||
	    (st = vn_device_complaint(&g->device, err)))
		return failed(g, st);
	vn_progress_stop(&g->bar);
	g->open = false;
	read_stamps(g);
	if (keep) {
		g->position += g->walk.tokens;
		vn_cache_keep(&g->cache, g->position);
	}
	return VN_OK;
}

vn_status vn_gpu_forward(vn_gpu *g, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err)
{
	vn_status st;

	if ((st = vn_gpu_begin(g, ids, tokens, taps, err)) || (st = vn_gpu_run(g, 0, g->plan->n_nodes, err)))
		return st;
	return vn_gpu_end(g, true, err);
}
