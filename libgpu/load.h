/* load.h: brings the weights of a plan to the device. Inside libgpu only.
 *
 * With guard, zones of poison separate the weights. A matrix that the file stores transposed
 * (vn_consts.linear) is transposed during the upload, so that every matrix has rows of inputs.
 * Threads convert the weights, straight into device memory if the host can write it. bfloat16 is
 * converted to float16 on the device (halves.h), except on a software device, which takes twelve
 * times as long as the host. After create, the caller's tensors are not used any more.
 */
#pragma once

#include "libgpu/encode.h"
#include "libgpu/weights.h"

/* Smaller only in tests. */
extern VkDeviceSize vn_gpu_weights_block;  /* bytes per block */
extern VkDeviceSize vn_gpu_weights_upload; /* bytes of the upload buffer; at least those of a panel and VN_ZONE */
extern int64_t      vn_gpu_weights_panel;  /* elements that a thread converts at a time: a multiple of 256 */
/* True only in tests: a software device also converts bfloat16 on the device. */
extern bool         vn_gpu_weights_halves_there;

/* How they are loaded. */
typedef struct vn_gpu_load {
	vn_dtype storage;
	bool     guard, progress; /* as in vn_gpu_options */
	int      threads;
} vn_gpu_load;

/* VN_ERR_INTERRUPTED: the engine's owner wants to stop. After any failure, w can be destroyed. */
vn_status vn_gpu_weights_create(vn_encoder *e, vn_gpu_weights *w, const vn_plan *plan, const vn_tensor *from,
                                const vn_gpu_load *how, vn_error *err);
void      vn_gpu_weights_destroy(vn_device *d, vn_gpu_weights *w); /* w may be zeroed */
