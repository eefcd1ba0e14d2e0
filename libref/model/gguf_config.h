/* gguf_config.h: converts a GGUF file's metadata to the config.json that it was made from.
 *
 * Fields are HuggingFace's. What the metadata does not contain (an activation, whether logits share
 * the embedding) follows from the architecture or from the tensors. A key with a setting that these
 * models do not have is rejected with an error that names it. Keys: specs/models.md,
 * "Metadata".
 */
#pragma once

#include "libref/family/family.h"
#include "libref/model/gguf.h"

#include <jansson.h>

/* Returns the family of a file's models; NULL: none. */
const vn_family *vn_gguf_family_of(const vn_gguf *f, const char *arch);

/* *config: a new object. */
vn_status vn_gguf_config(const vn_gguf *f, json_t **config, vn_error *err);

/* Reads one key of the file's architecture ("block_count" in "qwen2.block_count") as an integer
 * from 0 to 2^31 - 1; an array of equal integers counts as one. If the key is missing, *x is
 * unchanged; anything else is an error. */
vn_status vn_gguf_arch_int(const vn_gguf *f, const char *key, int64_t *x, vn_error *err);
/* Writes the architecture, such as "qwen2", to text; fails if the file does not state it. */
vn_status vn_gguf_arch(const vn_gguf *f, char *text, size_t room, vn_error *err);

/* Finds the settings of "llama3" scaling that explain the divisors in a file's rope_freqs.weight:
 * those, among the usual ones, for which the scaled frequencies are the unscaled ones divided by
 * the divisors. Adds the fields to `rope`, which has rope_theta. pairs: R/2. original: the context
 * of training, 0 if not known. */
vn_status vn_gguf_llama3(const vn_gguf_tensor *divisors, json_t *rope, int64_t pairs, int64_t original, vn_error *err);
