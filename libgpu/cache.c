/* cache.c: what nodes keep between calls, on the device. */
#include "libgpu/cache.h"

#include <stdio.h>
#include <stdlib.h>

#define FIRST_ROWS 256

vn_status vn_cache_create(vn_cache *c, const vn_plan *plan, vn_policy policy, vn_pages pages, bool guard, vn_error *err)
{
	*c = (vn_cache) { .plan = plan, .n = plan->n_states, .pages = pages, .guard = guard };
	if (!(c->slot = calloc(c->n ? (size_t)c->n : 1, sizeof(*c->slot))))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d states", plan->n_states);
	for (int i = 0; i < c->n; i++) {
		const vn_state *s = &plan->state[i];
		c->slot[i].grows = s->input >= 0;
		c->slot[i].row_bytes = (size_t)vn_state_row(s) * vn_dtype_size(vn_policy_dtype(policy, s->wide));
	}
	return VN_OK;
}

void vn_cache_destroy(vn_device *d, vn_cache *c)
{
	for (int i = 0; i < c->n && c->slot; i++) {
		vn_buffer_destroy(d, &c->slot[i].now);
		vn_buffer_destroy(d, &c->slot[i].next);
	}
	vn_pages_destroy(d, &c->pages);
	free(c->slot);
	*c = (vn_cache) { 0 };
}

static void name_of(const vn_cache *c, int i, const char *what, char *name, size_t room)
{
	const vn_node *n = &c->plan->node[c->plan->state[i].node];

	snprintf(name, room, "%s of %s%s", vn_state_word(c->plan, i), c->plan->value[n->out[0]].name, what);
}

static vn_status grow_slot(vn_encoder *e, vn_cache *c, int i, int64_t rows, int64_t used, vn_error *err)
{
	vn_cache_slot *s = &c->slot[i];
	vn_buffer      b = { 0 };
	const size_t   keep = (size_t)used * s->row_bytes;
	char           name[VN_NAME_MAX + 16];
	vn_status      st;

	name_of(c, i, "", name, sizeof(name));
	if ((st = vn_buffer_create(e->d, &b,
	                           &(vn_buffer_need) { VN_ON_DEVICE, (size_t)rows * s->row_bytes, c->guard, name }, err)))
		return st;
	if (c->guard || keep) {
		const int cur = e->cur;
		vn_encode_begin(e);
		if (c->guard)
			vn_encode_poison(e, &b);
		if (keep)
			vn_encode_copy(e, &s->now, 0, &b, 0, keep);
		if ((st = vn_encode_submit(e, err)) || (st = vn_encode_wait(e, cur, err)))
			goto fail;
	}
	vn_buffer_destroy(e->d, &s->now);
	s->now = b;
	s->rows = rows;
	return VN_OK;
fail:
	vn_encode_abandon(e);
	vn_buffer_destroy(e->d, &b);
	return st;
}

/* Both buffers of a state of fixed size. A multiple of 4 bytes, to be cleared whole. */
static vn_status create_fixed_slot(vn_encoder *e, vn_cache *c, int i, vn_error *err)
{
	vn_cache_slot     *s = &c->slot[i];
	const VkDeviceSize bytes = (s->row_bytes + 3) & ~(VkDeviceSize)3;
	char               name[VN_NAME_MAX + 32];
	vn_status          st = VN_OK;

	name_of(c, i, "", name, sizeof(name));
	if (!s->now.buffer)
		st = vn_buffer_create(e->d, &s->now, &(vn_buffer_need) { VN_ON_DEVICE, bytes, c->guard, name }, err);
	name_of(c, i, ", the next", name, sizeof(name));
	if (!st && !s->next.buffer)
		st = vn_buffer_create(e->d, &s->next, &(vn_buffer_need) { VN_ON_DEVICE, bytes, c->guard, name }, err);
	return st;
}

int64_t vn_cache_reach(const vn_cache *c, int state, int64_t tokens)
{
	const int64_t B = c->pages.block ? c->pages.block : 1, row = vn_state_row(&c->plan->state[state]);

	if (!c->slot[state].grows)
		return row;
	/* to the end of the last block */
	return tokens > INT64_MAX / 2 / row - B ? INT64_MAX : (tokens + B - 1) / B * B * row;
}

/* The tokens of the context, or as many as have elements that a shader can count. */
static int64_t most_blocks(const vn_cache *c)
{
	int64_t most = (c->plan->context + c->pages.block - 1) / c->pages.block;

	for (int i = 0; i < c->n; i++) {
		const int64_t fit = INT32_MAX / c->pages.block / vn_state_row(&c->plan->state[i]);
		if (c->slot[i].grows && fit < most)
			most = fit;
	}
	return most;
}

static vn_status make_room(vn_encoder *e, vn_cache *c, int i, int64_t past, int64_t tokens, vn_error *err)
{
	const vn_cache_slot *s = &c->slot[i];
	const int64_t        pool = c->pages.room * c->pages.block;
	int64_t              want = s->rows ? s->rows : FIRST_ROWS;

	if (!s->grows)
		return create_fixed_slot(e, c, i, err);
	if (pool > 0) /* the blocks in use may be anywhere in it */
		return s->rows == pool ? VN_OK : grow_slot(e, c, i, pool, past ? s->rows : 0, err);
	if (past + tokens <= s->rows)
		return VN_OK;
	while (want < past + tokens)
		want *= 2;
	return grow_slot(e, c, i, want > c->plan->context ? c->plan->context : want, past, err);
}

static void show_call(vn_cache_slot *s, int64_t past)
{
	const VkDeviceSize at = (VkDeviceSize)past * s->row_bytes;

	if (!s->grows)
		return;
	s->call = s->now;
	s->call.of = &s->now;
	s->call.address += at;
	s->call.offset += at;
	s->call.size = at < s->now.size ? s->now.size - at : 0;
}

vn_status vn_cache_begin(vn_encoder *e, vn_cache *c, int64_t past, int64_t tokens, vn_error *err)
{
	vn_status st = VN_OK;

	if (c->pages.block) {
		c->pages.most = most_blocks(c);
		st = vn_pages_begin(e->d, &c->pages, past, past + tokens, c->guard, err);
	}
	for (int i = 0; i < c->n && !st; i++)
		st = make_room(e, c, i, past, tokens, err);
	c->bytes = 0;
	for (int i = 0; i < c->n; i++) {
		vn_cache_slot *s = &c->slot[i];
		show_call(s, past);
		c->bytes += (int64_t)(s->now.held + s->next.held + (i ? 0 : c->pages.table.held));
		s->made = false;
		if (s->upto > past && (s->grows || past == 0))
			s->upto = past; /* of a call that was not kept, or before a reset */
	}
	return st;
}

void vn_cache_clear(vn_encoder *e, vn_cache *c)
{
	for (int i = 0; i < c->n; i++)
		if (!c->slot[i].grows)
			vn_encode_clear(e, &c->slot[i].now);
}

void vn_cache_appended(vn_cache *c, int state, int64_t past, int64_t tokens)
{
	if (c->slot[state].upto == past)
		c->slot[state].upto = past + tokens;
}

void vn_cache_keep(vn_cache *c, int64_t upto)
{
	for (int i = 0; i < c->n; i++) {
		vn_cache_slot *s = &c->slot[i];
		if (!s->made)
			continue;
		const vn_buffer was = s->now;
		s->now = s->next;
		s->next = was;
		s->upto = upto;
		s->made = false;
	}
}

vn_buffer *vn_cache_see(vn_cache *c, int state, int64_t past, int64_t tokens)
{
	vn_cache_slot *s = &c->slot[state];

	if (s->made)
		return &s->next;
	return s->upto == past + (s->grows ? tokens : 0) ? &s->now : NULL;
}
