/* mixtral.c: Mixtral: the decoder with experts in every layer, whose weights are normalised and
 * stay in float32. */
#include "libref/family/family.h"

#include "libref/family/experts.h"

static vn_status plan_mixtral(const char *path, const json_t *config, vn_plan **plan, vn_error *err)
{
	vn_config c = vn_mistral_sizes;
	vn_status st;

	c.norm_eps = 1e-5;
	c.rope.theta = 1e6;
	c.experts = 8;
	c.per_token = 2;
	c.normalised = c.wide_weights = true;
	if ((st = vn_config_decoder(path, config, &c, err)) || (st = vn_config_sliding_window(path, config, &c, err)) ||
	    (st = vn_config_experts(path, config, &c, err)))
		return st;
	c.expert_F = c.F;
	return vn_plan_decoder(path, &c, plan, err);
}

static const vn_setting obeys[] = {
	{ "sliding_window", VN_NOTHING, "use_sliding_window" },
	{ 0 },
};

static const vn_gguf_field fields[] = {
	{ VN_GGUF_INT, "num_local_experts", "expert_count", NULL, 0, 0 },
	{ VN_GGUF_INT, "num_experts_per_tok", "expert_used_count", NULL, 0, 0 },
	{ 0 },
};

static const vn_published published[] = {
	{ "mixtral-8x7b",
	  "{\"architectures\": [\"MixtralForCausalLM\"], \"model_type\": \"mixtral\", \"vocab_size\": 32000, "
	  "\"hidden_size\": 4096, \"intermediate_size\": 14336, \"num_hidden_layers\": 32, \"num_attention_heads\": 32, "
	  "\"num_key_value_heads\": 8, \"max_position_embeddings\": 32768, \"rms_norm_eps\": 1e-5, \"rope_theta\": "
	  "1000000.0, \"sliding_window\": null, \"hidden_act\": \"silu\", \"num_local_experts\": 8, "
	  "\"num_experts_per_tok\": 2, \"tie_word_embeddings\": false}" },
	{ 0 },
};

const vn_family vn_family_mixtral = {
	.model_type = "mixtral",
	.plan = plan_mixtral,
	.obeys = obeys,
	.naming = &vn_decoder_naming,
	.weights = vn_decoder_weights,
	.gguf = { .arch = "llama", .act = "silu", .interleaved = true, .fields = fields },
	.published = published,
};
