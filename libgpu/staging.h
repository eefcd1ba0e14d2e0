/* staging.h: from the device to the sink of a tap.
 *
 * Inside libgpu only. Two staging buffers, one for each command buffer of the
 * encoder: a tap is a copy into the open one. When it is full, the commands so
 * far are submitted and recording goes on with the other; that one's fence is
 * waited for and its bytes are handed over while the device works on the rest.
 *
 * With guard every value is copied out, wanted or not, and looked through for
 * poison before anything of it is handed over.
 */
#ifndef VN_LIBGPU_STAGING_H
#define VN_LIBGPU_STAGING_H

#include "libgpu/encode.h"

struct vn_gpu_pass;

typedef struct vn_transfer_part {
	int     value;
	bool    hand;     /* to the sink; else it is only looked through */
	char   *to;       /* somebody's memory for it; NULL: none */
	size_t  offset;   /* in the staging buffer */
	int64_t start;    /* first element: of what is handed over, else of the value */
	int64_t elements;
} vn_transfer_part;

typedef struct vn_staging {
	size_t    size;    /* bytes of one buffer, a multiple of VN_ZONE */
	vn_buffer buf[2];
	size_t    used[2];
	vn_transfer_part  *part[2];
	int       n[2], room[2];
	int64_t   handed;  /* elements of the value that is being handed over */
} vn_staging;

vn_status vn_staging_create(vn_device *d, vn_staging *s, int64_t size, bool guard, vn_error *err);
void      vn_staging_destroy(vn_device *d, vn_staging *s); /* safe on a zeroed one */
void      vn_staging_reset(vn_staging *s, bool guard);     /* before a pass */

/* Record: elements from byte `from` of src are those of `value` from `start` on. */
vn_status vn_staging_take(struct vn_gpu_pass *w, int value, bool hand, int64_t start, vn_buffer *src, VkDeviceSize from,
                          int64_t elements, vn_error *err);
/* Record the taps of a value that lies whole in src. */
vn_status vn_staging_tap(struct vn_gpu_pass *w, int value, vn_buffer *src, vn_error *err);
/* Submit what is recorded and go on recording, if that takes no waiting. */
vn_status vn_staging_send(struct vn_gpu_pass *w, vn_error *err);
/* Submit what is recorded, wait, hand over everything left. */
vn_status vn_staging_finish(struct vn_gpu_pass *w, vn_error *err);
/* The same, and recording goes on. */
vn_status vn_staging_flush(struct vn_gpu_pass *w, vn_error *err);
/* Record: elements from byte `from` of src are to come to `data`. */
vn_status vn_staging_bring(struct vn_gpu_pass *w, int value, vn_buffer *src, VkDeviceSize from, int64_t elements, void *data,
                           vn_error *err);

#endif
