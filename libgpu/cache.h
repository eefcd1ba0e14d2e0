/* cache.h: what nodes keep between calls (vn_state), on the device. Inside libgpu only.
 *
 * A growing state, such as keys and values, has one buffer, token-major: (rows, row); or, if paged,
 * a pool of blocks (pages.h). Room grows by doubling, from 256 rows up to the context, because a
 * context of 128k tokens would fill a device for a prompt of ten. Growing copies the rows in use,
 * or the whole pool. A state of fixed size has two buffers: as kept calls left it, and as the
 * current call makes it. Keeping the call exchanges them.
 */
#pragma once

#include "libgpu/encode.h"
#include "libgpu/pages.h"
#include "libref/plan/policy.h"

typedef struct vn_cache_slot {
	vn_buffer now, next; /* next: only for fixed size */
	vn_buffer call;      /* of a growing one that is not paged: the rows of the call, a part of `now` */
	bool      grows;
	int64_t   rows;      /* room, paged or not */
	int64_t   upto;      /* tokens that it has processed, counted from the first */
	bool      made;      /* fixed size: `next` is that of the current call */
	size_t    row_bytes; /* fixed size: all of its bytes */
} vn_cache_slot;

typedef struct vn_cache {
	const vn_plan *plan;
	int            n;
	vn_cache_slot *slot; /* (n_states of the plan) */
	vn_pages       pages;
	int64_t        bytes;
	bool           guard; /* buffers have zones, and are poisoned */
} vn_cache;

/* Sets the sizes from the plan, without allocating. pages: its block (0: not paged) and scatter. */
vn_status vn_cache_create(vn_cache *c, const vn_plan *plan, vn_policy policy, vn_pages pages, bool guard,
                          vn_error *err);
void      vn_cache_destroy(vn_device *d, vn_cache *c); /* c may be zeroed */

/* Makes room for a call of `tokens` tokens after `past`, and discards later tokens. After a failure
 * every slot still holds what it held. */
vn_status vn_cache_begin(vn_encoder *e, vn_cache *c, int64_t past, int64_t tokens, vn_error *err);
/* Records commands that zero the states of fixed size. */
void      vn_cache_clear(vn_encoder *e, vn_cache *c);
/* Rows of a call were appended to a growing state. */
void      vn_cache_appended(vn_cache *c, int state, int64_t past, int64_t tokens);
/* A kept call has ended with `upto` tokens in total. */
void      vn_cache_keep(vn_cache *c, int64_t upto);

/* Returns how many elements of a state a call up to `tokens` tokens may access; 2^31 or more is too
 * much for a shader. */
int64_t vn_cache_reach(const vn_cache *c, int state, int64_t tokens);

/* Returns the state in a call of `tokens` tokens after `past`; NULL: not known. */
vn_buffer *vn_cache_see(vn_cache *c, int state, int64_t past, int64_t tokens);
