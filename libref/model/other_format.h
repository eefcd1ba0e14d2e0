/* other_format.h: files and addresses that are given as a model, and are none. */
#ifndef VN_LIBREF_OTHER_FORMAT_H
#define VN_LIBREF_OTHER_FORMAT_H

#include "libref/base/error.h"

/* Refuses a file that is known not to be GGUF, by its first bytes and its name: says what it is and
 * what to do. VN_OK: it may be GGUF, or cannot be read. */
vn_status vn_other_format(const char *path, vn_error *err);
/* Refuses a path that is not there: an address, or "owner/name", which is how a hub names a
 * model. why: an errno. */
vn_status vn_other_place(const char *path, int why, vn_error *err);

#endif
