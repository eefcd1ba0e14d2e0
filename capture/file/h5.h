/* h5.h: the HDF5 functions that writing and reading share. Used only in capture/.
 *
 * HDF5 crashes if it gets no memory, and on damaged files. So it runs only in child processes
 * (child.h, store/scribe.h); the process that forks them never initialises it. It is not
 * thread-safe here: callers hold vn_h5_lock.
 */
#pragma once

#include "libref/base/dtype.h"
#include "libref/base/error.h"

#include <hdf5.h>
#include <stdbool.h>

/* Take and release the lock. The first lock also silences HDF5, forbids plugins, and has memory
 * failures noted (trouble.h). */
void vn_h5_lock(void);
void vn_h5_unlock(void);

/* Call with the lock held before writing: is there enough memory? HDF5 1.10.8 crashes or exits if
 * it gets none. After the first refusal there is enough once more, to close what is open. path: for
 * messages. */
vn_status vn_h5_room(const char *path, vn_error *err);

/* Returns the type of a tensor on disk or in memory; the caller closes it. big: big-endian. bf16
 * becomes an unsigned 16-bit integer and the f8 formats 8-bit ones, since HDF5 lacks them; the
 * attribute dtype says which they are (vn_h5_says_dtype). */
hid_t vn_h5_type(vn_dtype d, bool big);
bool  vn_h5_says_dtype(vn_dtype d);
/* Returns the type of UTF-8 strings of variable length; the caller closes it. */
hid_t vn_h5_text_type(void);

/* Closes what any HDF5 function returned, except a file. Returns false on failure; an id that is
 * invalid, because it was not made, is no failure. */
bool vn_h5_close(hid_t id);

/* Create a scalar attribute. A word is kept in the object's header, a text in a heap of 4096
 * bytes. */
bool vn_h5_put_word(hid_t object, const char *name, const char *word);
bool vn_h5_put_text(hid_t object, const char *name, const char *text);
bool vn_h5_put_int(hid_t object, const char *name, int64_t value);
bool vn_h5_put_real(hid_t object, const char *name, double value);
