/* queue.h: blocks of tensor data on their way from an engine to the disk.
 *
 * The engine's thread takes an empty block, fills it and posts it; the storing
 * thread fetches it, files it and gives it back. Blocks are used again, the
 * last one first, so as long as the disk keeps up only a few are ever touched;
 * a giver waits when the budget is spent, or the memory.
 */
#ifndef VN_CAPTURE_QUEUE_H
#define VN_CAPTURE_QUEUE_H

#include "capture/store/label.h"

#include <stddef.h>

/* A multiple of VN_STATS_BLOCK elements of any dtype. Large enough that waking
 * the other thread and a write are cheap beside filling it. */
#define VN_BLOCK_BYTES (1u << 20)

typedef struct vn_block {
	struct vn_block *next;
	bool     first, last; /* piece of its tensor */
	vn_tensor_label label;       /* these three with the first piece */
	vn_dtype dtype;
	vn_shape shape;
	size_t   used;
	unsigned char *data;      /* (VN_BLOCK_BYTES), at a page (disk.h) */
} vn_block;

typedef struct vn_queue vn_queue;

vn_queue *vn_queue_create(size_t budget); /* NULL: no memory */
void      vn_queue_destroy(vn_queue *q);  /* after both threads have let go of it */

vn_block *vn_queue_take(vn_queue *q);              /* an empty one; NULL: no memory for the first */
void      vn_block_free(vn_block *b);              /* one that was taken and will not be posted; safe on NULL */
void      vn_queue_post(vn_queue *q, vn_block *b);
vn_block *vn_queue_fetch(vn_queue *q);             /* waits; NULL once closed and empty */
void      vn_queue_give_back(vn_queue *q, vn_block *b);
void      vn_queue_drain(vn_queue *q);             /* waits until all that was posted has been given back */
void      vn_queue_close(vn_queue *q);             /* nothing more will be posted */

#endif
