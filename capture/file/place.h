/* place.h: the file a recording is written to, before it has its name.
 *
 * All writing goes to PATH.partial, locked against a second writer; only
 * vn_place_settle makes it PATH. A .partial file that an interrupted run left
 * is written over.
 */
#ifndef VN_CAPTURE_PLACE_H
#define VN_CAPTURE_PLACE_H

#include "libref/base/error.h"

#include <stdbool.h>

typedef struct vn_place {
	char *path, *partial;
	int   fd; /* of partial: empty, read-write, locked */
	bool  force;
	unsigned mark; /* vn_trouble_mark, when it was opened */
} vn_place;

/* What is written. force replaces a file of the same kind alone, or an empty one: -o MODEL.gguf by mistake must not
 * cost the model. Numbers (.npy, .csv) replace whatever is not a recording. */
typedef enum vn_place_kind { VN_PLACE_RECORDING, VN_PLACE_TEXT, VN_PLACE_NUMBERS } vn_place_kind;

/* What vn_place_open would say of path, without touching anything. */
vn_status vn_place_check(const char *path, vn_place_kind kind, bool force, vn_error *err);
/* Refused: a directory or anything else that is not a regular file, a missing
 * parent, an existing PATH without force or of another kind, a .partial another process writes. */
vn_status vn_place_open(vn_place *p, const char *path, vn_place_kind kind, bool force, vn_error *err);
/* Sync, and rename to PATH, unless the machine refused something meanwhile (libref/base/trouble.h).
 * Without force a PATH that appeared meanwhile is refused. */
vn_status vn_place_settle(vn_place *p, vn_error *err);
void      vn_place_close(vn_place *p); /* leaves the files as they are; safe on a zeroed one */

#endif
