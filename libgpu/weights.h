/* weights.h: where the weights of a plan are on the device, in the storage format; the biases of
 * routers in float32. Inside libgpu only. load.h puts them there.
 *
 * Memory is allocated in blocks of 256 MiB, because devices limit single allocations; a larger
 * tensor has a block of its own.
 */
#pragma once

#include "libgpu/memory.h"

typedef struct vn_gpu_weight_place {
	int             block;
	VkDeviceSize    offset, bytes; /* offset inside the block's zones */
	VkDeviceAddress address;
	vn_dtype        dtype;
} vn_gpu_weight_place;

typedef struct vn_gpu_weights {
	int                  n, n_blocks;
	vn_gpu_weight_place *at;    /* (n) */
	vn_buffer           *block; /* (n_blocks) */
	/* if a node has experts: the address of each weight (n), for shaders that choose a weight */
	vn_buffer            addresses;
	int64_t              bytes;
	int64_t              overflowed;       /* finite values that became infinite in the storage format */
	int                  first_overflowed; /* the first such weight; -1 */
} vn_gpu_weights;

/* Counts numbers of a weight that became infinite. */
static inline void vn_gpu_weights_overflow(vn_gpu_weights *w, int weight, int64_t over)
{
	if (over && (!w->overflowed || weight < w->first_overflowed))
		w->first_overflowed = weight;
	w->overflowed += over;
}
