/* driver.h: an HDF5 file driver that keeps the file on disk readable at every moment.
 *
 * HDF5 rewrites its metadata in place, in no particular order, so a process killed at the wrong
 * moment leaves a file that cannot be opened. This driver keeps what the library writes in memory
 * until vn_driver_publish. That writes it in an order in which the file can be opened after every
 * step: first new blocks, which nothing on disk refers to yet; then the superblock (which only says
 * how long the file is); then the blocks that existed before, each in one write. Since a recording
 * only ever adds links to finished objects, each of those blocks is valid by itself. The first
 * state, at most a page, is one write: kill -9 may end a write between two pages, not within one.
 *
 * It also hides errors that the library handles badly: the library's own writes never fail. A full
 * disk becomes an error of vn_driver_publish, and the file stays as it was published last.
 *
 * The numbers of a tensor do not pass through here. This driver allocates their place, aligned to a
 * page, and they are written directly (disk.h).
 *
 * Threads  as HDF5: one at a time.
 */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct vn_driver vn_driver;

/* fd: an empty file open for reading and writing, or a file of `bytes` bytes open for reading;
 * stays the caller's. path: for messages. Returns NULL if there is no memory. */
vn_driver *vn_driver_create(int fd, const char *path, int64_t bytes);
/* Before the file is created: HDF5 allocates its structure in large blocks
 * (H5Pset_meta_block_size), so that it is written in few writes. Only for files that are held
 * (vn_driver_hold). */
void       vn_driver_gather(vn_driver *d);
void       vn_driver_destroy(vn_driver *d);

/* For H5Pset_driver: the driver's id (an hid_t; -1 if HDF5 refuses it) and the information to pass
 * with it. */
long long   vn_driver_id(void);
const void *vn_driver_info(vn_driver *d);
/* Returns where HDF5 believes a file (an hid_t) opened with this driver to end; it reads nothing
 * beyond. */
uint64_t    vn_driver_end(long long file);

/* Allocates a part of the file, which the caller writes (bulk.h), and returns its place. numbers:
 * of a tensor; else structure. */
uint64_t vn_driver_place(vn_driver *d, size_t bytes, bool numbers);

/* Writes everything that the library has written so far to disk. */
vn_status vn_driver_publish(vn_driver *d, vn_error *err);

/* From now on what is on disk stays as it is: blocks that exist there are held back, and new blocks
 * are written after them, where nothing on disk refers to them. For structures that the library
 * rewrites in several blocks at once (an index of many links). After vn_driver_release, the next
 * vn_driver_publish writes the rest, the index before what refers to it. */
void vn_driver_hold(vn_driver *d);
void vn_driver_release(vn_driver *d);
