/* sandbox.h: restricts a process before it reads an untrusted file (child.h) or writes a checkpoint
 * file (scribe.h).
 *
 * A library that crashes on a malicious file might as well run code from that file. A process in
 * the sandbox keeps: the descriptor of that file, for reading; the writing end of its pipe; memory;
 * the processor, for some seconds. It has no other descriptor, no environment, no file system, no
 * network, no other process, and cannot load code.
 *
 * Each layer holds by itself, so a kernel or container that lacks one weakens the sandbox without
 * removing it:
 *
 *   always     descriptors closed, writable shared memory unmapped, environment overwritten,
 *              rlimits (no new descriptor, no file longer than it is, no process), no_new_privs,
 *              not dumpable
 *   Landlock   no paths, no TCP; from ABI 6 on no signals to other processes and no abstract unix
 *              sockets
 *   seccomp    only the system calls, with the arguments, in the tables of sandbox.c
 *
 * seccomp is off under ThreadSanitizer and AddressSanitizer, whose run time makes system calls of
 * its own.
 *
 * What remains: the process is a fork, so it sees its parent's memory as it was at that moment,
 * except mapped files and scratch memory (vn_scratch, vn_recording: MADV_DONTFORK). It can send
 * what it sees only to the parent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { VN_SANDBOX_LANDLOCK = 1, VN_SANDBOX_SECCOMP = 2 };

typedef struct vn_sandbox {
	int         pipe;   /* the only descriptor for writing */
	int         file;   /* the only descriptor for reading; -1: none */
	bool        writes; /* file is also open for writing: one of our own that is changed */
	bool        talks;  /* pipe is a socket: sendmsg and recv are allowed */
	/* memory shared with the parent into which it writes its answer; NULL: none. Other shared
	 * memory is unmapped */
	const void *shared;
	size_t      shared_bytes;
	/* layers left out, so that tests can check that each of the others holds by itself */
	int         without;
} vn_sandbox;

/* First part: closes descriptors, unmaps shared memory and clears the environment. Libraries are
 * initialised between this and vn_sandbox_close. */
void vn_sandbox_begin(const vn_sandbox *s);
/* Second part: closes the sandbox for good. Returns the layers that are missing (VN_SANDBOX_*): not
 * in this kernel, or left out. */
int  vn_sandbox_close(const vn_sandbox *s);
