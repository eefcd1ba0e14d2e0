/* cache.h: keys and values of earlier tokens, on the device.
 *
 * Inside libgpu only. Each attention node has two buffers, token-major:
 * (rows, G, K) in the storage format. Room grows by doubling, from 256 rows up
 * to the context, because a context of 128k tokens would fill a device for a
 * prompt of ten; growing copies the rows that are in use.
 */
#ifndef VN_LIBGPU_CACHE_H
#define VN_LIBGPU_CACHE_H

#include "libgpu/encode.h"

typedef struct vn_cache_slot {
	vn_buffer k, v;
	int64_t   rows;      /* room */
	int64_t   filled;    /* rows without a gap; fewer than the position when an attention was run elsewhere */
	size_t    row_bytes; /* G K elements */
} vn_cache_slot;

typedef struct vn_cache {
	int            n;
	vn_cache_slot *slot; /* (n) */
	int64_t        bytes;
} vn_cache;

/* Sizes from the plan's attention nodes; no memory yet. */
vn_status vn_cache_create(vn_cache *c, const vn_plan *plan, vn_dtype storage, vn_error *err);
void      vn_cache_destroy(vn_device *d, vn_cache *c); /* safe on a zeroed one */

/* Rows from `past` on are no longer there. */
void      vn_cache_forget(vn_cache *c, int64_t past);

/* Room for `rows` rows, of which the first `used` are kept. After a failure
 * every slot still holds its rows. */
vn_status vn_cache_grow(vn_encoder *e, vn_cache *c, int64_t rows, int64_t used, int64_t context, bool guard,
                        vn_error *err);

#endif
