/* child.h: processes untrusted bytes in a child process.
 *
 * HDF5 crashes, hangs or asks for absurd amounts of memory on malicious files. So code that reads
 * an untrusted file runs in a forked child with little memory and without output, in a sandbox
 * (sandbox.h) that leaves it only that file and a pipe, through which it sends what it found.
 * Whatever happens to the child, the parent gets frames, which it checks, or one clear error.
 *
 * What reads untrusted bytes, and where:
 *   HDF5 and object_header.c (recordings), libzip and zlib (.npz) in a child
 *   our own readers (safetensors, GGUF, .npy, frames)          in the parent: fuzzed
 *   jansson (config.json, manifests, indices, tokenizer.json)  in the parent: fuzzed here too
 *   PCRE2 (patterns of a tokenizer.json)                       in the parent: rewritten (split.h)
 *   libyaml (limits, name maps)                                in the parent: the user's own
 */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct vn_child {
	pid_t       pid;
	int         pipe;        /* -1: none */
	const char *path, *what; /* the file, for messages, and its kind: "HDF5" */
	char       *in;          /* read-ahead: n bytes, starting at `at` */
	size_t      at, n;
	/* kind and size of the incoming frame; bytes of head and body read so far */
	uint32_t    head[2];
	size_t      got;
	char       *body;
	bool        slow;    /* as in its task */
	double      spent_s; /* processor time when the last frame came */
	int         stopped; /* number of consecutive checks that found it stopped */
} vn_child;

/* The kind of a frame in which a child says what its sandbox lacks; vn_child_receive takes it. A
 * child to which the machine refused something ends with a frame of kind VN_TROUBLE_STATUS, and
 * that exit status (libref/base/trouble.h): the file is not at fault. */
enum { VN_CHILD_GAPS = 251 };

typedef struct vn_child_task {
	const char *path; /* the file, for messages; must outlive the child */
	const char *what; /* its kind, for messages; NULL: HDF5 */
	/* an open descriptor of the file; -1: none. The child keeps no other descriptor of this
	 * process */
	int         file;
	/* it may compute for long between frames (vn_child_patience): the parent waits up to ten
	 * minutes */
	bool        slow;
	void (*work)(void *ctx, int pipe);
	void       *ctx;
	/* memory shared with the child, which writes to it; NULL: none */
	const void *shared;
	size_t      shared_bytes;
	int         without; /* sandbox layers to leave out (vn_sandbox), for tests */
} vn_child_task;

/* Runs work(ctx, pipe) in a child, which exits when work returns. Initialises HDF5 there. The
 * child takes only locks of the C library, which can be used after a fork. A sanitizer's locks
 * cannot, so start a child while no other thread runs (vn_recording_direct tells whether reading
 * starts one). */
vn_status vn_child_start(vn_child *c, const vn_child_task *task, vn_error *err);
/* Without a process: reads frames from this descriptor, which belongs to c from now on. */
vn_status vn_child_adopt(vn_child *c, const char *path, int pipe, vn_error *err);
/* Ends the child if it still runs. Safe after a failed start. */
void      vn_child_end(vn_child *c);

typedef struct vn_child_frame {
	int    kind;
	void  *data; /* (bytes), followed by a NUL; the caller frees it */
	size_t bytes;
} vn_child_frame;
/* Receives one frame; *f is zeroed by a failure. VN_ERR_FORMAT: the child crashed, hung or sent
 * nonsense. VN_ERR_NOMEM: it was killed, or got no memory; the file may be good. */
vn_status vn_child_receive(vn_child *c, vn_child_frame *f, vn_error *err);
/* Receives the next frame of any of n children (at most VN_CHILDREN); those without a pipe are
 * skipped. *which: the child that sent it, or that failed. */
enum { VN_CHILDREN = 8 };
vn_status vn_child_receive_any(vn_child *const *c, int n, int *which, vn_child_frame *f, vn_error *err);
/* Turns the frame of a child that gave up (int32 status, text) into an error. The text is not
 * trusted: it becomes one line that is not empty. */
vn_status vn_child_refused(const char *path, const void *data, size_t bytes, vn_error *err);
/* In the child: ends it after this many more seconds of computing. Each frame that it sends gives
 * it a few more. */
void      vn_child_patience(int seconds);
/* In the child: queues a frame. Frames are sent together: when they reach a certain size, shortly
 * after the last sending, and by vn_child_leave, which ends the child. The child also ends if the
 * parent is gone. */
void      vn_child_send(int pipe, int kind, const void *data, size_t bytes);
__attribute__((noreturn)) void                       vn_child_leave(int pipe);
/* In the child: sends a frame of kind 0 for vn_child_refused, and exits. */
__attribute__((noreturn, format(printf, 2, 3))) void vn_child_refuse(int pipe, const char *format, ...);

/* Describes what the sandbox cannot prevent on this machine; "" if it is complete. */
vn_status vn_child_sandbox_gaps(char *words, size_t room, vn_error *err);
/* tell is called once in this process, when a child was first found to run in a sandbox that lacks
 * something ("Landlock, seccomp"). NULL, as at the start: nothing is. */
void      vn_child_on_gaps(void (*tell)(const char *missing));
