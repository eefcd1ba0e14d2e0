/* qwen3_moe.c: Qwen3's mixtures of experts: Qwen3 with experts in all layers but those that the
 * config lists, or that a step leaves out. */
#include "libref/family/family.h"

#include "libref/family/experts.h"

static bool has_experts(const vn_config *c, int l)
{
	for (size_t i = 0; i < json_array_size(c->dense_layers); i++)
		if (json_integer_value(json_array_get(c->dense_layers, i)) == l)
			return false;
	return (l + 1) % c->sparse_step == 0;
}

static int feed_forward(vn_builder *p, const vn_config *c, int l, int x)
{
	return (has_experts(c, l) ? vn_decoder_experts : vn_decoder_feed_forward)(p, c, l, x);
}

static vn_status read_dense(const char *path, const json_t *j, vn_config *c, vn_error *err)
{
	json_t   *list = json_object_get(j, "mlp_only_layers");
	bool      good = !list || json_is_null(list) || json_is_array(list);
	vn_status st = vn_config_int(path, j, "decoder_sparse_step", 1, 1 << 20, &c->sparse_step, err);

	for (size_t i = 0; i < json_array_size(list); i++)
		good = good && json_is_integer(json_array_get(list, i));
	if (!st && !good)
		st = vn_fail(err, VN_ERR_FORMAT, "%s: mlp_only_layers must be a list of layers", path);
	c->dense_layers = json_is_array(list) ? list : NULL;
	return st;
}

static vn_status plan_qwen3_moe(const char *path, const json_t *config, vn_plan **plan, vn_error *err)
{
	vn_config c = { .V = 151936,
		            .D = 2048,
		            .F = 6144,
		            .L = 24,
		            .H = 32,
		            .G = 4,
		            .context = 32768,
		            .norm_eps = 1e-6,
		            .rope.theta = 10000.0,
		            .qk_norm = true,
		            .window = 4096,
		            .experts = 128,
		            .per_token = 8,
		            .expert_F = 768,
		            .sparse_step = 1 };
	vn_status st;
	bool      bias = false, slides = false;

	if ((st = vn_config_decoder(path, config, &c, err)) ||
	    (st = vn_config_bool(path, config, "attention_bias", &bias, err)) ||
	    (st = vn_config_bool(path, config, "use_sliding_window", &slides, err)) ||
	    (slides && (st = vn_config_sliding_window(path, config, &c, err))) ||
	    (st = vn_config_experts(path, config, &c, err)) ||
	    (st = vn_config_int(path, config, "moe_intermediate_size", 1, 1 << 22, &c.expert_F, err)) ||
	    (st = vn_config_bool(path, config, "norm_topk_prob", &c.normalised, err)) ||
	    (st = read_dense(path, config, &c, err)))
		return st;
	if (!slides)
		c.window = 0; /* else of every layer: transformers reads no max_window_layers here */
	c.qkv_bias = c.o_bias = bias;
	c.feed_forward = feed_forward;
	return vn_plan_decoder(path, &c, plan, err);
}

static const vn_setting obeys[] = {
	{ "use_sliding_window", VN_FALSE, NULL },
	{ "sliding_window", VN_NOTHING, "use_sliding_window" },
	{ "attention_bias", VN_FALSE, NULL },
	{ 0 },
};

static const vn_gguf_field fields[] = {
	{ VN_GGUF_INT, "num_experts", "expert_count", NULL, 0, 0 },
	{ VN_GGUF_INT, "num_experts_per_tok", "expert_used_count", NULL, 0, 0 },
	{ VN_GGUF_INT, "moe_intermediate_size", "expert_feed_forward_length", NULL, 0, 0 },
	/* no key has it: llama.cpp normalises the weights of this architecture */
	{ VN_GGUF_TRUE, "norm_topk_prob", NULL, NULL, 0, 0 },
	{ 0 },
};

static const vn_published published[] = {
	{ "qwen3-30b-a3b",
	  "{\"architectures\": [\"Qwen3MoeForCausalLM\"], \"model_type\": \"qwen3_moe\", \"vocab_size\": 151936, "
	  "\"hidden_size\": 2048, \"intermediate_size\": 6144, \"num_hidden_layers\": 48, \"num_attention_heads\": 32, "
	  "\"num_key_value_heads\": 4, \"head_dim\": 128, \"max_position_embeddings\": 40960, \"rms_norm_eps\": 1e-6, "
	  "\"rope_theta\": 1000000.0, \"hidden_act\": \"silu\", \"attention_bias\": false, \"num_experts\": 128, "
	  "\"num_experts_per_tok\": 8, \"moe_intermediate_size\": 768, \"norm_topk_prob\": true, "
	  "\"decoder_sparse_step\": 1, \"mlp_only_layers\": [], \"use_sliding_window\": false, "
	  "\"tie_word_embeddings\": false}" },
	{ 0 },
};

const vn_family vn_family_qwen3_moe = {
	.model_type = "qwen3_moe",
	.plan = plan_qwen3_moe,
	.obeys = obeys,
	.naming = &vn_decoder_naming,
	.weights = vn_decoder_weights,
	.gguf = { .arch = "qwen3moe", .act = "silu", .fields = fields },
	.published = published,
};
