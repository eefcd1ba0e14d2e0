/* exchange.c: see exchange.h. */
#include "libgpu/exchange.h"

#include "libgpu/pass.h"
#include "libgpu/pieces.h"
#include "libgpu/transfer.h"

#include <string.h>

#define FOREIGN ((VkDeviceSize)1 << 20) /* least room for values from elsewhere */

/* Returns the buffer in which a state is read or written; NULL: it sets *err. */
static vn_buffer *state_slot(vn_gpu *g, int value, bool write, vn_error *err)
{
	const int      state = g->plan->value[value].state;
	vn_cache_slot *c = &g->cache.slot[state];
	vn_buffer     *now = write && !c->grows ? &c->next : vn_cache_see(&g->cache, state, g->walk.past, g->walk.tokens);

	if (write && c->grows) {
		vn_fail(err, VN_ERR_USAGE, "%s cannot be written: it is a growing state; write its node's inputs",
		        g->plan->value[value].name);
		return NULL;
	}
	if (!now)
		vn_fail(err, VN_ERR_USAGE, "%s cannot be read: it was neither run nor written", g->plan->value[value].name);
	return now;
}

/* Returns the slot of a value that a node from g->next on reads; NULL: it sets *err. */
static vn_buffer *slot_of(vn_gpu *g, int value, bool write, vn_error *err)
{
	const vn_plan *p = g->plan;

	if (value < 0 || value >= p->n_values) {
		vn_fail(err, VN_ERR_USAGE, "cannot %s value %d: the plan has %d values", write ? "write" : "read", value,
		        p->n_values);
		return NULL;
	}
	const int root = vn_plan_root(p, value);
	if (p->value[root].state >= 0)
		return state_slot(g, value, write, err);
	if (!vn_gpu_place(g, root) || p->value[root].last_use < g->next) {
		vn_fail(err, VN_ERR_USAGE, "%s cannot be %s: no node from %d on reads it", p->value[value].name,
		        write ? "written" : "read", g->next);
		return NULL;
	}
	return vn_gpu_place(g, root);
}

vn_status vn_pass_flush(void *gpu, vn_error *err)
{
	vn_gpu   *g = gpu;
	vn_status st;

	if ((st = vn_pass_is_open(g, err)))
		return st;
	if ((st = vn_transfer_flush(&g->walk, err)) || (st = vn_device_complaint(&g->device, err)))
		return vn_pass_failed(g, st);
	g->foreign_used = 0;
	return VN_OK;
}

vn_status vn_pass_read(void *gpu, int value, void *data, vn_error *err)
{
	vn_gpu    *g = gpu;
	vn_buffer *b;
	vn_status  st;

	if ((st = vn_pass_is_open(g, err)))
		return st;
	if (!(b = slot_of(g, value, false, err)))
		return vn_pass_failed(g, VN_ERR_USAGE);
	const int              root = vn_plan_root(g->plan, value);
	const vn_transfer_part part = { .value = root, .to = data };
	if (!g->made[root] && g->plan->value[root].state < 0)
		return vn_pass_failed(g, vn_fail(err, VN_ERR_USAGE, "%s cannot be read: it was neither run nor written",
		                                 g->plan->value[value].name));
	if (g->plan->value[root].state >= 0)
		st = vn_pieces_state(&g->walk, part, b, err);
	else
		st = vn_transfer_take(&g->walk, part, b, 0, vn_pass_elements(&g->walk, root), err);
	return st ? vn_pass_failed(g, st) : vn_pass_flush(g, err);
}

/* Returns room for this many bytes that no pending copy reads. */
static vn_status foreign_room(vn_gpu *g, VkDeviceSize bytes, vn_error *err)
{
	vn_status st;

	if (g->foreign_used + bytes <= g->foreign.size)
		return VN_OK;
	if (g->foreign_used > 0 && (st = vn_transfer_flush(&g->walk, err)))
		return st;
	g->foreign_used = 0;
	return vn_buffer_ensure(
		&g->device, &g->foreign,
		&(vn_buffer_need) { VN_FOR_UPLOAD, bytes > FOREIGN ? bytes : FOREIGN, false, "values from elsewhere" }, err);
}

vn_status vn_pass_write(void *gpu, int value, const void *data, vn_error *err)
{
	vn_gpu    *g = gpu;
	vn_buffer *b;
	vn_status  st;

	if ((st = vn_pass_is_open(g, err)))
		return st;
	if (!(b = slot_of(g, value, true, err)))
		return vn_pass_failed(g, VN_ERR_USAGE);
	const int          root = vn_plan_root(g->plan, value), node = g->plan->value[root].node;
	const VkDeviceSize bytes = (VkDeviceSize)vn_pass_elements(&g->walk, root) *
	                           vn_dtype_size(vn_pass_dtype(&g->walk, root));
	if (node > g->next) /* its slot may still be another's */
		return vn_pass_failed(g, vn_fail(err, VN_ERR_USAGE, "%s cannot be written yet: nodes %d to %d run before it",
		                                 g->plan->value[value].name, g->next, node - 1));
	if ((st = foreign_room(g, bytes, err)))
		return vn_pass_failed(g, st);
	memcpy((char *)g->foreign.map + g->foreign_used, data, bytes);
	vn_pass_over(g, node + 1);
	vn_encode_copy(&g->encoder, &g->foreign, g->foreign_used, b, 0, bytes);
	g->foreign_used += (bytes + VN_ZONE - 1) & ~(VkDeviceSize)(VN_ZONE - 1);
	g->made[root] = true;
	if (g->plan->value[root].state >= 0)
		g->cache.slot[g->plan->value[root].state].made = true;
	return VN_OK;
}
