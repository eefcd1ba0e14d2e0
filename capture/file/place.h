/* place.h: creates a recording's file under a temporary name, and renames it when it is complete.
 *
 * All data is written to PATH.partial, locked against a second writer; vn_place_settle renames it
 * to PATH. A .partial file is overwritten if an interrupted run left it: it is empty, or begins as
 * an incomplete recording, has no other name (hard link), and this command does not read it. No
 * other file is ever emptied, and no input of the command is replaced (libref/base/files.h), also
 * not with force.
 */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>

/* What is written. With force, only a file of the same kind, or an empty one, is replaced: -o
 * MODEL.gguf or -o NOTES.md by mistake must not cost the model or the notes. A kind is recognised
 * by the first bytes. Limits: those that calibrate fitted. Map: one that import proposed. Numbers:
 * of one tensor (.npy, or the .txt and .csv of show --values). Manual: a page of help
 * --man-pages. */
typedef enum vn_place_kind {
	VN_PLACE_RECORDING,
	VN_PLACE_REPORT,
	VN_PLACE_LIMITS,
	VN_PLACE_MAP,
	VN_PLACE_NUMBERS,
	VN_PLACE_MANUAL,
	VN_N_PLACES
} vn_place_kind;

typedef struct vn_place {
	char    *path, *partial;
	int      fd; /* of partial: empty, read-write, locked */
	bool     force;
	unsigned mark; /* vn_trouble_mark at the time of opening */
} vn_place;

/* Do both paths name one file? Either may be NULL: no. An output must not replace a file that the
 * command reads. */
bool vn_same_file(const char *a, const char *b);
/* Do both paths name one place in one folder, whether a file is there or not? */
bool vn_same_place(const char *a, const char *b);

/* Checks path as vn_place_open or vn_output_open would, without changing anything. */
vn_status vn_place_check(const char *path, vn_place_kind kind, bool force, vn_error *err);
/* Checks only that files can be made in the folder of path. */
vn_status vn_place_check_folder(const char *path, vn_error *err);
/* Creates PATH.partial. Refuses a directory or anything else that is not a regular file, a missing
 * parent, an existing PATH without force or of another kind, and a .partial file that another
 * process is writing or that is not to be overwritten. */
vn_status vn_place_open(vn_place *p, const char *path, bool force, vn_error *err);
/* Syncs and renames to PATH, unless some operation failed for lack of resources in the meantime
 * (libref/base/trouble.h). Without force, refuses a PATH that has appeared since. */
vn_status vn_place_settle(vn_place *p, vn_error *err);
void      vn_place_close(vn_place *p); /* leaves the files as they are; p may be zeroed */
