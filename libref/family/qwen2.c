/* qwen2.c: Qwen2 and Qwen2.5: the decoder with biases on q, k and v alone. */
#include "libref/family/family.h"

#include "libref/family/decoder.h"

static vn_status plan_qwen2(const char *path, const json_t *config, vn_plan **plan, vn_error *err)
{
	vn_config c = { .V = 151936,
		            .D = 4096,
		            .F = 22016,
		            .L = 32,
		            .H = 32,
		            .G = 32,
		            .context = 32768,
		            .norm_eps = 1e-6,
		            .rope.theta = 10000.0,
		            .qkv_bias = true };
	vn_status st;

	if ((st = vn_config_decoder(path, config, &c, err)) || (st = vn_config_qwen_window(path, config, &c, err)))
		return st;
	return vn_plan_decoder(path, &c, plan, err);
}

static const vn_setting obeys[] = {
	{ "use_sliding_window", VN_FALSE, NULL },
	{ "sliding_window", VN_NOTHING, "use_sliding_window" },
	{ 0 },
};

static const vn_published published[] = {
	{ "qwen2-0.5b",
	  "{\"architectures\": [\"Qwen2ForCausalLM\"], \"model_type\": \"qwen2\", \"vocab_size\": 151936, "
	  "\"hidden_size\": 896, \"intermediate_size\": 4864, \"num_hidden_layers\": 24, \"num_attention_heads\": 14, "
	  "\"num_key_value_heads\": 2, \"max_position_embeddings\": 32768, \"rms_norm_eps\": 1e-6, \"rope_theta\": "
	  "1000000.0, \"hidden_act\": \"silu\", \"tie_word_embeddings\": true, \"use_sliding_window\": false}" },
	{ 0 },
};

const vn_family vn_family_qwen2 = {
	.model_type = "qwen2",
	.plan = plan_qwen2,
	.obeys = obeys,
	.naming = &vn_decoder_naming,
	.weights = vn_decoder_weights,
	.gguf = { .arch = "qwen2", .act = "silu", .window = VN_GGUF_WINDOW_PATTERN },
	.published = published,
};
