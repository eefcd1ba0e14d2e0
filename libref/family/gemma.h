/* gemma.h: what Gemma 2 and Gemma 3 share: the decoder with a norm before and behind each part,
 * whose norms store their weight minus one. Most layers have a window. The embedding is multiplied
 * by sqrt(D); scores, and the logits, may have a soft cap; queries are scaled by a number of the
 * config (specs/models.md, "Gemma").
 */
#pragma once

#include "libref/family/decoder.h"

extern const vn_family_weight vn_gemma_weights[];

/* Reads what both spell alike; c holds the defaults. */
vn_status vn_gemma_read(const char *path, const json_t *o, vn_config *c, vn_error *err);
/* Reads a soft cap; null: none. */
vn_status vn_gemma_read_cap(const char *path, const json_t *o, const char *key, double *cap, vn_error *err);
