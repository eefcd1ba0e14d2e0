/* pages.h: which block of a paged cache holds which tokens. Inside libgpu only.
 *
 * Growing states may be stored in pools of blocks, each pool (blocks, heads, block, width): a block
 * holds a fixed number of tokens of every head. All pools grow together and share one table, which
 * says which block holds tokens [i * block, (i + 1) * block); shaders read it. Blocks that a call
 * frees are reused first, the last one freed before the others. Room grows by doubling, from 256
 * tokens up to the context.
 */
#pragma once

#include "libgpu/memory.h"

typedef struct vn_pages {
	int64_t   block;   /* tokens per block; 0: not paged */
	uint64_t  scatter; /* if not 0: new blocks are taken in an order drawn from it */
	int64_t   most;    /* how many blocks a pool may have, at least as many as are needed */
	int64_t   room;    /* blocks in every pool */
	int64_t   used;    /* table entries in use */
	uint32_t *taken;   /* (room): the table on the host */
	uint32_t *free;    /* (room): free blocks, the next one last */
	vn_buffer table;   /* (room): for upload to the device */
} vn_pages;

void vn_pages_destroy(vn_device *d, vn_pages *p); /* p may be zeroed */

/* Assigns blocks to tokens [0, upto); the first `keep` belong to kept calls. */
vn_status vn_pages_begin(vn_device *d, vn_pages *p, int64_t keep, int64_t upto, bool guard, vn_error *err);
