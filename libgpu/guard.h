/* guard.h: finding what was written where nothing should be.
 *
 * Inside libgpu only. Poison (memory.h) stands before and behind every guarded
 * buffer and between weights; after the pass it is read back and whoever lost
 * some of it is named. That a value was never written is seen in staging.c,
 * where its bytes come by anyway.
 */
#ifndef VN_LIBGPU_GUARD_H
#define VN_LIBGPU_GUARD_H

#include "libgpu/encode.h"

typedef struct vn_zone {
	vn_buffer   *b;
	VkDeviceSize at, bytes;     /* in the whole buffer, zones counted */
	const char  *before, *after; /* names of what ends and begins there; NULL: nothing */
} vn_zone;

typedef struct vn_guard {
	vn_zone  *zone;
	int       n, room;
	vn_buffer readback;
	bool      no_memory; /* an add failed */
} vn_guard;

void vn_guard_clear(vn_guard *g);
void vn_guard_destroy(vn_device *d, vn_guard *g); /* safe on a zeroed one */

/* Names are borrowed until the check. */
void vn_guard_buffer(vn_guard *g, vn_buffer *b); /* its two zones */
void vn_guard_zone(vn_guard *g, vn_buffer *b, VkDeviceSize at, VkDeviceSize bytes, const char *before,
                   const char *after);

/* Room to read the zones back: before recording. */
vn_status vn_guard_prepare(vn_device *d, vn_guard *g, vn_error *err);
void      vn_guard_encode(vn_encoder *e, vn_guard *g);
vn_status vn_guard_check(const vn_guard *g, vn_error *err); /* after the fence */

#endif
