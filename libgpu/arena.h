/* arena.h: where the values of one call are on the device. Inside libgpu only.
 *
 * A slot is a buffer. A value holds it from the node that makes the value to the last node that
 * reads it; another value may use it after the next barrier. Used earlier, it would force a barrier
 * between nodes that need none, such as two products of one input. With guard (guard.h), every
 * value has a slot of its own with its own name, so that each can be checked at the end.
 *
 * Some values have no slot: streamed ones (vn_value_streams) pass through the scratch buffer in
 * pieces (pieces.h), and those that are a state are in the cache (cache.h). Keys and values of a
 * call are computed directly into the cache, where attention reads them, if the cache is neither
 * guarded nor paged.
 */
#pragma once

#include "libgpu/memory.h"

#include "libref/plan/policy.h"

typedef struct vn_arena_slot {
	vn_buffer    b;
	VkDeviceSize need;    /* required size in bytes */
	int          free_at; /* while laying out: the level after which it is free */
} vn_arena_slot;

typedef struct vn_arena {
	const vn_plan *plan;
	vn_policy      policy;
	bool           guard;  /* every value has a slot of its own */
	bool           within; /* keys and values of a call are computed into the cache */
	int            n_values, n_slots;
	int           *slot_of;  /* (n_values): -1: no slot; aliases have that of their root */
	int           *state_of; /* (n_values): the growing state whose next rows it is; -1: none */
	int           *level;    /* (n_nodes): how many barriers the nodes up to this one need at least */
	vn_arena_slot *slot;     /* (n_values), the first n_slots in use */
	int64_t        tokens;   /* of the last layout; 0: none */
	int64_t        bytes;
} vn_arena;

/* paged: of the cache. */
vn_status vn_arena_create(vn_arena *a, const vn_plan *plan, vn_policy policy, bool guard, bool paged, vn_error *err);
void      vn_arena_destroy(vn_device *d, vn_arena *a); /* a may be zeroed */

/* Assigns and allocates slots for a call of this many tokens. Grows, never shrinks; contents are
 * lost. */
vn_status vn_arena_layout(vn_device *d, vn_arena *a, int64_t tokens, vn_error *err);
