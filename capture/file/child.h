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
#include <stdint.h>
#include <sys/types.h>

typedef struct vn_child {
	pid_t       pid;
	int         pipe;  /* -1: none */
	const char *path;  /* the file at hand, for messages */
	char       *in;    /* what was read ahead: n bytes from `at` on */
	size_t      at, n;
	uint32_t    head[2]; /* the frame that is coming in: kind, bytes; `got` bytes of head and body so far */
	size_t      got;
	char       *body;
} vn_child;

/* What a child sends last when the machine refused it something (libref/base/trouble.h): not the file is at fault.
 * Also its exit status. */
enum { VN_CHILD_TROUBLE = 250 };

/* Runs work(ctx, pipe) in a child, which ends when work returns. */
vn_status vn_child_start(vn_child *c, const char *path, void (*work)(void *ctx, int pipe), void *ctx, vn_error *err);
/* Ends the child if it still runs; safe after a failed start. */
void      vn_child_end(vn_child *c);

/* One frame: its kind and its bytes, NUL behind them, by malloc. A child that
 * died, fell silent or talks nonsense is VN_ERR_FORMAT. */
vn_status vn_child_receive(vn_child *c, int *kind, void **data, size_t *bytes, vn_error *err);
/* The next frame of any of n children, at most VN_CHILDREN, those without a pipe
 * left out; *which: whose it is, or whose fault. */
enum { VN_CHILDREN = 8 };
vn_status vn_child_receive_any(vn_child *const *c, int n, int *which, int *kind, void **data, size_t *bytes, vn_error *err);
/* In the child: end it after so many more seconds of computing. What it sends
 * gives it a few again. */
void      vn_child_patience(int seconds);
/* In the child. Frames leave together: when they have come to some size, when a
 * moment has passed since the last left, and with vn_child_leave, the end of the
 * child. A parent that is gone ends it too. */
void      vn_child_send(int pipe, int kind, const void *data, size_t bytes);
__attribute__((noreturn))
void      vn_child_leave(int pipe);

#endif
