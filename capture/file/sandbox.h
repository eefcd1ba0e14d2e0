/* sandbox.h: what is taken from a process before it reads a stranger's file (child.h), or writes one of ours (scribe.h).
 *
 * A library that crashes on a file made for it may as well run the code in that file. A process in here keeps:
 * the descriptor of that file, for reading; the writing end of its pipe; memory; the processor, for some seconds.
 * It has no other descriptor, no environment, no file system, no network, no other process and no new code.
 *
 * Each layer holds alone, so that a kernel or a container without one of them weakens the sandbox and does not remove it:
 *
 *   always     descriptors closed, environment overwritten, rlimits (no new descriptor, no file longer than it is,
 *              no process), no_new_privs, not dumpable
 *   Landlock   no path at all, no TCP; from ABI 6 on no signal to others and no abstract unix socket
 *   seccomp    the system calls of the table in sandbox.c with the arguments there, on x86-64 and arm64
 *
 * Not under ThreadSanitizer or AddressSanitizer: seccomp (their run time makes calls of its own).
 *
 * What remains: the process is a fork, so it sees the memory of its parent as it was at that moment, mapped files
 * and scratch rooms excepted (vn_scratch, vn_recording: MADV_DONTFORK). It has no way to tell anyone but the parent.
 */
#ifndef VN_CAPTURE_SANDBOX_H
#define VN_CAPTURE_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

enum { VN_SANDBOX_LANDLOCK = 1, VN_SANDBOX_SECCOMP = 2 };

typedef struct vn_sandbox {
	int  pipe;     /* the only descriptor for writing */
	int  file;     /* the only one for reading; -1: none */
	bool writes;   /* it is for writing too: an own file that is changed */
	bool talks;    /* pipe is a socket: sendmsg and recv */
	int  without;  /* layers left out: for tests alone, which see each of the others hold by itself */
} vn_sandbox;

/* The beginning: closes descriptors, clears the environment. Libraries are initialised between this and vn_sandbox_close. */
void vn_sandbox_begin(const vn_sandbox *s);
/* For good. Returns the layers that this kernel does not have (VN_SANDBOX_*), those left out included. */
int  vn_sandbox_close(const vn_sandbox *s);

#endif
