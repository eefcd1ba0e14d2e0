/* decoder.h: the page that Qwen2, Qwen3, Llama and Mistral share.
 *
 * A pre-norm decoder: grouped-query attention with rotary positions, a gated
 * feed-forward part, RMS norms (specs/models.md, "The attention + MLP block").
 * Where the families differ, vn_config says so: which projections have biases,
 * whether each head's queries and keys are normed, which layers have a window.
 */
#ifndef VN_LIBREF_PLAN_DECODER_H
#define VN_LIBREF_PLAN_DECODER_H

#include "libref/model/config.h"

/* Of c only what a plan says of its own lists is changed (vn_config_lists). */
vn_status vn_plan_decoder(const char *path, vn_config *c, vn_plan **plan, vn_error *err);

#endif
