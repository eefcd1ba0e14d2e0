/* gguf_names.h: what a GGUF file calls a tensor, what HuggingFace calls it, and
 * what a converter did to it on the way.
 *
 * The table is that of specs/models.md, "HF weight name to GGUF tensor name"; the
 * changes are those of "Permutation of Llama-architecture q and k" and "qwen35
 * conversions". */
#ifndef VN_LIBREF_MODEL_GGUF_NAMES_H
#define VN_LIBREF_MODEL_GGUF_NAMES_H

#include <stddef.h>
#include <stdint.h>

typedef enum vn_gguf_change {
	VN_GGUF_AS_IT_WAS,
	VN_GGUF_TRANSPOSED,    /* [in,out] written as [out,in] */
	VN_GGUF_ROTATED_Q,     /* rows of each query head interleaved: i, i + K/2 */
	VN_GGUF_ROTATED_K,     /* of each key head */
	VN_GGUF_ONE_MORE,      /* w written as 1 + w */
	VN_GGUF_DECAY,         /* A_log written as -exp(A_log), one number a value head, tiled */
	VN_GGUF_TILED,         /* one row or number a value head, tiled over key heads instead of grouped */
	VN_GGUF_TILED_Z,       /* dv rows a value head, tiled */
	VN_GGUF_TILED_QKV,     /* the same behind the rows of q and k */
	VN_GGUF_TILED_CONV,    /* the same, and (X,1,J) written as (X,J) */
	VN_GGUF_TILED_COLUMNS, /* dv columns a value head, tiled */
} vn_gguf_change;

/* HuggingFace's name for a tensor of an architecture into hf (room bytes), which
 * is the file's own when it has none. Behind `layers` blocks come those of the
 * next-token module, `extra` in number: their tensors get names that every family
 * passes over. */
vn_gguf_change vn_gguf_name(const char *arch, int64_t layers, int64_t extra, const char *name, char *hf, size_t room);

#endif
