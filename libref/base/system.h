/* system.h: what vernier needs of an operating system beyond POSIX.1-2008.
 *
 * system_linux.c is for Linux, system_plain.c for everything else (CMake's VERNIER_PLAIN_POSIX,
 * which also chooses capture/file/sandbox_plain.c). Only system_linux.c, stream.c and sandbox.c
 * define _GNU_SOURCE, so any other file that calls what POSIX lacks does not compile.
 *
 * New descriptors have FD_CLOEXEC. Unless said otherwise, failure is -1, with errno.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Where a system lacks a name: macOS. */
#ifdef __APPLE__
#define st_mtim st_mtimespec
#define st_ctim st_ctimespec
#endif

/* Repeats a call while a signal interrupts it. */
#define VN_UNINTERRUPTED(result, call) \
	do \
		(result) = (call); \
	while ((result) < 0 && errno == EINTR)

/* The processors that this process may use; plain: that the machine has. */
int     vn_processors(void);
/* Sends the signal `number` to this process when its parent ends. False: it cannot be done. plain:
 * does nothing, so that a process ends when its pipe or socket does. */
bool    vn_end_with_parent(int number);
/* Bytes of address space that this process uses; 0: not known, as always in plain. */
size_t  vn_address_space(void);
/* The path of this program, without a terminating zero. Returns its length. plain: found by the
 * first word of the command line, which vn_program_note got; before that ENOENT. */
ssize_t vn_program_path(char *path, size_t room);
void    vn_program_note(const char *word);

/* ---- descriptors --------------------------------------------------------------------------- */

int vn_pipe(int ends[2]);
/* Two connected stream sockets. With VN_SEND_FLAGS, sending to one whose peer has gone fails with
 * EPIPE, without a signal. */
int vn_socket_pair(int ends[2]);
#ifdef __APPLE__
#define VN_SEND_FLAGS 0
#else
#define VN_SEND_FLAGS MSG_NOSIGNAL
#endif
/* Closes the descriptors from `from` to `to`. For signal handlers too. */
void vn_close_range(unsigned from, unsigned to);

/* ---- files --------------------------------------------------------------------------------- */

/* A file without a name, in memory; plain: in $TMPDIR or /tmp. */
int  vn_memory_file(const char *label);
/* A file without a name in a folder, readable and writable by this user. */
int  vn_nameless_file(const char *folder);
/* mkstemp. */
int  vn_make_file(char *template);
/* Allocates the blocks of an empty file. */
bool vn_file_reserve(int fd, size_t bytes);
/* Opens the file of fd again, for writing past the page cache; plain: -1. */
int  vn_open_direct(int fd);
/* Starts to write to disk what was written to these bytes of the file; plain: does nothing. */
void vn_start_writing(int fd, int64_t at, int64_t bytes);
/* Renames, unless `to` exists (EEXIST). ENOSYS, EINVAL: it cannot be done here; plain: always. */
int  vn_rename_new(const char *from, const char *to);
/* Removes the files in an open folder. linux: allocates nothing, for signal handlers. */
void vn_folder_clear(int folder);

/* What tells a file from all others. The time of birth tells it from a later one that got its
 * number; 0: not known, as always in plain. */
typedef struct vn_file_id {
	uint64_t device, inode;
	int64_t  born;
} vn_file_id;
/* Of path (a symbolic link itself), or of fd where path is NULL. False: there is no such file. */
bool vn_file_identify(int fd, const char *path, vn_file_id *id);

/* ---- memory and streams -------------------------------------------------------------------- */

/* Keeps a mapping out of the processes forked later; plain: they have it too. */
void  vn_map_not_inherited(void *p, size_t bytes);
/* A stream for writing over two functions: `write` returns the bytes taken, 0 on failure; close may
 * be NULL. POSIX has none (stream.c): fopencookie on Linux, funopen elsewhere. */
FILE *vn_stream_open(void *cookie, ssize_t (*write)(void *cookie, const char *text, size_t n),
                     int (*close)(void *cookie));
/* Frees a tree of tsearch, and each key by `drop`. */
void  vn_tree_free(void *root, void (*drop)(void *key));
/* qsort with a context. */
void  vn_sort(void *list, size_t n, size_t size, int (*order)(const void *a, const void *b, void *context),
              void *context);
