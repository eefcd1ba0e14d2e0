/* shards.h: opens the weights of a HuggingFace directory, in one file or several.
 *
 * Owner  everything lives until close.
 */
#pragma once

#include "libref/model/safetensors.h"

typedef struct vn_shards {
	size_t            n_files, n;
	vn_safetensors  **file;
	vn_source_tensor *all; /* (n) all tensors of the directory, sorted by name */
	/* Number of tensors that are in a file but not in the index, and the first of their names, for
	 * a warning. */
	size_t            unlisted;
	const char       *unlisted_name[3];
} vn_shards;

/* Opens model.safetensors if it exists, else the shards listed in model.safetensors.index.json,
 * which must be in the same directory. */
vn_status vn_shards_open(const char *dir, vn_shards *s, vn_error *err);
void      vn_shards_close(vn_shards *s); /* s may be zeroed */
