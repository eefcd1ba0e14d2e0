/* arena.h: where the values of one call live on the device.
 *
 * Inside libgpu only. A value holds a slot from the node that makes it to the
 * last that reads it; then another value may have the slot. With guard every
 * value has a slot of its own under its own name, so that each can be checked
 * at the end.
 *
 * Some values have no slot: those that stream (vn_value_streams) pass through
 * the scratch buffer in pieces (pieces.h), those that show a state lie in the
 * cache (cache.h).
 */
#ifndef VN_LIBGPU_ARENA_H
#define VN_LIBGPU_ARENA_H

#include "libgpu/memory.h"

typedef struct vn_arena {
	int           n_values, n_slots;
	int          *slot_of;  /* (n_values): -1, no slot; aliases have that of their root */
	vn_buffer    *slot;     /* (n_values) of room, the first n_slots in use */
	VkDeviceSize *need;     /* bytes each slot must have */
	int          *free_at;  /* the node after which a slot is free; while laying out */
	int64_t       tokens;   /* of the last layout, */
	bool          guarded;  /* and how; tokens 0: none */
	int64_t       bytes;
	int64_t       peak;     /* bytes of values alive at once, most of any node: what no arena can be under */
} vn_arena;

vn_status vn_arena_create(vn_arena *a, const vn_plan *plan, vn_error *err);
void      vn_arena_destroy(vn_device *d, vn_arena *a); /* safe on a zeroed one */

/* Slots for a call of so many tokens. Grows, never shrinks; contents are lost. */
vn_status vn_arena_layout(vn_device *d, vn_arena *a, const vn_plan *plan, vn_policy policy, int64_t tokens, bool guard,
                          vn_error *err);

#endif
