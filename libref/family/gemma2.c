/* gemma2.c: Gemma 2: layers have a window and none in turn; scores and logits have a soft cap. */
#include "libref/family/gemma.h"

static vn_status plan_gemma2(const char *path, const json_t *config, vn_plan **plan, vn_error *err)
{
	vn_config c = { .V = 256000,
		            .D = 2304,
		            .F = 9216,
		            .L = 26,
		            .H = 8,
		            .G = 4,
		            .K = 256,
		            .context = 8192,
		            .norm_eps = 1e-6,
		            .rope.theta = 10000.0,
		            .tied = true,
		            .norm_one = true,
		            .window = 4096,
		            .full_every = 2,
		            .post_norms = true,
		            .scaled_embed = true,
		            .query_scale = 256.0,
		            .score_cap = 50.0,
		            .logit_cap = 30.0 };
	vn_status st;

	if ((st = vn_gemma_read(path, config, &c, err)) ||
	    (st = vn_gemma_read_cap(path, config, "attn_logit_softcapping", &c.score_cap, err)))
		return st;
	return vn_plan_decoder(path, &c, plan, err);
}

static const vn_setting obeys[] = {
	{ "attention_bias", VN_FALSE, NULL },
	{ "sliding_window", VN_NOTHING, "use_sliding_window" },
	{ "query_pre_attn_scalar", VN_NOTHING, NULL },
	{ "attn_logit_softcapping", VN_NOTHING, NULL },
	{ "final_logit_softcapping", VN_NOTHING, NULL },
	{ 0 },
};

static const vn_gguf_field fields[] = {
	{ VN_GGUF_REAL, "attn_logit_softcapping", "attn_logit_softcapping", NULL, 0, 0 },
	{ VN_GGUF_REAL, "final_logit_softcapping", "final_logit_softcapping", NULL, 0, 0 },
	/* no key has it: llama.cpp takes the width of a head, or in the model of 27e9 weights D/H */
	{ VN_GGUF_INT, "query_pre_attn_scalar", "attention.key_length", NULL, 0, 0 },
	{ VN_GGUF_QUOTIENT, "query_pre_attn_scalar", "embedding_length", "attention.head_count", 0, 46 },
	{ 0 },
};

static const vn_published published[] = {
	{ "gemma-2-2b",
	  "{\"architectures\": [\"Gemma2ForCausalLM\"], \"model_type\": \"gemma2\", \"vocab_size\": 256000, "
	  "\"hidden_size\": 2304, \"intermediate_size\": 9216, \"num_hidden_layers\": 26, \"num_attention_heads\": 8, "
	  "\"num_key_value_heads\": 4, \"head_dim\": 256, \"max_position_embeddings\": 8192, \"rms_norm_eps\": 1e-6, "
	  "\"rope_theta\": 10000.0, \"sliding_window\": 4096, \"query_pre_attn_scalar\": 256, "
	  "\"attn_logit_softcapping\": 50.0, \"final_logit_softcapping\": 30.0, "
	  "\"hidden_activation\": \"gelu_pytorch_tanh\", \"attention_bias\": false, \"tie_word_embeddings\": true}" },
	{ 0 },
};

const vn_family vn_family_gemma2 = {
	.model_type = "gemma2",
	.plan = plan_gemma2,
	.obeys = obeys,
	.naming = &vn_decoder_naming,
	.weights = vn_gemma_weights,
	.gguf = { .arch = "gemma2", .act = "gelu_pytorch_tanh", .fields = fields, .window = VN_GGUF_WINDOW_FAMILY },
	.published = published,
};
