/* decoder.h: builds the plan that Qwen2, Qwen3, Llama, Mistral, Gemma and their mixtures of experts
 * share, and with layers of its own Qwen3.5.
 *
 * A pre-norm decoder: grouped-query attention with rotary positions, a gated feed-forward part, RMS
 * norms (specs/models.md, "The attention + MLP block"). vn_config describes how the families
 * differ: which projections have biases, whether each head's queries and keys are normed, which
 * layers have a window.
 */
#pragma once

#include "libref/family/config.h"
#include "libref/family/family.h"

/* The names of weights: of all families but GPT-2; of those that vn_plan_decoder builds. */
extern const vn_naming        vn_decoder_naming;
extern const vn_family_weight vn_decoder_weights[];
/* Files have a matrix for each expert, or those of all experts in one tensor. */
extern const vn_spelling      vn_decoder_spellings[];
/* The default sizes of Mistral and Mixtral. */
extern const vn_config        vn_mistral_sizes;

/* Builds the plan. Changes c only where it refers to lists (vn_config_lists). */
vn_status vn_plan_decoder(const char *path, vn_config *c, vn_plan **plan, vn_error *err);

/* For the calls below, the layer of a multi-token-prediction head: its weights are
 * "mtp.layers.0.NAME". */
enum { VN_MTP_LAYER = -1 };
/* Writes "model.layers.L.". Returns stem. */
const char *vn_decoder_stem(int layer, char stem[VN_NAME_MAX]);
/* Returns the weight "model.layers.L.NAME" of shape (m) or, if n is not 0, (m,n). */
int         vn_decoder_weight(vn_builder *p, int layer, const char *name, int64_t m, int64_t n);
/* A product with the weight "model.layers.L.NAME.weight" (m,n) and, if it has one, the bias
 * "model.layers.L.NAME.bias". Its value has the shape (T,m) or, if heads is not 0,
 * (T,heads,m/heads). */
typedef struct vn_decoder_product {
	const char *name;
	int64_t     m, n;
	bool        has_bias;
	int         heads;
	vn_point    out;
} vn_decoder_product;
/* Adds the product of x (T,n). */
int vn_decoder_linear(vn_builder *p, int layer, int x, vn_decoder_product y);
/* Adds the norm of x with weight w. */
int vn_decoder_norm(vn_builder *p, const vn_config *c, int x, int w, vn_point out);
/* Adds everything from attn_residual to the output of layer l. */
int vn_decoder_feed_forward(vn_builder *p, const vn_config *c, int l, int x);
/* Adds everything from the output of the last layer to the logits. Returns final_norm. */
int vn_decoder_head(vn_builder *p, const vn_config *c, int embedding, int x);
/* Returns the matrix of the logits. */
int vn_decoder_logits(vn_builder *p, const vn_config *c, int embedding);
