/* folders.h: the recordings of two folders, paired by file name. */
#ifndef VN_COMPARE_FOLDERS_H
#define VN_COMPARE_FOLDERS_H

#include "libref/base/error.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct vn_folder_pair {
	char *name;     /* "prompt1.h5" */
	bool  there[2]; /* in the reference's folder, in the candidate's */
} vn_folder_pair;

typedef struct vn_folder_pairs {
	vn_folder_pair *pair; /* (n), by name */
	int             n;
	int             folders[2], others[2]; /* that are no recordings and were not looked at, in each of the two */
} vn_folder_pairs;

bool vn_is_folder(const char *path);
/* Whatever ends in .h5 or .hdf5 is one, whether it can be opened or not, but not what is in folders inside; what else is
 * there is counted. An error when neither folder
 * has one. vn_folder_pairs_free afterwards, whatever happened. */
vn_status vn_folder_pairs_of(const char *ref, const char *cand, vn_folder_pairs *p, vn_error *err);
void      vn_folder_pairs_free(vn_folder_pairs *p);

/* "not looked at: 1 folder, 2 other files in DIR" as a line to out; nothing where all was. */
void      vn_folder_left(const char *folder, int folders, int others, FILE *out);

/* "out.json" of "prompt1.h5" is "out.prompt1.json", of "prompt1.hdf5" "out.prompt1.hdf5.json". text: PATH_MAX bytes; false when it does not fit. */
bool vn_folder_report(const char *path, const char *name, char *text);

#endif
