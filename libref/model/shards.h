/* shards.h: the weights of a HuggingFace directory, in one file or many.
 *
 * Owner  everything lives until close.
 */
#ifndef VN_LIBREF_MODEL_SHARDS_H
#define VN_LIBREF_MODEL_SHARDS_H

#include "libref/model/safetensors.h"

typedef struct vn_shards {
	size_t           n_files, n;
	vn_safetensors **file;
	/* Every tensor the directory offers, sorted by name. */
	struct vn_shard_tensor { const vn_st_tensor *tensor; const char *path; } *all;
	/* Names that are in a file but not in the index, and the first of them; the caller may warn. */
	size_t           unlisted;
	const char      *unlisted_name[3];
} vn_shards;

/* model.safetensors if it is there, else what model.safetensors.index.json
 * lists. Shards must lie in the directory. */
vn_status vn_shards_open(const char *dir, vn_shards *s, vn_error *err);
void      vn_shards_close(vn_shards *s); /* safe on a zeroed one */

#endif
