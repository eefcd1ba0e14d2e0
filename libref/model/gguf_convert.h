/* gguf_convert.h: a tensor of a GGUF file as HuggingFace has it. */
#ifndef VN_LIBREF_MODEL_GGUF_CONVERT_H
#define VN_LIBREF_MODEL_GGUF_CONVERT_H

#include "libref/model/gguf.h"
#include "libref/model/gguf_names.h"

/* What the changes depend on, from the metadata; 0 where an architecture has none. */
typedef struct vn_gguf_heads {
	int64_t query, key; /* H, G */
	int64_t nk, nv, dk; /* of Gated DeltaNet */
} vn_gguf_heads;

/* t, undone. *room: memory the result lies in, for the caller to free; NULL when
 * the tensor stays where it is. Refused: a shape that the change does not fit. */
vn_status vn_gguf_undo(const vn_gguf_tensor *t, vn_gguf_change change, const vn_gguf_heads *h, vn_tensor *out, void **room,
                       vn_error *err);

#endif
