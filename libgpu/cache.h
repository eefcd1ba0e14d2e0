/* cache.h: what nodes keep between calls (vn_state), on the device.
 *
 * Inside libgpu only. A state that grows has one buffer, token-major: (rows,
 * row), keys and values for one; or, paged, a pool of blocks (pages.h). Room
 * grows by doubling, from 256 rows up to the context, because a context of 128k
 * tokens would fill a device for a prompt of ten; growing copies the rows that
 * are in use, or the whole pool. A state of fixed size
 * has two: as kept calls left it, and as the call at hand makes it; keeping that
 * call exchanges them.
 */
#ifndef VN_LIBGPU_CACHE_H
#define VN_LIBGPU_CACHE_H

#include "libgpu/encode.h"
#include "libgpu/pages.h"
#include "libref/plan/policy.h"

typedef struct vn_cache_slot {
	vn_buffer now, next; /* next: of fixed size alone */
	bool      grows;
	int64_t   rows;      /* room, in blocks or not */
	int64_t   upto;      /* tokens that it has seen, all of them from the first on */
	bool      made;      /* of fixed size: next is that of the call at hand */
	size_t    row_bytes; /* of fixed size: of all of it */
} vn_cache_slot;

typedef struct vn_cache {
	const vn_plan *plan;
	int            n;
	vn_cache_slot *slot; /* (n_states of the plan) */
	vn_pages       pages;
	int64_t        bytes;
} vn_cache;

/* Sizes from the plan; no memory yet. block: tokens of one, 0 for no blocks;
 * scatter as in vn_pages. */
vn_status vn_cache_create(vn_cache *c, const vn_plan *plan, vn_policy policy, int block, uint64_t scatter, vn_error *err);
void      vn_cache_destroy(vn_device *d, vn_cache *c); /* safe on a zeroed one */

/* Room for a call of so many tokens behind `past`; what is known of later ones
 * is forgotten. After a failure every slot still holds what it held. */
vn_status vn_cache_begin(vn_encoder *e, vn_cache *c, int64_t past, int64_t tokens, bool guard, vn_error *err);
/* Record: states of fixed size are zero. */
void      vn_cache_clear(vn_encoder *e, vn_cache *c);
/* A kept call has ended, and there are so many tokens now. */
void      vn_cache_keep(vn_cache *c, int64_t upto);

/* Elements of a state that a call up to so many tokens may touch; 2^31 or more
 * is too much for a shader. */
int64_t   vn_cache_reach(const vn_cache *c, int state, int64_t tokens);

/* The state as it is in a call of so many tokens behind `past`; NULL: not known. */
vn_buffer *vn_cache_see(vn_cache *c, int state, int64_t past, int64_t tokens);

#endif
