/* staging.h: brings tapped values from the device to the sink. Inside libgpu only.
 *
 * There are two staging buffers, one for each command buffer of the encoder. A tap is a copy into
 * the open one. When it is full, the commands so far are submitted, and recording continues with
 * the other buffer, after its fence was waited for and its bytes were passed to the sink. Meanwhile
 * the device works on the commands that were submitted.
 *
 * With guard, every value is copied out, tapped or not, and checked for poison before any of it is
 * handed over.
 */
#ifndef VN_LIBGPU_STAGING_H
#define VN_LIBGPU_STAGING_H

#include "libgpu/encode.h"

struct vn_gpu_pass;

typedef struct vn_transfer_part {
	int     value;
	bool    hand;   /* handed to the sink; else only checked */
	char   *to;     /* memory to copy it to; NULL: none */
	size_t  offset; /* in the staging buffer */
	int64_t start;  /* index of the first element: among the elements handed over, else in the value */
	int64_t elements;
} vn_transfer_part;

typedef struct vn_staging {
	size_t            size; /* bytes per buffer, a multiple of VN_ZONE */
	vn_buffer         buf[2];
	size_t            used[2];
	vn_transfer_part *part[2];
	int               n[2];
	int64_t           handed; /* elements handed over of the current value */
} vn_staging;

vn_status vn_staging_create(vn_device *d, vn_staging *s, int64_t size, bool guard, vn_error *err);
void      vn_staging_destroy(vn_device *d, vn_staging *s); /* s may be zeroed */
void      vn_staging_reset(vn_staging *s, bool guard);     /* before a pass */

/* Records: elements from byte `from` of src are those of part.value from part.start on. Sets
 * part.offset and part.elements. */
vn_status vn_staging_take(struct vn_gpu_pass *w, vn_transfer_part part, vn_buffer *src, VkDeviceSize from,
                          int64_t elements, vn_error *err);
/* Records the taps of a value that is whole in src. */
vn_status vn_staging_tap(struct vn_gpu_pass *w, int value, vn_buffer *src, vn_error *err);
/* Submits what is recorded and continues recording, if that needs no waiting. */
vn_status vn_staging_send(struct vn_gpu_pass *w, vn_error *err);
/* Submits what is recorded, waits, and hands over everything left. */
vn_status vn_staging_finish(struct vn_gpu_pass *w, vn_error *err);
/* The same; recording continues. */
vn_status vn_staging_flush(struct vn_gpu_pass *w, vn_error *err);

#endif
