/* llama.c: Llama 3.x: the decoder without a window; biases only if the config has them. */
#include "libref/family/family.h"

#include "libref/family/decoder.h"

static vn_status plan_llama(const char *path, const json_t *config, vn_plan **plan, vn_error *err)
{
	vn_config c = {
		.V = 32000, .D = 4096, .F = 11008, .L = 32, .H = 32, .context = 2048, .norm_eps = 1e-6, .rope.theta = 10000.0
	};
	vn_status st;
	bool      bias = false;

	if ((st = vn_config_decoder(path, config, &c, err)) || (st = vn_config_layer_types(path, config, &c, err)) ||
	    (st = vn_config_bool(path, config, "attention_bias", &bias, err)) ||
	    (st = vn_config_bool(path, config, "mlp_bias", &c.mlp_bias, err)))
		return st;
	c.qkv_bias = c.o_bias = bias;
	return vn_plan_decoder(path, &c, plan, err);
}

static const vn_setting obeys[] = { { "attention_bias", VN_FALSE, NULL }, { "mlp_bias", VN_FALSE, NULL }, { 0 } };

static const vn_gguf_field fields[] = {
	{ VN_GGUF_HAS, "attention_bias", "attn_q.bias", NULL, 0, 0 },
	{ VN_GGUF_HAS, "mlp_bias", "ffn_gate.bias", NULL, 0, 0 },
	{ 0 },
};

static const vn_published published[] = {
	{ "llama-3.2-1b",
	  "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"vocab_size\": 128256, "
	  "\"hidden_size\": 2048, \"intermediate_size\": 8192, \"num_hidden_layers\": 16, \"num_attention_heads\": 32, "
	  "\"num_key_value_heads\": 8, \"head_dim\": 64, \"max_position_embeddings\": 131072, \"rms_norm_eps\": 1e-5, "
	  "\"rope_theta\": 500000.0, \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 32.0, \"low_freq_factor\": "
	  "1.0, \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192}, \"hidden_act\": \"silu\", "
	  "\"attention_bias\": false, \"mlp_bias\": false, \"tie_word_embeddings\": true}" },
	{ 0 },
};

const vn_family vn_family_llama = {
	.model_type = "llama",
	.plan = plan_llama,
	.obeys = obeys,
	.naming = &vn_decoder_naming,
	.weights = vn_decoder_weights,
	.gguf = { .arch = "llama", .act = "silu", .interleaved = true, .fields = fields, .window = VN_GGUF_WINDOW_MISTRAL },
	.published = published,
};
