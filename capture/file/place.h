/* place.h: creates a recording's file under a temporary name, and renames it when it is complete.
 *
 * All data is written to PATH.partial, locked against a second writer; vn_place_settle renames it
 * to PATH. A .partial file that an interrupted run left is overwritten.
 */
#ifndef VN_CAPTURE_PLACE_H
#define VN_CAPTURE_PLACE_H

#include "libref/base/error.h"

#include <stdbool.h>

typedef struct vn_place {
	char *path, *partial;
	int   fd; /* of partial: empty, read-write, locked */
	bool  force;
	unsigned mark; /* vn_trouble_mark at the time of opening */
} vn_place;

/* Checks path as vn_place_open would, without changing anything. */
vn_status vn_place_check(const char *path, bool force, vn_error *err);
/* Creates PATH.partial. Refuses a directory or anything else that is not a regular file, a missing
 * parent, an existing PATH without force, and a .partial file that another process is writing. */
vn_status vn_place_open(vn_place *p, const char *path, bool force, vn_error *err);
/* Syncs and renames to PATH, unless some operation failed for lack of resources in the meantime
 * (libref/base/trouble.h). Without force, refuses a PATH that has appeared since. */
vn_status vn_place_settle(vn_place *p, vn_error *err);
void      vn_place_close(vn_place *p); /* leaves the files as they are; p may be zeroed */

#endif
