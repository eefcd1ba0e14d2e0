/* olmoe.c: OLMoE: the decoder with experts in every layer, and a norm of queries and keys over all
 * heads of a token together. */
#include "libref/family/family.h"

#include "libref/family/experts.h"

static vn_status plan_olmoe(const char *path, const json_t *config, vn_plan **plan, vn_error *err)
{
	vn_config c = { .V = 50304,
		            .D = 2048,
		            .F = 2048,
		            .L = 16,
		            .H = 16,
		            .context = 4096,
		            .norm_eps = 1e-5,
		            .rope.theta = 10000.0,
		            .qk_norm = true,
		            .norm_row = true,
		            .experts = 64,
		            .per_token = 8 };
	vn_status st;
	bool      bias = false;

	if ((st = vn_config_decoder(path, config, &c, err)) || (st = vn_config_experts(path, config, &c, err)) ||
	    (st = vn_config_bool(path, config, "attention_bias", &bias, err)) ||
	    (st = vn_config_bool(path, config, "norm_topk_prob", &c.normalised, err)))
		return st;
	/* transformers gives these norms weights for D columns */
	if (c.H * c.K != c.D)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: head_dim %d is not supported in this family (expected %d / %d)",
		               path, c.K, c.D, c.H);
	c.qkv_bias = c.o_bias = bias;
	c.expert_F = c.F;
	return vn_plan_decoder(path, &c, plan, err);
}

static const vn_setting obeys[] = { { "attention_bias", VN_FALSE, NULL }, { 0 } };

static const vn_gguf_field fields[] = {
	{ VN_GGUF_INT, "num_experts", "expert_count", NULL, 0, 0 },
	{ VN_GGUF_INT, "num_experts_per_tok", "expert_used_count", NULL, 0, 0 },
	{ 0 },
};

static const vn_published published[] = {
	{ "olmoe-1b-7b",
	  "{\"architectures\": [\"OlmoeForCausalLM\"], \"model_type\": \"olmoe\", \"vocab_size\": 50304, "
	  "\"hidden_size\": 2048, \"intermediate_size\": 1024, \"num_hidden_layers\": 16, \"num_attention_heads\": 16, "
	  "\"num_key_value_heads\": 16, \"max_position_embeddings\": 4096, \"rms_norm_eps\": 1e-5, \"rope_theta\": "
	  "10000.0, \"hidden_act\": \"silu\", \"num_experts\": 64, \"num_experts_per_tok\": 8, "
	  "\"norm_topk_prob\": false, \"tie_word_embeddings\": false}" },
	{ 0 },
};

const vn_family vn_family_olmoe = {
	.model_type = "olmoe",
	.plan = plan_olmoe,
	.obeys = obeys,
	.naming = &vn_decoder_naming,
	.weights = vn_decoder_weights,
	.gguf = { .arch = "olmoe", .act = "silu", .fields = fields },
	.published = published,
};
