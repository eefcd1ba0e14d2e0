/* other_format.h: files and addresses that are given as a model, a dump or a recording, and are
 * none. */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>

/* Refuses a file that is known to be none, by its first bytes and its name: says what it is and
 * what to do. model: it was given as a model. VN_OK: it may be GGUF or unknown, or cannot be
 * read. */
vn_status vn_other_format(const char *path, bool model, vn_error *err);
/* Refuses what is known to be no text, by its first bytes alone: a text may have any name. */
vn_status vn_other_text(const char *path, vn_error *err);
/* Refuses a model that is not there: an address, or "owner/name", which is how a hub names a model.
 * why: an errno. */
vn_status vn_other_place(const char *path, int why, vn_error *err);
/* Refuses an address; of another path, says why it does not open. */
vn_status vn_other_address(const char *path, int why, vn_error *err);
