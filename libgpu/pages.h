/* pages.h: which block of a paged cache holds which tokens.
 *
 * Inside libgpu only. States that grow may lie in pools of blocks, each pool
 * (blocks, heads, block, width): a block holds so many tokens of every head. One
 * table for all pools, as they grow together, says which block holds tokens
 * [i * block, (i + 1) * block); shaders read it. Blocks that a call leaves are
 * the next to be taken, last one first. Room grows by doubling, from 256 tokens
 * up to the context.
 */
#ifndef VN_LIBGPU_PAGES_H
#define VN_LIBGPU_PAGES_H

#include "libgpu/memory.h"

typedef struct vn_pages {
	int64_t   block;    /* tokens of one; 0: nothing is paged */
	uint64_t  scatter;  /* not 0: new blocks are taken in an order drawn from it */
	int64_t   room;     /* blocks of every pool */
	int64_t   used;     /* entries of the table */
	uint32_t *taken;    /* (room): the table, as the host knows it */
	uint32_t *free;     /* (room): of those not taken, the next one last */
	vn_buffer table;    /* (room) on its way to the device */
} vn_pages;

void vn_pages_destroy(vn_device *d, vn_pages *p); /* safe on a zeroed one */

/* Blocks for tokens [0, upto), of which the first `keep` are those of kept
 * calls. most: blocks that a pool may have, at least as many as are needed. */
vn_status vn_pages_begin(vn_device *d, vn_pages *p, int64_t keep, int64_t upto, int64_t most, bool guard, vn_error *err);

#endif
