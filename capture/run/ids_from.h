/* ids_from.h: takes the token ids of a recording, for a run on the same tokens. */
#pragma once

#include "libref/base/error.h"

#include <stdint.h>

typedef enum vn_ids_part { VN_IDS_PROMPT, VN_IDS_DECODED, VN_IDS_ALL } vn_ids_part;

/* A recording whose ids are read. */
typedef struct vn_ids_source {
	const char *option; /* that names it, for messages */
	const char *path;
	int64_t     row; /* the prompt, of several; -1: not given */
} vn_ids_source;

/* Reads ids from a recording. Decoded tokens are those of the last single-token steps, after step
 * 0. Fails if the recording lacks what is asked for (no ids, no decoded tokens), or holds several
 * prompts and no row is given. The caller frees *ids. */
vn_status vn_ids_from(const vn_ids_source *from, vn_ids_part part, int32_t **ids, int64_t *n, vn_error *err);
/* Fails if `output`, the recording to be written, is the file `path` that an option reads. Either
 * may be NULL. */
vn_status vn_ids_kept(const char *option, const char *output, const char *path, vn_error *err);
