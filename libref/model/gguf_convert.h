/* gguf_convert.h: converts a tensor of a GGUF file to HuggingFace's form. Its name there, and what
 * llama.cpp's converter changed in it, are in the family's file (libref/family/family.h). */
#pragma once

#include "libref/family/family.h"
#include "libref/model/gguf.h"

/* Sizes from the metadata that the conversions depend on; 0 if an architecture has none. */
typedef struct vn_gguf_heads {
	int64_t query, key; /* H, G */
	int64_t nk, nv, dk; /* of Gated DeltaNet */
} vn_gguf_heads;

/* Undoes a converter's change of t. *room: memory of the result, which the caller frees; NULL if
 * the tensor stays where it is. Fails if the change does not fit the shape. */
vn_status vn_gguf_undo(const vn_gguf_tensor *t, vn_gguf_change change, const vn_gguf_heads *h, vn_tensor *out,
                       void **room, vn_error *err);

/* Puts together what a converter split: VN_GGUF_LATENT_K, keys (H,C,N), and VN_GGUF_LATENT_V,
 * values (H,U,C), to (H (N+U), C). Otherwise as vn_gguf_undo. */
vn_status vn_gguf_join_latent(const vn_gguf_tensor *keys, const vn_gguf_tensor *values, vn_tensor *out, void **room,
                              vn_error *err);

/* Writes HuggingFace's name of a tensor to hf (room bytes); the file's own name if it has none.
 * Returns the converter's change. The `layers` blocks are followed by `extra` blocks of the
 * next-token module, whose tensors get names that begin with "mtp.". */
vn_gguf_change vn_gguf_name(const vn_family *f, int64_t layers, int64_t extra, const char *name, char *hf, size_t room);
