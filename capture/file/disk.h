/* disk.h: bytes to their place in a file.
 *
 * A recording is larger than anything else a run writes and is synced before it
 * gets its name, so passing it through the page cache gains nothing and costs a
 * copy and a fresh page for every 4 KiB, on cores that the pass wants. Whole
 * pages therefore go to the disk directly (O_DIRECT) where the file system
 * can; everything else, and all of it where it cannot, is written as usual.
 *
 * Threads  one at a time.
 */
#ifndef VN_CAPTURE_DISK_H
#define VN_CAPTURE_DISK_H

#include "libref/base/error.h"

#include <stddef.h>
#include <stdint.h>

/* What goes directly starts at a multiple of this, in memory and in the file. */
#define VN_DISK_PAGE 4096u

typedef struct vn_disk {
	int         fd, direct;  /* direct: -1 where the file system cannot */
	const char *path;        /* for messages; the caller's */
	int64_t     waiting, at; /* bytes written as usual that the disk was not told of, and where they begin */
} vn_disk;

/* fd: open for writing, the caller's; it must outlive the disk. */
void vn_disk_open(vn_disk *d, int fd, const char *path);
void vn_disk_close(vn_disk *d);

/* All of data at an offset of the file. object: for messages. */
vn_status vn_disk_write(vn_disk *d, const char *object, const void *data, size_t bytes, int64_t at, vn_error *err);

/* The same as usual, for what is small and written over: path is for messages. */
vn_status vn_write_at(int fd, const char *path, const char *object, const void *data, size_t bytes, int64_t at,
                      vn_error *err);

#endif
