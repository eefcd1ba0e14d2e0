/* gemma3.c: the text model of Gemma 3.
 *
 * Gemma 2 without the cap of scores, with norms of each head's queries and keys. All layers but
 * every sixth have a window, and rotate by a RoPE of their own. The multimodal config contains this
 * one in its text_config.
 */
#include "libref/family/gemma.h"

#include "libref/base/json.h"

#include <stdio.h>

/* Returns a copy of the config, with the RoPE of one kind of layers as that of all. transformers 5
 * has an object by kind; 4 has a base for each, and rope_scaling for layers without a window. A
 * flat object, which transformers does not read, is of layers without a window: GGUF files. */
static json_t *config_of_kind(const json_t *o, const char *kind, bool local)
{
	json_t *copy = json_copy((json_t *)(size_t)o), *rope = json_object_get(o, "rope_parameters");
	json_t *own = json_object_get(rope, kind);

	if (own || local || json_object_get(rope, "sliding_attention"))
		json_object_del(copy, "rope_parameters");
	if (own)
		json_object_set(copy, "rope_parameters", own);
	if (!local)
		return copy;
	json_object_del(copy, "rope_scaling");
	json_object_del(copy, "rope_theta");
	if (vn_json_field(o, "rope_local_base_freq"))
		json_object_set(copy, "rope_theta", json_object_get(o, "rope_local_base_freq"));
	return copy;
}

static vn_status read_local_rope(const char *path, const json_t *o, vn_config *c, vn_error *err)
{
	VN_OWNED json_t *copy = config_of_kind(o, "sliding_attention", true);
	int              context = 131072;
	vn_status        st = copy ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "%s: no memory", path);

	c->local = (vn_rope) { .theta = 10000.0, .rotary_dim = c->K };
	if (!st && !(st = vn_config_int(path, o, "max_position_embeddings", 1, 1 << 30, &context, err)))
		st = vn_config_rope(path, copy, context, 1.0, &c->local, err);
	if (!st && (c->local.type == VN_ROPE_LONGROPE || c->local.rotary_dim != c->K))
		st = vn_fail(err, VN_ERR_UNSUPPORTED,
		             "%s: rope_parameters.sliding_attention: longrope or a partial_rotary_factor is not supported",
		             path);
	return st;
}

/* transformers fails on a layer with a window that the config does not give. */
static vn_status check_window(const char *path, const vn_config *c, vn_error *err)
{
	return c->window || c->layer_types || c->full_every == 1
	           ? VN_OK
	           : vn_fail(err, VN_ERR_UNSUPPORTED, "%s: sliding_window null is not supported in this family", path);
}

static vn_status read_config(const char *path, const json_t *j, vn_config *c, vn_error *err)
{
	const json_t *o;
	bool          tied = false;
	vn_status     st = vn_config_text(path, j, "gemma3", &o, err);

	if (st)
		return st;
	json_t *global = config_of_kind(o, "full_attention", false);
	st = global ? vn_gemma_read(path, global, c, err) : vn_fail(err, VN_ERR_NOMEM, "%s: no memory", path);
	json_decref(global);
	if (st || (st = vn_config_int(path, o, "sliding_window_pattern", 1, 1 << 20, &c->full_every, err)) ||
	    (st = read_local_rope(path, o, c, err)) || (st = check_window(path, c, err)) ||
	    (st = vn_config_bool(path, j, "tie_word_embeddings", &tied, err)))
		return st;
	if (o != j)
		c->tied |= tied; /* at either level */
	return VN_OK;
}

static vn_status plan_gemma3(const char *path, const json_t *config, vn_plan **plan, vn_error *err)
{
	vn_config c = { .V = 262208,
		            .D = 2304,
		            .F = 9216,
		            .L = 26,
		            .H = 8,
		            .G = 4,
		            .K = 256,
		            .context = 131072,
		            .norm_eps = 1e-6,
		            .rope.theta = 1e6,
		            .tied = true,
		            .norm_one = true,
		            .qk_norm = true,
		            .window = 4096,
		            .full_every = 6,
		            .post_norms = true,
		            .scaled_embed = true,
		            .query_scale = 256.0 };
	vn_status st = read_config(path, config, &c, err);

	*plan = NULL;
	return st ? st : vn_plan_decoder(path, &c, plan, err);
}

static const vn_setting obeys[] = {
	{ "attention_bias", VN_FALSE, NULL },
	{ "sliding_window", VN_NOTHING, "use_sliding_window" },
	{ "query_pre_attn_scalar", VN_NOTHING, NULL },
	{ "final_logit_softcapping", VN_NOTHING, NULL },
	{ 0 },
};

static const vn_gguf_field fields[] = {
	{ VN_GGUF_MAYBE, "final_logit_softcapping", "final_logit_softcapping", NULL, 0, 0 },
	{ VN_GGUF_MAYBE, "rope_local_base_freq", "rope.freq_base_swa", NULL, 0, 0 },
	{ VN_GGUF_INT, "sliding_window", "attention.sliding_window", NULL, 0, 0 },
	{ VN_GGUF_INT, "sliding_window_pattern", "attention.sliding_window_pattern", NULL, 6, 0 },
	/* no key has it: llama.cpp takes the width of a head, or in the model of 27e9 weights D/H */
	{ VN_GGUF_INT, "query_pre_attn_scalar", "attention.key_length", NULL, 0, 0 },
	{ VN_GGUF_QUOTIENT, "query_pre_attn_scalar", "embedding_length", "attention.head_count", 0, 62 },
	{ 0 },
};

static const vn_published published[] = {
	{ "gemma-3-4b",
	  "{\"architectures\": [\"Gemma3ForCausalLM\"], \"model_type\": \"gemma3_text\", \"vocab_size\": 262208, "
	  "\"hidden_size\": 2560, \"intermediate_size\": 10240, \"num_hidden_layers\": 34, \"num_attention_heads\": 8, "
	  "\"num_key_value_heads\": 4, \"head_dim\": 256, \"max_position_embeddings\": 131072, \"rms_norm_eps\": 1e-6, "
	  "\"rope_theta\": 1000000.0, \"rope_local_base_freq\": 10000.0, \"rope_scaling\": {\"rope_type\": \"linear\", "
	  "\"factor\": 8.0}, \"sliding_window\": 1024, \"sliding_window_pattern\": 6, \"query_pre_attn_scalar\": 256, "
	  "\"hidden_activation\": \"gelu_pytorch_tanh\", \"attention_bias\": false, \"tie_word_embeddings\": true}" },
	{ 0 },
};

/* the multimodal config, which contains the other */
const vn_family vn_family_gemma3 = {
	.model_type = "gemma3",
	.plan = plan_gemma3,
	.obeys = obeys,
	.naming = &vn_decoder_naming,
	.weights = vn_gemma_weights,
};

const vn_family vn_family_gemma3_text = {
	.model_type = "gemma3_text",
	.plan = plan_gemma3,
	.obeys = obeys,
	.naming = &vn_decoder_naming,
	.weights = vn_gemma_weights,
	.gguf = { .arch = "gemma3", .act = "gelu_pytorch_tanh", .fields = fields, .window = VN_GGUF_WINDOW_FAMILY },
	.published = published,
};
