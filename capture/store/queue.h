/* queue.h: passes blocks of tensor data from the engine's thread to the storing thread.
 *
 * The engine's thread takes an empty block, fills it and posts it; the storing thread fetches it,
 * writes it and gives it back. Blocks are reused, the most recent one first, so that only a few are
 * ever touched while the disk keeps up. Taking a block waits if the budget, or the memory, is used
 * up.
 */
#pragma once

#include "capture/store/label.h"

#include <stddef.h>

/* A multiple of VN_STATS_BLOCK elements of any dtype. Large enough that waking the other thread and
 * a write cost little compared to filling it. */
#define VN_BLOCK_BYTES (1u << 20)

typedef struct vn_block {
	struct vn_block *next;
	bool             first, last; /* first, last piece of its tensor */
	vn_tensor_label  label;       /* label, dtype and shape: only in the first piece */
	vn_dtype         dtype;
	vn_shape         shape;
	size_t           used;
	int              held; /* how often it must still be given back; private to the queue */
	unsigned char   *data; /* (VN_BLOCK_BYTES), aligned to a page (disk.h) */
} vn_block;

typedef struct vn_queue vn_queue;

vn_queue *vn_queue_create(size_t budget); /* NULL: no memory */
void      vn_queue_destroy(vn_queue *q);  /* after both threads have stopped using it */

/* Returns an empty block; NULL: no memory for the first one. */
vn_block *vn_queue_take(vn_queue *q);
/* Frees a block that was taken and will not be posted. NULL is allowed. */
void      vn_block_free(vn_block *b);
void      vn_queue_post(vn_queue *q, vn_block *b);
vn_block *vn_queue_fetch(vn_queue *q); /* waits; NULL once closed and empty */
bool      vn_queue_waits(vn_queue *q); /* does a posted block wait to be fetched? */
/* Requires that a fetched block is given back once more. */
void      vn_queue_hold(vn_queue *q, vn_block *b);
void      vn_queue_give_back(vn_queue *q, vn_block *b);
/* Waits until every posted block has been given back. */
void      vn_queue_drain(vn_queue *q);
void      vn_queue_close(vn_queue *q); /* nothing more will be posted */
