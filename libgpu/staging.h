/* staging.h: the two buffers through which tapped values come from the device, and what is in them.
 * transfer.h fills and empties them. Inside libgpu only.
 */
#pragma once

#include "libgpu/memory.h"

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

void      vn_staging_clear(vn_staging *s, int i, bool guard); /* buffer i, which was handed over */
/* Adds a part of buffer i. */
vn_status vn_staging_add(vn_staging *s, int i, vn_transfer_part part, vn_error *err);
