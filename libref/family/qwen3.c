/* qwen3.c: Qwen3: the decoder with a norm of each head's queries and
 * keys before rotation, and a head width of its own. */
#include "libref/family/family.h"

#include "libref/family/decoder.h"

static vn_status plan_qwen3(const char *path, const json_t *config, vn_plan **plan, vn_error *err)
{
	vn_config c = { .V = 151936,
		            .D = 4096,
		            .F = 22016,
		            .L = 32,
		            .H = 32,
		            .G = 32,
		            .K = 128,
		            .context = 32768,
		            .norm_eps = 1e-6,
		            .rope.theta = 10000.0,
		            .qk_norm = true };
	vn_status st;
	bool      bias = false;

	if ((st = vn_config_decoder(path, config, &c, err)) || (st = vn_config_qwen_window(path, config, &c, err)) ||
	    (st = vn_config_bool(path, config, "attention_bias", &bias, err)))
		return st;
	c.qkv_bias = c.o_bias = bias;
	return vn_plan_decoder(path, &c, plan, err);
}

static const vn_setting obeys[] = {
	{ "use_sliding_window", VN_FALSE, NULL },
	{ "sliding_window", VN_NOTHING, "use_sliding_window" },
	{ "attention_bias", VN_FALSE, NULL },
	{ 0 },
};

static const vn_gguf_field fields[] = {
	{ VN_GGUF_HAS, "attention_bias", "attn_q.bias", NULL, 0, 0 },
	{ 0 },
};

static const vn_published published[] = {
	{ "qwen3-0.6b",
	  "{\"architectures\": [\"Qwen3ForCausalLM\"], \"model_type\": \"qwen3\", \"vocab_size\": 151936, "
	  "\"hidden_size\": 1024, \"intermediate_size\": 3072, \"num_hidden_layers\": 28, \"num_attention_heads\": 16, "
	  "\"num_key_value_heads\": 8, \"head_dim\": 128, \"max_position_embeddings\": 40960, \"rms_norm_eps\": 1e-6, "
	  "\"rope_theta\": 1000000.0, \"hidden_act\": \"silu\", \"attention_bias\": false, \"tie_word_embeddings\": true, "
	  "\"use_sliding_window\": false}" },
	{ 0 },
};

const vn_family vn_family_qwen3 = {
	.model_type = "qwen3",
	.plan = plan_qwen3,
	.obeys = obeys,
	.naming = &vn_decoder_naming,
	.weights = vn_decoder_weights,
	.gguf = { .arch = "qwen3", .act = "silu", .fields = fields, .window = VN_GGUF_WINDOW_PATTERN },
	.published = published,
};
