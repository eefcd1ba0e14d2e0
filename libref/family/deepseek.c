/* deepseek.c: DeepSeek-V2 and V3.
 *
 * Attention is latent: keys and values of all heads are made of one short vector for each token,
 * and so are the queries, if they have a rank. Only the last columns of a head rotate; in keys, all
 * heads share these. Behind the first layers, the feed-forward part is a mixture of experts with a
 * shared one. V2 chooses experts by softmax, V3 by sigmoids with a bias; both can leave out groups.
 */
#include "libref/family/family.h"

#include "libref/base/json.h"
#include "libref/family/experts.h"

#include <math.h>
#include <string.h>

typedef struct deepseek {
	vn_config c;
	bool      third; /* V3 */
	bool      bias;  /* of q_a, kv_a and o */
	int       q_rank, kv_rank;
	int       N, U;  /* width of a head's columns that do not rotate (R: c.K do), of its values */
	int       dense; /* layers without experts */
	double    scale; /* of the scores */
} deepseek;

static bool is_word(const json_t *o, const char *key, const char *word)
{
	const char *is = json_string_value(json_object_get(o, key));
	return is && strcmp(is, word) == 0;
}

static vn_status read_sizes(const char *path, const json_t *o, deepseek *m, vn_error *err)
{
	int       freq = 1;
	vn_status st;

	if ((st = vn_config_int(path, o, "qk_rope_head_dim", 2, 65536, &m->c.K, err)))
		return st;
	const int R = m->c.K;
	if (json_is_null(json_object_get(o, "q_lora_rank")))
		m->q_rank = 0;
	if ((st = vn_config_decoder(path, o, &m->c, err)) ||
	    (st = vn_config_int(path, o, "qk_nope_head_dim", 1, 32768, &m->N, err)) ||
	    (st = vn_config_int(path, o, "v_head_dim", 1, 65536, &m->U, err)) ||
	    (st = vn_config_int(path, o, "q_lora_rank", 1, 1 << 20, &m->q_rank, err)) ||
	    (st = vn_config_int(path, o, "kv_lora_rank", 1, 1 << 20, &m->kv_rank, err)) ||
	    (st = vn_config_bool(path, o, "attention_bias", &m->bias, err)) ||
	    (st = vn_config_int(path, o, "first_k_dense_replace", 0, 1024, &m->dense, err)) ||
	    (st = vn_config_int(path, o, "moe_layer_freq", 1, 1024, &freq, err)))
		return st;
	if (m->c.K != R || m->c.rope.rotary_dim != R)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: %d of %d columns rotate; expected head_dim to be qk_rope_head_dim",
		               path, m->c.rope.rotary_dim, m->c.K);
	if (m->c.G != m->c.H)
		return vn_fail(err, VN_ERR_UNSUPPORTED,
		               "%s: num_key_value_heads %d is not supported (expected %d, as many as heads)", path, m->c.G,
		               m->c.H);
	if (freq != 1)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: moe_layer_freq %d is not supported", path, freq);
	return VN_OK;
}

/* The part of the router that V2's transformers chooses by a word. */
static vn_status read_groups(const char *path, const json_t *o, deepseek *m, vn_error *err)
{
	const char *method = json_string_value(json_object_get(o, "topk_method"));
	const bool  limited = m->third || is_word(o, "topk_method", "group_limited_greedy");
	vn_status   st;

	if (method && !is_word(o, "topk_method", m->third ? "noaux_tc" : limited ? method : "greedy"))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: topk_method '%s' is not supported in this family", path, method);
	if (vn_json_field(o, "scoring_func") && !is_word(o, "scoring_func", m->third ? "sigmoid" : "softmax"))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: scoring_func is not supported (expected '%s')", path,
		               m->third ? "sigmoid" : "softmax");
	if (!limited)
		return VN_OK;
	m->c.best = m->third ? 2 : 1;
	if ((st = vn_config_int(path, o, "n_group", 1, 65536, &m->c.groups, err)) ||
	    (st = vn_config_int(path, o, "topk_group", 1, 65536, &m->c.groups_used, err)))
		return st;
	const int E = m->c.experts, groups = m->c.groups, used = m->c.groups_used;
	if (groups < 1 || E % groups || used < 1 || used > groups || E / groups < m->c.best ||
	    m->c.per_token > E / groups * used)
		return vn_fail(err, VN_ERR_UNSUPPORTED,
		               "%s: %d of %d experts cannot be chosen from %d of %d groups (n_group, topk_group)", path,
		               m->c.per_token, E, used, groups);
	return VN_OK;
}

static vn_status read_experts(const char *path, const json_t *o, deepseek *m, vn_error *err)
{
	int       shared = m->third ? 1 : 2;
	vn_status st;

	if ((st = vn_config_int(path, o, "n_routed_experts", 1, 65536, &m->c.experts, err)) ||
	    (st = vn_config_experts(path, o, &m->c, err)) ||
	    (st = vn_config_int(path, o, "moe_intermediate_size", 1, 1 << 22, &m->c.expert_F, err)) ||
	    (st = vn_config_int(path, o, "n_shared_experts", 1, 1024, &shared, err)) ||
	    (st = vn_config_real(path, o, "routed_scaling_factor", 1e-9, 1e9, &m->c.router_scale, err)) ||
	    (st = vn_config_bool(path, o, "norm_topk_prob", &m->c.normalised, err)) || (st = read_groups(path, o, m, err)))
		return st;
	if (!m->third && m->c.normalised) /* transformers ignores it */
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: norm_topk_prob true is not supported in this family", path);
	m->c.shared_F = m->c.expert_F * shared;
	m->c.shared = "mlp.shared_experts";
	m->c.wide_weights = m->c.wide_logits = true;
	return VN_OK;
}

/* K^-1/2, K the width of a head, times the square of yarn's factor for all columns. */
static double scale_of(const deepseek *m)
{
	const vn_rope *r = &m->c.rope;
	const double   more = r->type != VN_ROPE_DEFAULT && r->mscale_all_dim > 0 && r->factor > 1
	                          ? 0.1 * r->mscale_all_dim * log(r->factor) + 1.0
	                          : 1.0;

	return more * more / sqrt((double)(m->N + m->c.K));
}

#define LINEAR(x, ...)         vn_decoder_linear(p, l, x, (vn_decoder_product) { __VA_ARGS__ })
#define NORM(x, name, n, e, o) vn_plan_rms_norm(p, x, vn_decoder_weight(p, l, name ".weight", n, 0), e, o)
#define EPS                    1e-6 /* of the norms of latents, whatever the config says */

static int attention(vn_builder *p, const deepseek *m, int l, int x)
{
	const int D = m->c.D, H = m->c.H, R = m->c.K, N = m->N, U = m->U, C = m->kv_rank, Q = m->q_rank;
	vn_rope   of_queries = m->c.rope;
	int       h, q, kv, pe, k, v, ctx, o;

	of_queries.first = N;
	h = NORM(x, "input_layernorm", D, m->c.norm_eps, VN_POINT_ATTN_NORM); /* (T,D) */
	if (Q) {
		q = LINEAR(h, "self_attn.q_a_proj", Q, D, m->bias, 0, VN_POINT_Q_A_PROJ);       /* (T,Q) */
		q = NORM(q, "self_attn.q_a_layernorm", Q, EPS, VN_POINT_Q_A_NORM);              /* (T,Q) */
		q = LINEAR(q, "self_attn.q_b_proj", H * (N + R), Q, false, H, VN_POINT_Q_PROJ); /* (T,H,N+R) */
	} else {
		q = LINEAR(h, "self_attn.q_proj", H * (N + R), D, false, H, VN_POINT_Q_PROJ); /* (T,H,N+R) */
	}
	kv = LINEAR(h, "self_attn.kv_a_proj_with_mqa", C + R, D, m->bias, 0, VN_POINT_KV_A_PROJ); /* (T,C+R) */
	v = vn_plan_slice(p, kv, (vn_columns) { C + R, 0, C }, 0, VN_POINT_KV_LATENT);            /* (T,C) */
	pe = vn_plan_slice(p, kv, (vn_columns) { C + R, C, R }, 1, VN_POINT_K_PE);                /* (T,1,R) */
	v = NORM(v, "self_attn.kv_a_layernorm", C, EPS, VN_POINT_KV_A_NORM);                      /* (T,C) */
	kv = LINEAR(v, "self_attn.kv_b_proj", H * (N + U), C, false, H, VN_POINT_KV_B_PROJ);      /* (T,H,N+U) */
	k = vn_plan_slice(p, kv, (vn_columns) { N + U, 0, N }, H, VN_POINT_K_NOPE);               /* (T,H,N) */
	v = vn_plan_slice(p, kv, (vn_columns) { N + U, N, U }, H, VN_POINT_V_PROJ);               /* (T,H,U) */
	q = vn_plan_rope(p, q, &of_queries, VN_POINT_Q_ROPE);                                     /* (T,H,N+R) */
	pe = vn_plan_rope(p, pe, &m->c.rope, VN_POINT_K_PE_ROPE);                                 /* (T,1,R) */
	k = vn_plan_join(p, k, pe, VN_POINT_K_ROPE);                                              /* (T,H,N+R) */
	ctx = vn_plan_attention(p, q, k, v, m->scale, 0);                                         /* (T,H,U) */
	o = LINEAR(ctx, "self_attn.o_proj", D, H * U, m->bias, 0, VN_POINT_ATTN_OUT);             /* (T,D) */
	return vn_plan_add(p, x, o, VN_POINT_ATTN_RESIDUAL);                                      /* (T,D) */
}

static vn_status build(const char *path, deepseek *m, vn_plan **plan, vn_error *err)
{
	vn_builder *p = vn_plan_begin(m->c.L, m->c.V, m->c.context);

	if (!p)
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for a plan", path);
	vn_config_lists(p, &m->c);
	const int embedding = vn_plan_weight(p, "model.embed_tokens.weight", 2, (int64_t[]) { m->c.V, m->c.D });
	int       x = vn_plan_embed(p, embedding, VN_POINT_EMBED); /* (T,D) */

	for (int l = 0; l < m->c.L; l++) {
		vn_plan_layer(p, l);
		vn_plan_name(p, x, VN_POINT_INPUT); /* (T,D) */
		x = attention(p, m, l, x);
		x = (l < m->dense ? vn_decoder_feed_forward : vn_decoder_experts)(p, &m->c, l, x);
	}
	vn_decoder_head(p, &m->c, embedding, x);
	return vn_plan_finish(p, plan, err);
}

static vn_status read_and_build(const char *path, const json_t *o, deepseek *m, vn_plan **plan, vn_error *err)
{
	vn_status st;

	*plan = NULL;
	if ((st = read_sizes(path, o, m, err)) || (st = read_experts(path, o, m, err)))
		return st;
	m->scale = scale_of(m);
	return build(path, m, plan, err);
}

static vn_status plan_v2(const char *path, const json_t *o, vn_plan **plan, vn_error *err)
{
	deepseek  m = { .c = { .V = 102400,
		                   .D = 4096,
		                   .F = 11008,
		                   .L = 32,
		                   .H = 32,
		                   .K = 64,
		                   .context = 2048,
		                   .norm_eps = 1e-6,
		                   .rope = { .theta = 10000.0, .pairs = VN_PAIR_NEIGHBOURS },
		                   .experts = 64,
		                   .expert_F = 1407 },
		            .q_rank = 1536,
		            .kv_rank = 512,
		            .N = 128,
		            .U = 128 };
	vn_status st = vn_config_int(path, o, "num_experts_per_tok", 1, 65536, &m.c.per_token, err);

	if (!st && !m.c.per_token) /* it has no default */
		st = vn_fail(err, VN_ERR_FORMAT, "%s: num_experts_per_tok is missing", path);
	return st ? st : read_and_build(path, o, &m, plan, err);
}

static vn_status plan_v3(const char *path, const json_t *o, vn_plan **plan, vn_error *err)
{
	deepseek  m = { .c = { .V = 129280,
		                   .D = 7168,
		                   .F = 18432,
		                   .L = 61,
		                   .H = 128,
		                   .G = 128,
		                   .K = 64,
		                   .context = 4096,
		                   .norm_eps = 1e-6,
		                   .rope.theta = 10000.0,
		                   .experts = 256,
		                   .per_token = 8,
		                   .expert_F = 2048,
		                   .normalised = true,
		                   .router_sigmoid = true,
		                   .router_bias = true,
		                   .router_scale = 2.5,
		                   .groups = 8,
		                   .groups_used = 4 },
		            .third = true,
		            .q_rank = 1536,
		            .kv_rank = 512,
		            .N = 128,
		            .U = 128,
		            .dense = 3 };
	bool      neighbours = true;
	vn_status st = vn_config_bool(path, o, "rope_interleave", &neighbours, err);

	m.c.rope.pairs = neighbours ? VN_PAIR_SORTED : VN_PAIR_HALVES;
	return st ? st : read_and_build(path, o, &m, plan, err);
}

static const vn_setting obeys[] = {
	{ "attention_bias", VN_FALSE, NULL },
	{ "kv_lora_rank", VN_NOTHING, NULL },
	{ "n_shared_experts", VN_NOTHING, NULL },
	{ "routed_scaling_factor", VN_ONE, NULL },
	{ "first_k_dense_replace", VN_NOTHING, NULL },
	{ "rope_interleave", VN_FALSE, NULL },
	{ 0 },
};

/* transformers, too, leaves out layer 61 of V3, which guesses further tokens. */
static const vn_naming naming = {
	.stem = "model.",
	.layers = "model.layers.",
	.prefixes = (const char *const[]) { "model.", "", NULL },
	.ignored = (const char *const[]) { "*.rotary_emb.inv_freq", "{,model.}layers.61.*", NULL },
	.copy = "lm_head.weight",
	.original = "model.embed_tokens.weight",
	.spellings = vn_decoder_spellings,
};

static const vn_family_weight weights[] = {
	{ VN_POINT_EMBED, "model.embed_tokens", "token_embd", 0, 0 },
	{ VN_POINT_FINAL_NORM, "model.norm", "output_norm", 0, 0 },
	{ VN_POINT_LOGITS, "lm_head", "output", 0, 0 },
	{ VN_POINT_ATTN_NORM, "input_layernorm", "attn_norm", 0, 0 },
	{ VN_POINT_MLP_NORM, "post_attention_layernorm", "ffn_norm", 0, 0 },
	{ VN_POINT_Q_A_PROJ, "self_attn.q_a_proj", "attn_q_a", 0, 0 },
	{ VN_POINT_Q_A_NORM, "self_attn.q_a_layernorm", "attn_q_a_norm", 0, 0 },
	{ VN_POINT_Q_PROJ, "self_attn.q_b_proj", "attn_q_b", 0, 0 },
	{ VN_POINT_Q_PROJ, "self_attn.q_proj", "attn_q", 0, 0 },
	{ VN_POINT_KV_A_PROJ, "self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa", 0, 0 },
	{ VN_POINT_KV_A_NORM, "self_attn.kv_a_layernorm", "attn_kv_a_norm", 0, 0 },
	{ VN_POINT_KV_B_PROJ, "self_attn.kv_b_proj", "attn_kv_b", 0, 0 },
	{ VN_POINT_KV_B_PROJ, "self_attn.kv_b_proj", "attn_k_b", VN_GGUF_LATENT_K, 0 },
	{ VN_POINT_KV_B_PROJ, "self_attn.kv_b_proj", "attn_v_b", VN_GGUF_LATENT_V, 0 },
	{ VN_POINT_ATTN_OUT, "self_attn.o_proj", "attn_output", 0, 0 },
	{ VN_POINT_GATE_PROJ, "mlp.gate_proj", "ffn_gate", 0, 0 },
	{ VN_POINT_UP_PROJ, "mlp.up_proj", "ffn_up", 0, 0 },
	{ VN_POINT_DOWN_PROJ, "mlp.down_proj", "ffn_down", 0, 0 },
	{ VN_POINT_ROUTER_LOGITS, "mlp.gate", "ffn_gate_inp", 0, 0 },
	{ VN_POINT_ROUTER_IDS, "mlp.gate.e_score_correction_bias", "exp_probs_b.bias", 0, true },
	{ VN_POINT_EXPERT_OUT, "mlp.experts.gate_proj", "ffn_gate_exps", 0, 0 },
	{ VN_POINT_EXPERT_OUT, "mlp.experts.up_proj", "ffn_up_exps", 0, 0 },
	{ VN_POINT_EXPERT_OUT, "mlp.experts.down_proj", "ffn_down_exps", 0, 0 },
	{ VN_POINT_EXPERT_OUT, "mlp.experts.gate_up_proj", "ffn_gate_up_exps.weight", 0, true },
	{ VN_POINT_GATE_PROJ, "mlp.shared_experts.gate_proj", "ffn_gate_shexp", 0, 0 },
	{ VN_POINT_UP_PROJ, "mlp.shared_experts.up_proj", "ffn_up_shexp", 0, 0 },
	{ VN_POINT_SHARED_OUT, "mlp.shared_experts.down_proj", "ffn_down_shexp", 0, 0 },
	{ 0 },
};

/* V3 omits the first. */
static const vn_gguf_field fields[] = {
	{ VN_GGUF_WORD, "topk_method", "group_limited_greedy", "expert_group_count", 0, 0 },
	{ VN_GGUF_NULL, "q_lora_rank", "attention.q_lora_rank", NULL, 0, 0 },
	{ VN_GGUF_INT, "kv_lora_rank", "attention.kv_lora_rank", NULL, 0, 0 },
	{ VN_GGUF_INT, "first_k_dense_replace", "leading_dense_block_count", NULL, 0, 0 },
	{ VN_GGUF_INT, "n_routed_experts", "expert_count", NULL, 0, 0 },
	{ VN_GGUF_INT, "num_experts_per_tok", "expert_used_count", NULL, 0, 0 },
	{ VN_GGUF_INT, "n_shared_experts", "expert_shared_count", NULL, 0, 0 },
	{ VN_GGUF_INT, "moe_intermediate_size", "expert_feed_forward_length", NULL, 0, 0 },
	{ VN_GGUF_REAL, "routed_scaling_factor", "expert_weights_scale", NULL, 0, 0 },
	{ VN_GGUF_TRUTH, "norm_topk_prob", "expert_weights_norm", NULL, 0, 0 },
	/* older files lack them, of models with groups and without */
	{ VN_GGUF_INT, "n_group", "expert_group_count", NULL, 0, 0 },
	{ VN_GGUF_INT, "topk_group", "expert_group_used_count", NULL, 0, 0 },
	{ VN_GGUF_YARN_SCALE, "rope_parameters", "rope.scaling.yarn_log_multiplier", NULL, 0, 0 },
	{ 0 },
};

static const vn_published published_v2[] = {
	{ "deepseek-v2-lite",
	  "{\"architectures\": [\"DeepseekV2ForCausalLM\"], \"model_type\": \"deepseek_v2\", \"vocab_size\": 102400, "
	  "\"hidden_size\": 2048, \"intermediate_size\": 10944, \"num_hidden_layers\": 27, \"num_attention_heads\": 16, "
	  "\"num_key_value_heads\": 16, \"q_lora_rank\": null, \"kv_lora_rank\": 512, \"qk_nope_head_dim\": 128, "
	  "\"qk_rope_head_dim\": 64, \"v_head_dim\": 128, \"n_routed_experts\": 64, \"n_shared_experts\": 2, "
	  "\"num_experts_per_tok\": 6, \"moe_intermediate_size\": 1408, \"first_k_dense_replace\": 1, "
	  "\"topk_method\": \"greedy\", \"n_group\": 1, \"topk_group\": 1, \"routed_scaling_factor\": 1.0, "
	  "\"norm_topk_prob\": false, \"scoring_func\": \"softmax\", \"max_position_embeddings\": 163840, "
	  "\"rms_norm_eps\": 1e-6, \"rope_theta\": 10000, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 40, "
	  "\"beta_fast\": 32, \"beta_slow\": 1, \"mscale\": 0.707, \"mscale_all_dim\": 0.707, "
	  "\"original_max_position_embeddings\": 4096}, \"hidden_act\": \"silu\", \"attention_bias\": false, "
	  "\"tie_word_embeddings\": false}" },
	{ 0 },
};

const vn_family vn_family_deepseek_v2 = {
	.model_type = "deepseek_v2",
	.plan = plan_v2,
	.obeys = obeys,
	.naming = &naming,
	.weights = weights,
	.gguf = { .arch = "deepseek2", .act = "silu", .fields = fields, .latent = true, .gating = 1 },
	.published = published_v2,
};

const vn_family vn_family_deepseek_v3 = {
	.model_type = "deepseek_v3",
	.plan = plan_v3,
	.obeys = obeys,
	.naming = &naming,
	.weights = weights,
	.gguf = { .arch = "deepseek2", .act = "silu", .fields = fields + 1, .latent = true, .gating = 2 },
};
