/* gpt_oss.c: gpt-oss: the decoder with experts in every layer, and biases everywhere. Heads have
 * sinks, every other layer has a window; what an expert makes of a token is limited. Files have
 * gate and up of all experts in one tensor, column by column in turn. */
#include "libref/family/family.h"

#include "libref/base/json.h"
#include "libref/family/experts.h"

/* What transformers takes without any setting of RoPE. */
static const char yarn[] = "{\"rope_type\": \"yarn\", \"factor\": 32.0, \"beta_fast\": 32.0, \"beta_slow\": 1.0, "
						   "\"truncate\": false, \"original_max_position_embeddings\": 4096}";

static vn_status read_decoder(const char *path, const json_t *o, vn_config *c, vn_error *err)
{
	VN_OWNED json_t *copy = json_copy((json_t *)(size_t)o);
	vn_status        st = copy ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "%s: no memory", path);

	if (copy && !vn_json_field(o, "rope_parameters") && !vn_json_field(o, "rope_scaling"))
		json_object_set_new(copy, "rope_scaling", vn_json_parse(yarn, 0));
	return st ? st : vn_config_decoder(path, copy, c, err);
}

/* transformers reads neither, and has these values. */
static vn_status check_gate(const char *path, const json_t *o, const vn_config *c, vn_error *err)
{
	double    limit = c->expert_limit;
	vn_status st = vn_config_real(path, o, "swiglu_limit", 0, 1e9, &limit, err);

	if (!st && limit != c->expert_limit)
		st = vn_fail(err, VN_ERR_UNSUPPORTED, "%s: swiglu_limit %g is not supported (expected %g)", path, limit,
		             c->expert_limit);
	if (!st && c->act != VN_SILU)
		st = vn_fail(err, VN_ERR_UNSUPPORTED, "%s: hidden_act '%s' is not supported in this family", path,
		             vn_act_name(c->act));
	return st;
}

static vn_status plan_gpt_oss(const char *path, const json_t *config, vn_plan **plan, vn_error *err)
{
	vn_config c = { .V = 201088,
		            .D = 2880,
		            .F = 2880,
		            .L = 36,
		            .H = 64,
		            .G = 8,
		            .K = 64,
		            .context = 131072,
		            .norm_eps = 1e-5,
		            .rope.theta = 150000.0,
		            .window = 128,
		            .full_every = 2,
		            .sinks = true,
		            .experts = 128,
		            .per_token = 4,
		            .normalised = true,
		            .router = "mlp.router",
		            .expert_bias = true,
		            .expert_limit = 7.0,
		            .expert_shift = 1.0 };
	bool      bias = true;
	vn_status st;

	if ((st = read_decoder(path, config, &c, err)) || (st = vn_config_sliding_window(path, config, &c, err)) ||
	    (st = vn_config_layer_types(path, config, &c, err)) || (st = check_gate(path, config, &c, err)) ||
	    (st = vn_config_bool(path, config, "attention_bias", &bias, err)) ||
	    (st = vn_config_experts(path, config, &c, err)))
		return st;
	c.qkv_bias = c.o_bias = bias;
	c.expert_F = c.F;
	c.act = VN_QUICK_GELU;
	return vn_plan_decoder(path, &c, plan, err);
}

static const vn_setting obeys[] = {
	{ "attention_bias", VN_FALSE, NULL },
	{ "sliding_window", VN_NOTHING, "use_sliding_window" },
	{ 0 },
};

#define EXPERTS "mlp.experts."

static const vn_spelling spellings[] = {
	{ EXPERTS "*.gate_proj.weight", EXPERTS "gate_up_proj", 0, 2, true },
	{ EXPERTS "*.up_proj.weight", EXPERTS "gate_up_proj", 1, 2, true },
	{ EXPERTS "*.down_proj.weight", EXPERTS "down_proj", 0, 1, true },
	{ EXPERTS "*.gate_proj.bias", EXPERTS "gate_up_proj_bias", 0, 2, true },
	{ EXPERTS "*.up_proj.bias", EXPERTS "gate_up_proj_bias", 1, 2, true },
	{ EXPERTS "*.down_proj.bias", EXPERTS "down_proj_bias", 0, 1, true },
	/* from GGUF files */
	{ EXPERTS "*.gate_proj.weight", EXPERTS "gate_proj.weight", 0, 1, false },
	{ EXPERTS "*.up_proj.weight", EXPERTS "up_proj.weight", 0, 1, false },
	{ EXPERTS "*.down_proj.weight", EXPERTS "down_proj.weight", 0, 1, false },
	{ EXPERTS "*.gate_proj.bias", EXPERTS "gate_proj.bias", 0, 1, false },
	{ EXPERTS "*.up_proj.bias", EXPERTS "up_proj.bias", 0, 1, false },
	{ EXPERTS "*.down_proj.bias", EXPERTS "down_proj.bias", 0, 1, false },
	{ 0 },
};

static const vn_naming naming = {
	.stem = "model.",
	.layers = "model.layers.",
	.prefixes = (const char *const[]) { "model.", "", NULL },
	.ignored = (const char *const[]) { NULL },
	.copy = "lm_head.weight",
	.original = "model.embed_tokens.weight",
	.spellings = spellings,
};

static const vn_family_weight weights[] = {
	{ VN_POINT_EMBED, "model.embed_tokens", "token_embd", 0, 0 },
	{ VN_POINT_FINAL_NORM, "model.norm", "output_norm", 0, 0 },
	{ VN_POINT_LOGITS, "lm_head", "output", 0, 0 },
	{ VN_POINT_ATTN_NORM, "input_layernorm", "attn_norm", 0, 0 },
	{ VN_POINT_MLP_NORM, "post_attention_layernorm", "post_attention_norm", 0, 0 },
	{ VN_POINT_Q_PROJ, "self_attn.q_proj", "attn_q", 0, 0 },
	{ VN_POINT_K_PROJ, "self_attn.k_proj", "attn_k", 0, 0 },
	{ VN_POINT_V_PROJ, "self_attn.v_proj", "attn_v", 0, 0 },
	{ VN_POINT_ATTN_CONTEXT, "self_attn.sinks", "attn_sinks.weight", 0, true },
	{ VN_POINT_ATTN_OUT, "self_attn.o_proj", "attn_output", 0, 0 },
	{ VN_POINT_ROUTER_LOGITS, "mlp.router", "ffn_gate_inp", 0, 0 },
	{ VN_POINT_EXPERT_OUT, EXPERTS "gate_proj", "ffn_gate_exps", 0, 0 },
	{ VN_POINT_EXPERT_OUT, EXPERTS "up_proj", "ffn_up_exps", 0, 0 },
	{ VN_POINT_EXPERT_OUT, EXPERTS "down_proj", "ffn_down_exps", 0, 0 },
	{ 0 },
};

static const vn_gguf_field fields[] = {
	{ VN_GGUF_INT, "num_local_experts", "expert_count", NULL, 0, 0 },
	{ VN_GGUF_INT, "num_experts_per_tok", "expert_used_count", NULL, 0, 0 },
	{ VN_GGUF_HAS, "attention_bias", "attn_q.bias", NULL, 0, 0 },
	{ VN_GGUF_YARN_ENDS, "rope_parameters", NULL, NULL, 0, 0 },
	{ 0 },
};

static const vn_published published[] = {
	{ "gpt-oss-20b",
	  "{\"architectures\": [\"GptOssForCausalLM\"], \"model_type\": \"gpt_oss\", \"vocab_size\": 201088, "
	  "\"hidden_size\": 2880, \"intermediate_size\": 2880, \"num_hidden_layers\": 24, \"num_attention_heads\": 64, "
	  "\"num_key_value_heads\": 8, \"head_dim\": 64, \"max_position_embeddings\": 131072, \"rms_norm_eps\": 1e-5, "
	  "\"rope_theta\": 150000, \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 32.0, \"beta_fast\": 32.0, "
	  "\"beta_slow\": 1.0, \"truncate\": false, \"original_max_position_embeddings\": 4096}, "
	  "\"sliding_window\": 128, \"hidden_act\": \"silu\", \"attention_bias\": true, \"num_local_experts\": 32, "
	  "\"num_experts_per_tok\": 4, \"swiglu_limit\": 7.0, \"tie_word_embeddings\": false}" },
	{ 0 },
};

const vn_family vn_family_gpt_oss = {
	.model_type = "gpt_oss",
	.plan = plan_gpt_oss,
	.obeys = obeys,
	.naming = &naming,
	.weights = weights,
	.gguf = { .arch = "gpt-oss", .act = "silu", .fields = fields, .window = VN_GGUF_WINDOW_FAMILY },
	.published = published,
};
