/* gguf_config.h: a GGUF file's metadata as the config.json it was made from.
 *
 * Fields are HuggingFace's. What the metadata cannot say (an activation, whether
 * logits share the embedding) is what the architecture's models have, or is seen
 * from the tensors. A key that asks for something else than these models do is
 * refused by name. Keys: specs/models.md, "Metadata keys".
 */
#ifndef VN_LIBREF_MODEL_GGUF_CONFIG_H
#define VN_LIBREF_MODEL_GGUF_CONFIG_H

#include "libref/model/gguf.h"

#include <jansson.h>

/* *config: a new object. */
vn_status vn_gguf_config(const vn_gguf *f, json_t **config, vn_error *err);

/* One key of the file's architecture ("qwen2" of "qwen2.block_count") as a whole
 * number from 0 to 2^31 - 1; an array of equal ones is one number. Absent: *x
 * stays. Refused: anything else. */
vn_status vn_gguf_arch_int(const vn_gguf *f, const char *key, int64_t *x, vn_error *err);
/* "qwen2" into text; refused when the file does not say. */
vn_status vn_gguf_arch(const vn_gguf *f, char *text, size_t room, vn_error *err);

/* The scaling "llama3" from the divisors of a file's rope_freqs.weight: those
 * settings of it, among the usual ones, whose frequencies are the unscaled ones
 * over the divisors. Fields are added to `rope`, which has rope_theta. pairs:
 * R/2. original: the context it was trained at, 0 when not known. */
vn_status vn_gguf_llama3(const vn_gguf_tensor *divisors, json_t *rope, int64_t pairs, int64_t original, vn_error *err);

#endif
