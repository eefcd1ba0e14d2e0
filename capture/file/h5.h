/* h5.h: the few HDF5 calls that writing and reading share. Only capture/ sees it.
 *
 * HDF5 crashes where it gets no memory, and on damaged files. So it runs in child processes only (child.h,
 * store/scribe.h); the process that forks them never initialises it. It is not thread-safe here: whoever calls it
 * holds vn_h5_lock.
 */
#ifndef VN_CAPTURE_H5_H
#define VN_CAPTURE_H5_H

#include "libref/base/dtype.h"
#include "libref/base/error.h"

#include <hdf5.h>
#include <stdbool.h>

void vn_h5_lock(void);   /* also keeps HDF5 from printing and from loading plugins; want of memory is noted (trouble.h) */
void vn_h5_unlock(void);

/* With the lock held, before a piece of work that writes: is there memory for it?
 * HDF5 1.10.8 crashes or ends the program where it gets none. After the first
 * refusal there is enough once more, to close what is open. path is for the message. */
vn_status vn_h5_room(const char *path, vn_error *err);

/* The type of a tensor on disk or in memory, to be closed. big: the big-endian one.
 * bf16 is an unsigned 16-bit integer, either f8 one of 8 bits: HDF5 has no such
 * numbers, and the attribute dtype says which they are. */
hid_t vn_h5_type(vn_dtype d, bool big);
bool  vn_h5_says_dtype(vn_dtype d);
/* UTF-8, variable length; to be closed. */
hid_t vn_h5_text_type(void);

/* A new scalar attribute. */
bool vn_h5_put_text(hid_t object, const char *name, const char *text);
bool vn_h5_put_int(hid_t object, const char *name, int64_t value);
bool vn_h5_put_real(hid_t object, const char *name, double value);

#endif
