/* child.h: work on hostile bytes in a process of its own.
 *
 * HDF5 crashes, hangs or asks for absurd memory on files made for it. So what
 * reads a stranger's file runs in a forked child with little memory and no
 * voice, in a sandbox (sandbox.h) that leaves it that file and a pipe, through
 * which it sends what it found. Whatever becomes of the child, the parent gets
 * frames that it checks, or one clear line.
 *
 * Who reads a stranger's bytes, and where:
 *   HDF5 and object_header.c (recordings), libzip and zlib (.npz)    in a child
 *   our own readers (safetensors, GGUF, .npy, frames), fuzzed        in the parent
 *   jansson (config.json, manifests, indices, tokenizer.json)        in the parent: a small grammar, fuzzed here and by others
 *   PCRE2 (patterns of a tokenizer.json)                             in the parent: it gets our own translation of a pattern
 *                                                                    into a subset of its language (libref/text/pattern.h)
 *   libyaml (limits, name maps)                                      in the parent: the user's own files
 */
#ifndef VN_CAPTURE_CHILD_H
#define VN_CAPTURE_CHILD_H

#include "libref/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct vn_child {
	pid_t       pid;
	int         pipe;  /* -1: none */
	const char *path, *what; /* the file at hand, for messages, and what it should be: "HDF5" */
	char       *in;    /* what was read ahead: n bytes from `at` on */
	size_t      at, n;
	uint32_t    head[2]; /* the frame that is coming in: kind, bytes; `got` bytes of head and body so far */
	size_t      got;
	char       *body;
	bool        slow;    /* of its task */
	double      spent_s; /* of processor, when it last said something */
	int         stopped; /* looks at it, one after the other, that found it stopped */
} vn_child;

/* What a child sends last when the machine refused it something (libref/base/trouble.h): not the file is at fault.
 * Also its exit status. */
enum { VN_CHILD_TROUBLE = 250 };

typedef struct vn_child_task {
	const char *path;    /* the file at hand, for messages; must outlive the child */
	const char *what;    /* what it should be, likewise; NULL: HDF5 */
	int         file;    /* it, open; -1: none. Of the descriptors of this process the child has no other */
	bool        writes;  /* it is changed: a file of our own */
	bool        slow;    /* it computes for long between two things it says (vn_child_patience): the parent waits up to ten minutes */
	void      (*work)(void *ctx, int pipe);
	void       *ctx;
	int         without; /* of vn_sandbox, for tests */
} vn_child_task;

/* Runs work(ctx, pipe) in a child, which ends when work returns. HDF5 is initialised there. */
vn_status vn_child_start(vn_child *c, const vn_child_task *task, vn_error *err);
/* No process: frames from this descriptor, which becomes the child's. */
vn_status vn_child_adopt(vn_child *c, const char *path, int pipe, vn_error *err);
/* Ends the child if it still runs; safe after a failed start. */
void      vn_child_end(vn_child *c);

/* One frame: its kind and its bytes, NUL behind them, by malloc. A child that
 * crashed, fell silent or talks nonsense is VN_ERR_FORMAT; one that was killed,
 * or got no memory, VN_ERR_NOMEM: the file may be good. */
vn_status vn_child_receive(vn_child *c, int *kind, void **data, size_t *bytes, vn_error *err);
/* The next frame of any of n children, at most VN_CHILDREN, those without a pipe
 * left out; *which: whose it is, or whose fault. */
enum { VN_CHILDREN = 8 };
vn_status vn_child_receive_any(vn_child *const *c, int n, int *which, int *kind, void **data, size_t *bytes, vn_error *err);
/* What a child that gave up says in a frame: int32 status, text. Its words are not believed: one line, and never none. */
vn_status vn_child_refused(const char *path, const void *data, size_t bytes, vn_error *err);
/* In the child: end it after so many more seconds of computing. What it sends
 * gives it a few again. */
void      vn_child_patience(int seconds);
/* In the child. Frames leave together: when they have come to some size, when a
 * moment has passed since the last left, and with vn_child_leave, the end of the
 * child. A parent that is gone ends it too. */
void      vn_child_send(int pipe, int kind, const void *data, size_t bytes);
__attribute__((noreturn))
void      vn_child_leave(int pipe);
/* In the child: a frame of kind 0, as vn_child_refused takes it, and the end. */
__attribute__((noreturn, format(printf, 2, 3)))
void      vn_child_refuse(int pipe, const char *format, ...);

/* What a child cannot be kept from on this machine, in words; "" where the sandbox is whole. */
vn_status vn_child_probe(char *words, size_t room, vn_error *err);

#endif
