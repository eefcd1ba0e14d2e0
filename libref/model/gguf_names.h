/* gguf_names.h: the HuggingFace name of a GGUF tensor, and what the converter changed in it.
 *
 * Changes: specs/models.md, 4.4 to 4.6.
 */
#ifndef VN_LIBREF_MODEL_GGUF_NAMES_H
#define VN_LIBREF_MODEL_GGUF_NAMES_H

#include <stddef.h>
#include <stdint.h>

typedef enum vn_gguf_change {
	VN_GGUF_AS_IT_WAS,
	VN_GGUF_TRANSPOSED, /* [in,out] written as [out,in] */
	VN_GGUF_ROTATED_Q,  /* rows of each query head interleaved: i, i + K/2 */
	VN_GGUF_ROTATED_K,  /* same for key heads */
	VN_GGUF_ONE_MORE,   /* w written as 1 + w */
	VN_GGUF_DECAY,      /* A_log written as -exp(A_log), one number per value head, tiled */
	/* one row or number per value head, tiled over key heads instead of grouped */
	VN_GGUF_TILED,
	VN_GGUF_TILED_Z,       /* dv rows per value head, tiled */
	VN_GGUF_TILED_QKV,     /* same, after the rows of q and k */
	VN_GGUF_TILED_CONV,    /* same, and (X,1,J) written as (X,J) */
	VN_GGUF_TILED_COLUMNS, /* dv columns per value head, tiled */
} vn_gguf_change;

/* Writes HuggingFace's name of a tensor to hf (room bytes); the file's own name if it has none.
 * Returns the converter's change. The `layers` blocks are followed by `extra` blocks of the
 * next-token module, whose tensors get names that every family ignores. */
vn_gguf_change vn_gguf_name(const char *arch, int64_t layers, int64_t extra, const char *name, char *hf, size_t room);

#endif
