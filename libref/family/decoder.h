/* decoder.h: the page that Qwen2, Qwen3, Llama and Mistral share, and what Qwen3.5 has of it.
 *
 * A pre-norm decoder: grouped-query attention with rotary positions, a gated
 * feed-forward part, RMS norms (specs/models.md, "The attention + MLP block").
 * Where the families differ, vn_config says so: which projections have biases,
 * whether each head's queries and keys are normed, which layers have a window.
 */
#ifndef VN_LIBREF_PLAN_DECODER_H
#define VN_LIBREF_PLAN_DECODER_H

#include "libref/family/config.h"

/* Of c only what a plan says of its own lists is changed (vn_config_lists). */
vn_status vn_plan_decoder(const char *path, vn_config *c, vn_plan **plan, vn_error *err);

/* "model.layers.L.NAME", of shape (m) or, with n, (m,n). */
int vn_decoder_weight(vn_builder *p, int layer, const char *name, int64_t m, int64_t n);
/* Norm by weight w. */
int vn_decoder_norm(vn_builder *p, const vn_config *c, int x, int w, vn_point out);
/* From attn_residual to the output of layer l. */
int vn_decoder_feed_forward(vn_builder *p, const vn_config *c, int l, int x);
/* From the output of the last layer to the logits. */
void vn_decoder_head(vn_builder *p, const vn_config *c, int embedding, int x);

#endif
