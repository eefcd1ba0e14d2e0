/* shipped.h: files that come with vernier: limits, name maps. */
#ifndef VN_CAPTURE_SHIPPED_H
#define VN_CAPTURE_SHIPPED_H

#include "libref/base/error.h"

/* folder/name into path (PATH_MAX bytes): where VERNIER_SPECS says, else beside the
 * program, else where it was installed or built. err may be NULL. */
vn_status vn_shipped_find(const char *folder, const char *name, char *path, vn_error *err);

#endif
