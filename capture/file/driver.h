/* driver.h: how HDF5 reaches the disk.
 *
 * HDF5 rewrites its metadata in place and in no particular order, so a process
 * killed at the wrong moment leaves a file that no longer opens. This driver
 * stands between the library and the file. What the library writes is kept in
 * memory until vn_driver_publish, which puts it on disk in an order in which
 * the file opens at every step: first what nothing on disk points at yet, then
 * the superblock (which only knows how long the file is), then the blocks that
 * were there before, each in one write. Since a recording only ever adds links
 * to finished objects, each of those blocks is right alone.
 *
 * It also keeps the library away from errors it handles badly: the library's
 * own writes never fail. A full disk shows in vn_driver_publish, and the file
 * stays at what was published last.
 *
 * The numbers of a tensor do not pass through here: their place is allocated
 * here, at a page, and they are written past the library (disk.h).
 *
 * Threads  as HDF5: one at a time.
 */
#ifndef VN_CAPTURE_DRIVER_H
#define VN_CAPTURE_DRIVER_H

#include "libref/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct vn_driver vn_driver;

/* fd: a file of so many bytes, an empty one open for reading and writing, or one to read only; it
 * stays the caller's. path is for messages. NULL: no memory. */
vn_driver *vn_driver_create(int fd, const char *path, int64_t bytes);
/* A finished file that is changed in place: what the library writes goes to the file at once, in the library's order. */
void       vn_driver_pass(vn_driver *d);
void       vn_driver_destroy(vn_driver *d);

/* For H5Pset_driver: the driver's id (an hid_t; -1 when HDF5 refuses) and the
 * information to pass with it. */
long long   vn_driver_id(void);
const void *vn_driver_info(vn_driver *d);
/* Where HDF5 takes a file (an hid_t) to end that was opened with it: it reads nothing beyond. */
uint64_t    vn_driver_end(long long file);

/* Everything the library has written so far goes to disk. */
vn_status vn_driver_publish(vn_driver *d, vn_error *err);

/* From here on what is on disk stays as it is: blocks that were there before are kept back, new ones go behind them, where
 * nothing on disk leads. For what the library rewrites in several blocks at once (an index of many links).
 * The next vn_driver_publish after a release puts the rest on disk, the index before what leads to it. */
void vn_driver_hold(vn_driver *d);
void vn_driver_release(vn_driver *d);

#endif
