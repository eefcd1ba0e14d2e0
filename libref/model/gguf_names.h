/* gguf_names.h: the HuggingFace name of a GGUF tensor, and what the converter changed in it.
 *
 * Both are in the family's file (libref/family/family.h).
 */
#ifndef VN_LIBREF_MODEL_GGUF_NAMES_H
#define VN_LIBREF_MODEL_GGUF_NAMES_H

#include "libref/family/family.h"

#include <stddef.h>
#include <stdint.h>

/* Writes HuggingFace's name of a tensor to hf (room bytes); the file's own name if it has none.
 * Returns the converter's change. The `layers` blocks are followed by `extra` blocks of the
 * next-token module, whose tensors get names that every family ignores. */
vn_gguf_change vn_gguf_name(const vn_family *f, int64_t layers, int64_t extra, const char *name, char *hf, size_t room);

#endif
