/* rank_files.h: which files are the ranks of one candidate, as --shard names them: "tp2/",
 * "r0.h5,r1.h5". */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>

typedef struct vn_rank_files {
	char **file; /* (n) */
	int    n;
} vn_rank_files;

/* Does the argument name several files? It is a folder, or files joined by commas; the name of an
 * existing file may have commas. */
bool      vn_rank_files_named(const char *argument);
/* Lists the files: the recordings of a folder (rank2.h5 before rank10.h5), those joined by commas,
 * or else the argument itself. Call vn_rank_files_free afterwards, also after a failure.
 * VN_ERR_NOTFOUND: a folder without recordings. VN_ERR_USAGE: an empty name, or too long a path. */
vn_status vn_rank_files_of(const char *argument, vn_rank_files *ranks, vn_error *err);
void      vn_rank_files_free(vn_rank_files *ranks);
