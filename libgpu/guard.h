/* guard.h: finds writes outside of buffers. Inside libgpu only.
 *
 * Poison (memory.h) is placed before and after every guarded buffer and between weights. After the
 * pass it is read back, and the owner of overwritten poison is named. staging.c finds
 * values that were never written, because it reads their bytes anyway.
 */
#pragma once

#include "libgpu/encode.h"

typedef struct vn_zone {
	vn_buffer   *b;
	VkDeviceSize at, bytes;      /* in the whole buffer, including zones */
	const char  *before, *after; /* names of what ends and begins there; NULL: nothing */
} vn_zone;

typedef struct vn_guard {
	vn_zone  *zone;
	int       n;
	vn_buffer readback;
	bool      no_memory; /* adding a zone failed */
} vn_guard;

void vn_guard_clear(vn_guard *g);
void vn_guard_destroy(vn_device *d, vn_guard *g); /* g may be zeroed */

/* Add zones. Names are borrowed until the check. */
void vn_guard_buffer(vn_guard *g, vn_buffer *b); /* its two zones */
void vn_guard_zone(vn_guard *g, vn_buffer *b, VkDeviceSize at, VkDeviceSize bytes, const char *before,
                   const char *after);

/* Allocates room to read the zones back. Call before recording. */
vn_status vn_guard_prepare(vn_device *d, vn_guard *g, vn_error *err);
void      vn_guard_encode(vn_encoder *e, vn_guard *g);
vn_status vn_guard_check(const vn_guard *g, vn_error *err); /* call after the fence */
