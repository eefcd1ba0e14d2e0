/* disk.h: writes large data at given offsets of a file, past the page cache.
 *
 * A recording is larger than anything else that a run writes, and is synced before it gets its
 * name. Passing it through the page cache would gain nothing and cost a copy and a new page for
 * every 4 KiB, on processors that the run needs. So whole pages are written directly (O_DIRECT) if
 * the file system can; everything else is written as usual.
 *
 * Threads  one at a time.
 */
#pragma once

#include "libref/base/error.h"

#include <stddef.h>
#include <stdint.h>

/* Direct writes are aligned to this, in memory and in the file. */
#define VN_DISK_PAGE 4096u

typedef struct vn_disk {
	int         fd, direct;  /* direct: -1 if the file system cannot */
	const char *path;        /* for messages; the caller's */
	int64_t     waiting, at; /* bytes written as usual but not yet flushed, and where they begin */
} vn_disk;

/* fd: open for writing; the caller's, and must outlive d. */
void vn_disk_open(vn_disk *d, int fd, const char *path);
void vn_disk_close(vn_disk *d);

/* Writes data at offset `at` of the file. object: for messages. */
vn_status vn_disk_write(vn_disk *d, const char *object, const void *data, size_t bytes, int64_t at, vn_error *err);

/* An open file and its path, for messages. */
typedef struct vn_open_file {
	int         fd;
	const char *path;
} vn_open_file;
/* Writes through the page cache, for small data that is overwritten. object: for messages. */
vn_status vn_write_at(vn_open_file to, const char *object, const void *data, size_t bytes, int64_t at, vn_error *err);
