/* folders.h: pairs the recordings of a reference's folder and of others by file name. */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>
#include <stdio.h>

enum { VN_MOST_FOLDERS = 17 }; /* the reference's, and those of 16 candidates */

typedef struct vn_folder_pair {
	char *name;                   /* "prompt1.h5" */
	bool  there[VN_MOST_FOLDERS]; /* whether it exists in the reference's folder, in the candidates' */
} vn_folder_pair;

typedef struct vn_folder_pairs {
	vn_folder_pair *pair; /* (n), by name */
	int             n;
	int folders[VN_MOST_FOLDERS], others[VN_MOST_FOLDERS]; /* subfolders and other files that were ignored, in each */
} vn_folder_pairs;

bool      vn_match_is_folder(const char *path);
/* Lists and pairs the recordings of n folders, of several the first is the reference's. Every file
 * that ends in .h5 or .hdf5 counts as a recording, readable or not. Subfolders and other files are
 * only counted. VN_ERR_NOTFOUND: no folder holds a recording. Call vn_folder_pairs_free afterwards,
 * also after a failure. */
vn_status vn_folder_pairs_of(const char *const *folder, int n, vn_folder_pairs *p, vn_error *err);
/* Sorts the pairs so that rank2.h5 stands before rank10.h5. */
void      vn_folder_pairs_by_number(vn_folder_pairs *p);
void      vn_folder_pairs_free(vn_folder_pairs *p);

/* Writes the line "ignored: 1 folder, 2 other files in DIR" to out, or nothing if there are
 * none. */
void vn_folder_left(const char *folder, int folders, int others, FILE *out);

/* Makes the report's path for one pair from the path given for all: "out.json" becomes
 * "out.prompt1.json" for "prompt1.h5", and "out.prompt1.hdf5.json" for "prompt1.hdf5". text:
 * PATH_MAX bytes. Returns false if it does not fit. */
bool vn_folder_report(const char *path, const char *name, char *text);
