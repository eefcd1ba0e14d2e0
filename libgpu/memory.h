/* memory.h: a buffer: named memory on the device, with guard zones. Inside libgpu only.
 *
 * There are three kinds of memory: on the device, for shaders; for upload, which the host writes;
 * for reading back, which the host reads after the fence. A guarded buffer has VN_ZONE bytes of
 * poison before its first byte and at least as many after its last; guard.c finds whatever writes
 * there.
 *
 * Poison is the byte FF throughout: a NaN in half and in float, with a payload that no arithmetic
 * makes (hardware makes the NaNs 7FFF, 7E00, FE00 or, in float, 7FFFFFFF, 7FC00000, FFC00000). Only
 * a model whose file contains exactly that pattern could be mistaken for unwritten.
 */
#pragma once

#include "libgpu/device.h"

#include "libref/plan/plan.h"

#define VN_ZONE   256 /* also the alignment inside a buffer */
#define VN_POISON 0xFFFFFFFFu

typedef enum vn_gpu_block { VN_ON_DEVICE, VN_FOR_UPLOAD, VN_FOR_READBACK } vn_gpu_block;

typedef struct vn_buffer {
	char            name[VN_NAME_MAX + 32];
	VkBuffer        buffer;
	VkDeviceMemory  memory;
	VkDeviceAddress address; /* of the first byte inside the zones */
	VkDeviceSize    offset;  /* of that byte in `buffer`: 0, or VN_ZONE */
	VkDeviceSize    size;    /* bytes inside the zones, as requested */
	VkDeviceSize    total;   /* bytes of `buffer`, a multiple of 4 */
	VkDeviceSize    held;    /* bytes of `memory` */
	void           *map;     /* the first byte, for the host; NULL: not accessible */

	/* NULL, or the buffer that this one is a part of: it owns nothing, and its accesses count as
	 * those of the whole */
	struct vn_buffer *of;
	/* Accesses since the last barrier: encode.c. */
	unsigned          epoch;
	bool              read, written;
} vn_buffer;

typedef struct vn_buffer_need {
	vn_gpu_block place;
	VkDeviceSize size; /* 0 becomes 4 */
	bool         guard;
	const char  *name;
} vn_buffer_need;

/* Creates a buffer. Fails, with its name, if it is larger than the device
 * allows. */
vn_status vn_buffer_create(vn_device *d, vn_buffer *b, const vn_buffer_need *need, vn_error *err);
/* Leaves a buffer of at least that size (with guard: exactly) as it is, else creates it anew; its
 * contents are then lost. b may be zeroed. */
vn_status vn_buffer_ensure(vn_device *d, vn_buffer *b, const vn_buffer_need *need, vn_error *err);
/* b may be zeroed; d, which may then be NULL, is not touched. */
void      vn_buffer_destroy(vn_device *d, vn_buffer *b);
