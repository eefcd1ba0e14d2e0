/* child.h: work on hostile bytes in a process of its own.
 *
 * HDF5 crashes, hangs or asks for absurd memory on files made for it. So what
 * reads a stranger's file runs in a forked child with little memory and no
 * voice, and sends what it found through a pipe. Whatever becomes of the child,
 * the parent gets frames that it checks, or one clear line.
 */
#ifndef VN_CAPTURE_CHILD_H
#define VN_CAPTURE_CHILD_H

#include "libref/base/error.h"

#include <stddef.h>
#include <sys/types.h>

typedef struct vn_child {
	pid_t       pid;
	int         pipe;
	const char *path; /* the file at hand, for messages */
} vn_child;

/* Runs work(ctx, pipe) in a child; work ends with _exit. */
vn_status vn_child_start(vn_child *c, const char *path, void (*work)(void *ctx, int pipe), void *ctx, vn_error *err);
/* Ends the child if it still runs; safe after a failed start. */
void      vn_child_end(vn_child *c);

/* One frame: its kind and its bytes, NUL behind them, by malloc. A child that
 * died, fell silent or talks nonsense is VN_ERR_FORMAT. */
vn_status vn_child_receive(vn_child *c, int *kind, void **data, size_t *bytes, vn_error *err);
/* In the child: end it after so many more seconds of computing. Each frame
 * sent gives it a few again. */
void      vn_child_patience(int seconds);
/* In the child. A parent that is gone ends it. */
void      vn_child_send(int pipe, int kind, const void *data, size_t bytes);

#endif
