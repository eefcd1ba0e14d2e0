/* writers.h: threads that write blocks of a file while the storing thread computes their digests.
 *
 * So writing never waits for a digest. A block is held (queue.h) until it is written.
 *
 * Threads  one at a time per vn_writers.
 */
#pragma once

#include "capture/store/queue.h"
#include "libref/base/error.h"

typedef struct vn_writers vn_writers;

/* fd: of the file, the caller's; path: for messages. Both, and q, must outlive the writers. NULL:
 * no memory, or no thread could be started. */
vn_writers *vn_writers_create(int fd, const char *path, vn_queue *q);
/* Ends the threads once everything posted is written. w may be NULL. */
void        vn_writers_destroy(vn_writers *w);

/* Holds the block and writes it at offset `at`. object: for messages, must live until
 * vn_writers_wait. Waits if enough is on its way already. */
void      vn_writers_post(vn_writers *w, vn_block *b, int64_t at, const char *object);
/* Waits until all that was posted is written. Returns the first failure, and forgets it. */
vn_status vn_writers_wait(vn_writers *w, vn_error *err);
