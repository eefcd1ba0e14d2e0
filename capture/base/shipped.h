/* shipped.h: finds files that are installed with vernier: limits, name maps. */
#pragma once

#include "libref/base/error.h"

#include <stddef.h>

/* Writes the path of folder/name to path (PATH_MAX bytes). Searches only $VERNIER_SPECS if that is
 * set; else next to the program, then where it was installed or built. VN_ERR_NOTFOUND: no place
 * has it. VN_ERR_IO: a place cannot be searched. err may be NULL. */
vn_status vn_shipped_find(const char *folder, const char *name, char *path, vn_error *err);

/* Writes the names in a folder of such files to text (room bytes): sorted, without `ending`, with
 * '|' between them. */
vn_status vn_shipped_names(const char *folder, const char *ending, char *text, size_t room, vn_error *err);
