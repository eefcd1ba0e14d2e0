/* weights.h: the weights of a plan on the device, in the storage format. Inside libgpu only.
 *
 * Memory is allocated in blocks of 256 MiB, because devices limit single allocations; a larger
 * tensor has a block of its own. With guard, zones of poison separate the weights. A matrix that
 * the file stores transposed (vn_consts.linear) is transposed during the upload, so that every
 * matrix has rows of inputs. Threads convert the weights, straight into device memory if the host
 * can write it. bfloat16 is converted to float16 on the device (halves.h), except on a software
 * device, which takes twelve times as long as the host. After create, the caller's tensors are not
 * used any more.
 */
#ifndef VN_LIBGPU_WEIGHTS_H
#define VN_LIBGPU_WEIGHTS_H

#include "libgpu/encode.h"
#include "libgpu/gpu.h"

typedef struct vn_gpu_weight_place {
	int             block;
	VkDeviceSize    offset, bytes; /* offset inside the block's zones */
	VkDeviceAddress address;
} vn_gpu_weight_place;

typedef struct vn_gpu_weights {
	int                  n, n_blocks;
	vn_gpu_weight_place *at;    /* (n) */
	vn_buffer           *block; /* (n_blocks) */
	int64_t              bytes;
	int64_t              overflowed;       /* finite values that became infinite in the storage format */
	int                  first_overflowed; /* the first such weight; -1 */
} vn_gpu_weights;

/* Smaller only in tests. */
extern VkDeviceSize vn_gpu_weights_block;  /* bytes per block */
extern VkDeviceSize vn_gpu_weights_upload; /* bytes of the upload buffer; at least those of a panel and VN_ZONE */
extern int64_t      vn_gpu_weights_panel;  /* elements that a thread converts at a time: a multiple of 256 */
/* True only in tests: a software device also converts bfloat16 on the device. */
extern bool         vn_gpu_weights_halves_there;

/* VN_ERR_INTERRUPTED: the engine's owner wants to stop. After any failure, w can be destroyed. */
vn_status vn_gpu_weights_create(vn_encoder *e, vn_gpu_weights *w, const vn_plan *plan, const vn_tensor *from,
                                const vn_gpu_options *o, vn_error *err);
void      vn_gpu_weights_destroy(vn_device *d, vn_gpu_weights *w); /* w may be zeroed */

/* Counts numbers of a weight that became infinite. */
static inline void vn_gpu_weights_overflow(vn_gpu_weights *w, int weight, int64_t over)
{
	if (over && (!w->overflowed || weight < w->first_overflowed))
		w->first_overflowed = weight;
	w->overflowed += over;
}

#endif
