/* arena.c: where the values of one call live. */
#include "libgpu/arena.h"

#include "libgpu/fuse.h"

#include <stdio.h>
#include <stdlib.h>

vn_status vn_arena_create(vn_arena *a, const vn_plan *plan, vn_policy policy, bool guard, bool paged, vn_error *err)
{
	const size_t n = plan->n_values ? (size_t)plan->n_values : 1;

	*a = (vn_arena) {
		.plan = plan, .policy = policy, .guard = guard, .within = !guard && !paged, .n_values = plan->n_values
	};
	a->slot_of = calloc(n, sizeof(*a->slot_of));
	a->state_of = calloc(n, sizeof(*a->state_of));
	a->level = calloc(plan->n_nodes ? (size_t)plan->n_nodes : 1, sizeof(*a->level));
	a->slot = calloc(n, sizeof(*a->slot));
	if (!a->slot_of || !a->state_of || !a->level || !a->slot)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for the places of %d values", plan->n_values);
	return VN_OK;
}

void vn_arena_destroy(vn_device *d, vn_arena *a)
{
	for (int i = 0; a->slot && i < a->n_values; i++)
		vn_buffer_destroy(d, &a->slot[i].b);
	VN_FREE(a->slot, a->level, a->state_of, a->slot_of);
	*a = (vn_arena) { 0 };
}

/* Does a slot of `need` bytes fit better than another? The smallest that is big enough fits best;
 * if none is, the biggest. */
static bool fits_better(VkDeviceSize need, VkDeviceSize other, VkDeviceSize bytes)
{
	if (need >= bytes)
		return other < bytes || need < other;
	return other < need;
}

/* The free slot that fits best; -1: none is free. */
static int pick_slot(const vn_arena *a, int level, VkDeviceSize bytes)
{
	int best = -1;

	for (int s = 0; s < a->n_slots; s++)
		if (a->slot[s].free_at < level && (best < 0 || fits_better(a->slot[s].need, a->slot[best].need, bytes)))
			best = s;
	return best;
}

static VkDeviceSize bytes_of(const vn_arena *a, int value, int64_t tokens)
{
	const vn_shape shape = vn_value_shape(&a->plan->value[value], tokens, tokens);

	return (VkDeviceSize)vn_shape_count(&shape) *
	       vn_dtype_size(vn_policy_dtype(a->policy, vn_value_wide(a->plan, value)));
}

/* Does one of n nodes read a value that another node has made in this level? */
static bool needs_new_level(const vn_arena *a, int first, int n, int level)
{
	const vn_plan *plan = a->plan;
	bool           reads = false;

	for (int i = first; i < first + n; i++) {
		const vn_node *node = &plan->node[i];
		if (plan->value[node->out[0]].on_demand)
			continue; /* mostly not run */
		for (int k = 0; k < node->n_in; k++) {
			const int by = plan->value[vn_plan_root(plan, node->in[k])].node;
			reads = reads || (by < first && a->level[by] == level);
		}
	}
	return reads;
}

static void find_levels(vn_arena *a)
{
	const vn_plan *plan = a->plan;
	int            level = 0;

	for (int i = 0; i < plan->n_nodes;) {
		const int n = vn_fuse_most(plan, i);
		level += needs_new_level(a, i, n, level);
		for (int k = 0; k < n; k++)
			a->level[i++] = level;
	}
}

static void find_states(vn_arena *a)
{
	const vn_plan *plan = a->plan;

	for (int v = 0; v < a->n_values; v++)
		a->state_of[v] = -1;
	for (int s = 0; s < plan->n_states && a->within; s++) {
		const vn_state *state = &plan->state[s];
		const vn_node  *n = &plan->node[state->node];
		if (state->input < 0)
			continue;
		const int       v = vn_plan_root(plan, n->in[state->input]);
		const vn_value *rows = &plan->value[v];
		if (a->state_of[v] < 0 && rows->state < 0 && !vn_value_streams(plan, v) &&
		    vn_value_wide(plan, v) == state->wide && vn_value_row(rows) == vn_state_row(state))
			a->state_of[v] = s;
	}
	for (int v = 0; v < a->n_values; v++)
		a->state_of[v] = a->state_of[vn_plan_root(plan, v)];
}

static void assign_slots(vn_arena *a, int64_t tokens)
{
	const vn_plan *plan = a->plan;

	a->n_slots = 0;
	for (int v = 0; v < a->n_values; v++)
		a->slot_of[v] = -1;
	for (int i = 0; i < plan->n_nodes; i++) {
		for (int k = 0; k < plan->node[i].n_out; k++) {
			const int v = plan->node[i].out[k];
			if (v < 0 || plan->value[v].state >= 0 || a->state_of[v] >= 0 || vn_value_streams(plan, v))
				continue;
			const VkDeviceSize bytes = bytes_of(a, v, tokens);
			int                s = a->guard ? -1 : pick_slot(a, a->level[i], bytes);
			if (s < 0) {
				s = a->n_slots++;
				a->slot[s].need = 0;
			}
			if (a->slot[s].need < bytes)
				a->slot[s].need = bytes;
			a->slot[s].free_at = a->level[plan->value[v].last_use > i ? plan->value[v].last_use : i];
			a->slot_of[v] = s;
		}
	}
	for (int v = 0; v < a->n_values; v++)
		a->slot_of[v] = a->slot_of[vn_plan_root(plan, v)];
}

vn_status vn_arena_layout(vn_device *d, vn_arena *a, int64_t tokens, vn_error *err)
{
	vn_status st;
	char      name[VN_NAME_MAX + 16];

	if (a->tokens == tokens)
		return VN_OK; /* one token after the other */
	a->tokens = 0;
	find_levels(a);
	find_states(a);
	assign_slots(a, tokens);
	for (int s = 0; s < a->n_slots; s++) {
		snprintf(name, sizeof(name), "arena slot %d", s);
		for (int v = 0; a->guard && v < a->n_values; v++)
			if (a->slot_of[v] == s && a->plan->value[v].alias_of < 0)
				snprintf(name, sizeof(name), "%s", a->plan->value[v].name);
		/* With guard the size is exact, so that the zone begins directly after the last byte. */
		if ((st = vn_buffer_ensure(d, &a->slot[s].b,
		                           &(vn_buffer_need) { VN_ON_DEVICE, a->slot[s].need, a->guard, name }, err)))
			return st;
	}
	a->bytes = 0;
	for (int s = 0; s < a->n_values; s++)
		a->bytes += (int64_t)a->slot[s].b.held;
	a->tokens = tokens;
	return VN_OK;
}
