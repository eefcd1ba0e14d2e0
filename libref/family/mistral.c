/* mistral.c: Mistral: the decoder without any bias, every layer with the same sliding
 * window; default 4096. */
#include "libref/family/family.h"

#include "libref/family/decoder.h"

const vn_config vn_mistral_sizes = { .V = 32000, .D = 4096, .F = 14336, .L = 32, .H = 32, .G = 8, .context = 131072 };

static vn_status plan_mistral(const char *path, const json_t *config, vn_plan **plan, vn_error *err)
{
	vn_config c = vn_mistral_sizes;
	vn_status st;
	int       window;

	c.norm_eps = 1e-6;
	c.rope.theta = 10000.0;
	c.window = 4096;
	if ((st = vn_config_decoder(path, config, &c, err)) || (st = vn_config_sliding_window(path, config, &c, err)) ||
	    (st = vn_config_layer_types(path, config, &c, err)))
		return st;
	/* transformers uses the window in every layer, whatever layer_types says */
	for (int l = 0; l < c.L; l++) {
		if ((st = vn_config_window(path, &c, l, &window, err)))
			return st;
		if (window != c.window)
			return vn_fail(err, VN_ERR_UNSUPPORTED,
			               "%s: layer_types[%d]: expected the same window in every layer of a mistral model", path, l);
	}
	return vn_plan_decoder(path, &c, plan, err);
}

static const vn_setting obeys[] = { { "sliding_window", VN_NOTHING, "use_sliding_window" }, { 0 } };

static const vn_published published[] = {
	{ "mistral-7b",
	  "{\"architectures\": [\"MistralForCausalLM\"], \"model_type\": \"mistral\", \"vocab_size\": 32000, "
	  "\"hidden_size\": 4096, \"intermediate_size\": 14336, \"num_hidden_layers\": 32, \"num_attention_heads\": 32, "
	  "\"num_key_value_heads\": 8, \"max_position_embeddings\": 32768, \"rms_norm_eps\": 1e-5, \"rope_theta\": "
	  "10000.0, \"sliding_window\": 4096, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}" },
	{ 0 },
};

const vn_family vn_family_mistral = {
	.model_type = "mistral",
	.plan = plan_mistral,
	.obeys = obeys,
	.naming = &vn_decoder_naming,
	.weights = vn_decoder_weights,
	.published = published,
};
