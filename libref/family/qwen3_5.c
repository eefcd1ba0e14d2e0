/* qwen3_5.c: the text model of Qwen3.5, and of its mixtures of experts.
 *
 * A decoder with two kinds of layers. Most mix tokens by Gated DeltaNet: a state of fixed size for
 * each head, which decays and is corrected at every token. Every fourth layer uses attention, and
 * gates its result. All norms but one store their weight minus one; a quarter of each head is
 * rotated. The multimodal config contains this one in its text_config. For text its three rows of
 * positions are equal, and the keys that divide a head among them (mrope_*) have no effect. In
 * mixtures every layer has experts, and a gated one that all tokens go through. If the config asks
 * for it (VN_MTP_KEY), the multi-token-prediction head is layer L.
 */
#include "libref/family/family.h"

#include "libref/family/experts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct qwen3_5 {
	vn_config c;              /* the first member: mix */
	bool      mixture;        /* of experts */
	bool      bias;           /* of q, k, v and o */
	int       nk, nv, dk, dv; /* heads and head widths of the linear layers */
	int       J;              /* taps of the convolution */
	int       interval;       /* without a list, every interval-th layer has full attention */
} qwen3_5;

static vn_status read_linear(const char *path, const json_t *j, qwen3_5 *m, vn_error *err)
{
	vn_status st;

	m->nk = 16, m->nv = 32, m->dk = m->dv = 128, m->J = 4, m->interval = 4;
	if ((st = vn_config_int(path, j, "linear_num_key_heads", 1, 4096, &m->nk, err)) ||
	    (st = vn_config_int(path, j, "linear_num_value_heads", 1, 4096, &m->nv, err)) ||
	    (st = vn_config_int(path, j, "linear_key_head_dim", 1, 4096, &m->dk, err)) ||
	    (st = vn_config_int(path, j, "linear_value_head_dim", 1, 4096, &m->dv, err)) ||
	    (st = vn_config_int(path, j, "linear_conv_kernel_dim", 2, 64, &m->J, err)) ||
	    (st = vn_config_int(path, j, "full_attention_interval", 1, 1 << 20, &m->interval, err)))
		return st;
	if (m->nv % m->nk)
		return vn_fail(err, VN_ERR_FORMAT, "%s: %d linear value heads cannot share %d key heads evenly", path, m->nv,
		               m->nk);
	return VN_OK;
}

/* Refuses values that describe another model, although transformers ignores them. */
static vn_status read_gates(const char *path, const json_t *j, const qwen3_5 *m, vn_error *err)
{
	const json_t *type = json_object_get(j, "output_gate_type");
	const char   *name = json_string_value(type);
	bool          gate = true;
	vn_status     st = vn_config_bool(path, j, "attn_output_gate", &gate, err);

	if (st)
		return st;
	if (!gate)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: attn_output_gate false is not supported", path);
	if (type && !json_is_null(type) && !(name && (strcmp(name, "swish") == 0 || strcmp(name, "silu") == 0)))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: output_gate_type '%s' is not supported", path,
		               name ? name : "(not a string)");
	if (m->c.act != VN_SILU)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: hidden_act '%s' is not supported in this family", path,
		               vn_act_name(m->c.act));
	return VN_OK;
}

static vn_status read_experts(const char *path, const json_t *j, vn_config *c, vn_error *err)
{
	vn_status st;

	c->experts = 256, c->per_token = 8, c->expert_F = c->shared_F = 512;
	c->normalised = c->shared_gate = true;
	if ((st = vn_config_experts(path, j, c, err)) ||
	    (st = vn_config_int(path, j, "moe_intermediate_size", 1, 1 << 22, &c->expert_F, err)))
		return st;
	return vn_config_int(path, j, "shared_expert_intermediate_size", 1, 1 << 22, &c->shared_F, err);
}

static void add_predictor(vn_builder *p, const vn_config *c, int embedding, const int in[2]);

/* transformers ignores the head, and so does the plan, unless the config asks for it. */
static vn_status read_predictor(const char *path, const json_t *j, const json_t *text, vn_config *c, vn_error *err)
{
	bool      asked = false, own = false;
	int       layers = 1;
	vn_status st;

	if ((st = vn_config_bool(path, j, VN_MTP_KEY, &asked, err)) || !asked ||
	    (st = vn_config_int(path, text, "mtp_num_hidden_layers", 0, 1 << 20, &layers, err)) ||
	    (st = vn_config_bool(path, text, "mtp_use_dedicated_embeddings", &own, err)))
		return st;
	if (layers != 1)
		return vn_fail(err, VN_ERR_UNSUPPORTED,
		               "%s: mtp_num_hidden_layers is %d: only a multi-token-prediction head of one layer is supported",
		               path, layers);
	if (own)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: mtp_use_dedicated_embeddings true is not supported", path);
	c->predictor = add_predictor;
	return VN_OK;
}

static vn_status read_config(const char *path, const json_t *j, qwen3_5 *m, vn_error *err)
{
	const bool    mixture = m->mixture;
	const json_t *text;
	bool          tied = false;
	vn_status     st;

	*m = (qwen3_5) { .mixture = mixture,
		             .c = { .V = 248320,
		                    .D = 4096,
		                    .F = 12288,
		                    .L = 32,
		                    .H = 16,
		                    .G = 4,
		                    .K = 256,
		                    .context = 32768,
		                    .norm_eps = 1e-6,
		                    .rope.theta = 10000.0,
		                    .partial_rotary = 0.25,
		                    .norm_one = true } };
	if (mixture)
		m->c.D = 2048, m->c.L = 40, m->c.G = 2;
	if ((st = vn_config_text(path, j, mixture ? "qwen3_5_moe" : "qwen3_5", &text, err)) ||
	    (st = vn_config_decoder(path, text, &m->c, err)) || (st = vn_config_layer_types(path, text, &m->c, err)) ||
	    (st = read_linear(path, text, m, err)) || (st = read_gates(path, text, m, err)) ||
	    (st = vn_config_bool(path, text, "attention_bias", &m->bias, err)) ||
	    (st = vn_config_bool(path, j, "tie_word_embeddings", &tied, err)) ||
	    (st = read_predictor(path, j, text, &m->c, err)))
		return st;
	m->c.tied |= tied; /* publishers put it at either level */
	return mixture ? read_experts(path, text, &m->c, err) : VN_OK;
}

static vn_status is_linear(const char *path, const qwen3_5 *m, int layer, bool *linear, vn_error *err)
{
	const char *type = json_string_value(json_array_get(m->c.layer_types, (size_t)layer));

	*linear = m->c.layer_types ? type && strcmp(type, "linear_attention") == 0 : (layer + 1) % m->interval != 0;
	if (m->c.layer_types && !*linear && !(type && strcmp(type, "full_attention") == 0))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: layer_types[%d]: '%s' is not supported in this family", path,
		               layer, type ? type : "(not a string)");
	return VN_OK;
}

#define WEIGHT(name, m, n)    vn_decoder_weight(p, l, name ".weight", m, n)
#define LINEAR(x, ...)        vn_decoder_linear(p, l, x, (vn_decoder_product) { __VA_ARGS__ })
#define NORM(x, name, n, out) vn_decoder_norm(p, c, x, WEIGHT(name, n, 0), out)

static int delta_net(vn_builder *p, const qwen3_5 *m, int l, int x)
{
	const vn_config *c = &m->c;
	const int        D = c->D, nk = m->nk, nv = m->nv, QK = nk * m->dk, VV = nv * m->dv, X = 2 * QK + VV;
	const double     scale = 1.0 / sqrt((double)m->dk);
	char             conv[VN_NAME_MAX];
	int              h, qkv, z, b, a, mix, q, k, v, beta, g, core, y, o;

	snprintf(conv, sizeof conv, "model.layers.%d.linear_attn.conv1d.weight", l);
	const int taps = vn_plan_weight(p, conv, 3, (int64_t[]) { X, 1, m->J });
	const int A_log = vn_decoder_weight(p, l, "linear_attn.A_log", nv, 0),
			  dt = vn_decoder_weight(p, l, "linear_attn.dt_bias", nv, 0);

	h = NORM(x, "input_layernorm", D, VN_POINT_ATTN_NORM);                                /* (T,D) */
	qkv = LINEAR(h, "linear_attn.in_proj_qkv", X, D, false, 0, VN_POINT_GDN_QKV);         /* (T,X) */
	z = LINEAR(h, "linear_attn.in_proj_z", VV, D, false, nv, VN_POINT_GDN_Z);             /* (T,nv,dv) */
	b = LINEAR(h, "linear_attn.in_proj_b", nv, D, false, 0, VN_POINT_GDN_B);              /* (T,nv) */
	a = LINEAR(h, "linear_attn.in_proj_a", nv, D, false, 0, VN_POINT_GDN_A);              /* (T,nv) */
	mix = vn_plan_causal_conv(p, qkv, taps, VN_POINT_GDN_CONV);                           /* (T,X) */
	q = vn_plan_slice(p, mix, (vn_columns) { X, 0, QK }, nk, VN_POINT_GDN_Q_CONV);        /* (T,nk,dk) */
	k = vn_plan_slice(p, mix, (vn_columns) { X, QK, QK }, nk, VN_POINT_GDN_K_CONV);       /* (T,nk,dk) */
	v = vn_plan_slice(p, mix, (vn_columns) { X, 2 * QK, VV }, nv, VN_POINT_GDN_V);        /* (T,nv,dv) */
	q = vn_plan_l2_norm(p, q, 1e-6, VN_POINT_GDN_Q);                                      /* (T,nk,dk) */
	k = vn_plan_l2_norm(p, k, 1e-6, VN_POINT_GDN_K);                                      /* (T,nk,dk) */
	beta = vn_plan_act(p, VN_SIGMOID, b, VN_POINT_GDN_BETA, false);                       /* (T,nv) */
	g = vn_plan_log_decay(p, a, A_log, dt, VN_POINT_GDN_G);                               /* (T,nv) */
	core = vn_plan_delta_rule(p, (int[]) { q, k, v, g, beta }, scale, VN_POINT_GDN_CORE); /* (T,nv,dv) */
	y = vn_plan_gated_norm(p, core, z, WEIGHT("linear_attn.norm", m->dv, 0), c->norm_eps,
	                       VN_POINT_GDN_NORM);                                 /* (T,nv,dv) */
	o = LINEAR(y, "linear_attn.out_proj", D, VV, false, 0, VN_POINT_ATTN_OUT); /* (T,D) */
	return vn_plan_add(p, x, o, VN_POINT_ATTN_RESIDUAL);                       /* (T,D) */
}

/* *context: its attention */
static int attention(vn_builder *p, const qwen3_5 *m, int l, int x, int *context)
{
	const vn_config *c = &m->c;
	const int        D = c->D, H = c->H, G = c->G, K = c->K;
	const double     scale = 1.0 / sqrt((double)K);
	int              h, qg, q, gate, k, v, ctx, y, o;

	h = NORM(x, "input_layernorm", D, VN_POINT_ATTN_NORM);                            /* (T,D) */
	qg = LINEAR(h, "self_attn.q_proj", 2 * H * K, D, m->bias, H, VN_POINT_QG_PROJ);   /* (T,H,2K) */
	q = vn_plan_slice(p, qg, (vn_columns) { 2 * K, 0, K }, H, VN_POINT_Q_PROJ);       /* (T,H,K) */
	gate = vn_plan_slice(p, qg, (vn_columns) { 2 * K, K, K }, H, VN_POINT_ATTN_GATE); /* (T,H,K) */
	k = LINEAR(h, "self_attn.k_proj", G * K, D, m->bias, G, VN_POINT_K_PROJ);         /* (T,G,K) */
	v = LINEAR(h, "self_attn.v_proj", G * K, D, m->bias, G, VN_POINT_V_PROJ);         /* (T,G,K) */
	q = NORM(q, "self_attn.q_norm", K, VN_POINT_Q_NORM);                              /* (T,H,K) */
	k = NORM(k, "self_attn.k_norm", K, VN_POINT_K_NORM);                              /* (T,G,K) */
	q = vn_plan_rope(p, q, &c->rope, VN_POINT_Q_ROPE);                                /* (T,H,K) */
	k = vn_plan_rope(p, k, &c->rope, VN_POINT_K_ROPE);                                /* (T,G,K) */
	*context = ctx = vn_plan_attention(p, q, k, v, scale, 0);                         /* (T,H,K) */
	y = vn_plan_gated(p, VN_SIGMOID, gate, ctx, VN_POINT_ATTN_GATED);                 /* (T,H,K) */
	o = LINEAR(y, "self_attn.o_proj", D, H * K, m->bias, 0, VN_POINT_ATTN_OUT);       /* (T,D) */
	return vn_plan_add(p, x, o, VN_POINT_ATTN_RESIDUAL);                              /* (T,D) */
}

/* c: that of a qwen3_5, of which it is the first member */
static vn_status mix(const char *path, vn_builder *p, const vn_config *c, int l, int *x, vn_error *err)
{
	const qwen3_5  *m = (const qwen3_5 *)c;
	bool            linear = false;
	int             context;
	const vn_status st = is_linear(path, m, l, &linear, err);

	if (!st)
		*x = linear ? delta_net(p, m, l, *x) : attention(p, m, l, *x, &context);
	return st;
}

/* Row t predicts token t + 1 from the model's final_norm of token t - 1 and the embedding of token
 * t. The first token has none before it: later ones do not see its row. */
static void add_predictor(vn_builder *p, const vn_config *c, int embedding, const int in[2])
{
	const qwen3_5 *m = (const qwen3_5 *)c;
	const int64_t  D = c->D;
	int            e, h, x, attn;

#define OWN(name, rank, ...) vn_plan_weight(p, "mtp." name ".weight", rank, (int64_t[]) { __VA_ARGS__ })
	vn_plan_layer(p, c->L);
	e = vn_decoder_norm(p, c, in[0], OWN("pre_fc_norm_embedding", 1, D), VN_POINT_MTP_EMBED_NORM); /* (T,D) */
	h = vn_plan_delay(p, in[1], VN_POINT_MTP_HIDDEN);                                              /* (T,D) */
	h = vn_decoder_norm(p, c, h, OWN("pre_fc_norm_hidden", 1, D), VN_POINT_MTP_HIDDEN_NORM);       /* (T,D) */
	x = vn_plan_join(p, e, h, VN_POINT_MTP_JOINED);                                                /* (T,2D) */
	x = vn_plan_linear(p, x, OWN("fc", 2, D, 2 * D), -1, 0, VN_POINT_MTP_PROJ);                    /* (T,D) */
	x = attention(p, m, VN_MTP_LAYER, x, &attn);                                                   /* (T,D) */
	vn_plan_set(p, attn, "first", 1);
	x = (c->feed_forward ? c->feed_forward : vn_decoder_feed_forward)(p, c, VN_MTP_LAYER, x); /* (T,D) */
	x = vn_decoder_norm(p, c, x, OWN("norm", 1, D), VN_POINT_MTP_NORM);                       /* (T,D) */
	vn_plan_linear(p, x, vn_decoder_logits(p, c, embedding), -1, 0, VN_POINT_MTP_LOGITS);     /* (T,V) */
#undef OWN
}

static vn_status build(const char *path, const json_t *config, bool mixture, vn_plan **plan, vn_error *err)
{
	qwen3_5         m = { .mixture = mixture };
	const vn_status st = read_config(path, config, &m, err);

	*plan = NULL;
	m.c.mixer = mix;
	return st ? st : vn_plan_decoder(path, &m.c, plan, err);
}

static vn_status plan_qwen3_5(const char *path, const json_t *config, vn_plan **plan, vn_error *err)
{
	return build(path, config, false, plan, err);
}

static vn_status plan_mixture(const char *path, const json_t *config, vn_plan **plan, vn_error *err)
{
	return build(path, config, true, plan, err);
}

static const vn_setting obeys[] = {
	{ "attention_bias", VN_FALSE, NULL }, { VN_MTP_KEY, VN_FALSE, NULL }, { "attn_output_gate", VN_FALSE, NULL }, { 0 }
};

static const vn_family_weight weights[] = {
	{ VN_POINT_EMBED, "model.embed_tokens", "token_embd", 0, 0 },
	{ VN_POINT_FINAL_NORM, "model.norm", "output_norm", VN_GGUF_ONE_MORE, 0 },
	{ VN_POINT_LOGITS, "lm_head", "output", 0, 0 },
	{ VN_POINT_ATTN_NORM, "input_layernorm", "attn_norm", VN_GGUF_ONE_MORE, 0 },
	{ VN_POINT_MLP_NORM, "post_attention_layernorm", "post_attention_norm", VN_GGUF_ONE_MORE, 0 },
	{ VN_POINT_QG_PROJ, "self_attn.q_proj", "attn_q", 0, 0 },
	{ VN_POINT_K_PROJ, "self_attn.k_proj", "attn_k", 0, 0 },
	{ VN_POINT_V_PROJ, "self_attn.v_proj", "attn_v", 0, 0 },
	{ VN_POINT_ATTN_OUT, "self_attn.o_proj", "attn_output", 0, 0 },
	{ VN_POINT_Q_NORM, "self_attn.q_norm", "attn_q_norm", VN_GGUF_ONE_MORE, 0 },
	{ VN_POINT_K_NORM, "self_attn.k_norm", "attn_k_norm", VN_GGUF_ONE_MORE, 0 },
	{ VN_POINT_GDN_QKV, "linear_attn.in_proj_qkv", "attn_qkv", VN_GGUF_TILED_QKV, 0 },
	{ VN_POINT_GDN_Z, "linear_attn.in_proj_z", "attn_gate", VN_GGUF_TILED_Z, 0 },
	{ VN_POINT_GDN_A, "linear_attn.in_proj_a", "ssm_alpha", VN_GGUF_TILED, 0 },
	{ VN_POINT_GDN_B, "linear_attn.in_proj_b", "ssm_beta", VN_GGUF_TILED, 0 },
	{ VN_POINT_GDN_CONV, "linear_attn.conv1d", "ssm_conv1d", VN_GGUF_TILED_CONV, 0 },
	{ VN_POINT_GDN_G, "linear_attn.dt_bias", "ssm_dt.bias", VN_GGUF_TILED, true },
	{ VN_POINT_GDN_G, "linear_attn.A_log", "ssm_a", VN_GGUF_DECAY, true },
	{ VN_POINT_GDN_NORM, "linear_attn.norm", "ssm_norm", 0, 0 },
	{ VN_POINT_ATTN_OUT, "linear_attn.out_proj", "ssm_out", VN_GGUF_TILED_COLUMNS, 0 },
	{ VN_POINT_GATE_PROJ, "mlp.gate_proj", "ffn_gate", 0, 0 },
	{ VN_POINT_UP_PROJ, "mlp.up_proj", "ffn_up", 0, 0 },
	{ VN_POINT_DOWN_PROJ, "mlp.down_proj", "ffn_down", 0, 0 },
	{ VN_POINT_ROUTER_LOGITS, "mlp.gate", "ffn_gate_inp", 0, 0 },
	{ VN_POINT_EXPERT_OUT, "mlp.experts.gate_proj", "ffn_gate_exps", 0, 0 },
	{ VN_POINT_EXPERT_OUT, "mlp.experts.up_proj", "ffn_up_exps", 0, 0 },
	{ VN_POINT_EXPERT_OUT, "mlp.experts.down_proj", "ffn_down_exps", 0, 0 },
	{ VN_POINT_EXPERT_OUT, "mlp.experts.gate_up_proj", "ffn_gate_up_exps.weight", 0, true },
	{ VN_POINT_GATE_PROJ, "mlp.shared_expert.gate_proj", "ffn_gate_shexp", 0, 0 },
	{ VN_POINT_UP_PROJ, "mlp.shared_expert.up_proj", "ffn_up_shexp", 0, 0 },
	{ VN_POINT_SHARED_OUT, "mlp.shared_expert.down_proj", "ffn_down_shexp", 0, 0 },
	{ VN_POINT_SHARED_GATE, "mlp.shared_expert_gate", "ffn_gate_inp_shexp", VN_GGUF_ONE_ROW, 0 },
	{ VN_POINT_MTP_EMBED_NORM, "mtp.pre_fc_norm_embedding", "nextn.enorm", VN_GGUF_ONE_MORE, 0 },
	{ VN_POINT_MTP_HIDDEN_NORM, "mtp.pre_fc_norm_hidden", "nextn.hnorm", VN_GGUF_ONE_MORE, 0 },
	{ VN_POINT_MTP_PROJ, "mtp.fc", "nextn.eh_proj", 0, 0 },
	{ VN_POINT_MTP_NORM, "mtp.norm", "nextn.shared_head_norm", VN_GGUF_ONE_MORE, 0 },
	{ 0 },
};

/* Models without experts omit the first four. */
static const vn_gguf_field fields[] = {
	{ VN_GGUF_INT, "num_experts", "expert_count", NULL, 0, 0 },
	{ VN_GGUF_INT, "num_experts_per_tok", "expert_used_count", NULL, 0, 0 },
	{ VN_GGUF_INT, "moe_intermediate_size", "expert_feed_forward_length", NULL, 0, 0 },
	{ VN_GGUF_INT, "shared_expert_intermediate_size", "expert_shared_feed_forward_length", NULL, 0, 0 },
	{ VN_GGUF_INT, "linear_conv_kernel_dim", "ssm.conv_kernel", NULL, 0, 0 },
	{ VN_GGUF_INT, "linear_key_head_dim", "ssm.state_size", NULL, 0, 0 },
	{ VN_GGUF_INT, "linear_num_key_heads", "ssm.group_count", NULL, 0, 0 },
	{ VN_GGUF_INT, "linear_num_value_heads", "ssm.time_step_rank", NULL, 0, 0 },
	{ VN_GGUF_QUOTIENT, "linear_value_head_dim", "ssm.inner_size", "ssm.time_step_rank", 0, 0 },
	{ VN_GGUF_INT, "full_attention_interval", "full_attention_interval", NULL, 4, 0 },
	{ VN_GGUF_HAS, "attention_bias", "attn_q.bias", NULL, 0, 0 },
	{ 0 },
};

static const vn_published published[] = {
	{ "qwen3.5-0.8b",
	  "{\"architectures\": [\"Qwen3_5ForCausalLM\"], \"model_type\": \"qwen3_5_text\", \"vocab_size\": 248320, "
	  "\"hidden_size\": 1024, \"intermediate_size\": 3584, \"num_hidden_layers\": 24, \"num_attention_heads\": 8, "
	  "\"num_key_value_heads\": 2, \"head_dim\": 256, \"linear_num_key_heads\": 16, \"linear_num_value_heads\": 16, "
	  "\"linear_key_head_dim\": 128, \"linear_value_head_dim\": 128, \"linear_conv_kernel_dim\": 4, "
	  "\"full_attention_interval\": 4, \"max_position_embeddings\": 262144, \"rms_norm_eps\": 1e-6, "
	  "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 10000000.0, \"partial_rotary_factor\": "
	  "0.25}, \"hidden_act\": \"silu\", \"tie_word_embeddings\": true}" },
	{ 0 },
};

/* the multimodal config, which contains the other */
const vn_family vn_family_qwen3_5 = {
	.model_type = "qwen3_5",
	.plan = plan_qwen3_5,
	.recurrent = true,
	.obeys = obeys,
	.naming = &vn_decoder_naming,
	.weights = weights,
};

const vn_family vn_family_qwen3_5_text = {
	.model_type = "qwen3_5_text",
	.plan = plan_qwen3_5,
	.recurrent = true,
	.obeys = obeys,
	.naming = &vn_decoder_naming,
	.weights = weights,
	.gguf = { .arch = "qwen35", .act = "silu", .fields = fields + 4, .window = VN_GGUF_WINDOW_PATTERN },
	.published = published,
};

/* mixtures of experts: likewise */
const vn_family vn_family_qwen3_5_moe = {
	.model_type = "qwen3_5_moe",
	.plan = plan_mixture,
	.recurrent = true,
	.obeys = obeys,
	.naming = &vn_decoder_naming,
	.weights = weights,
};

const vn_family vn_family_qwen3_5_moe_text = {
	.model_type = "qwen3_5_moe_text",
	.plan = plan_mixture,
	.recurrent = true,
	.obeys = obeys,
	.naming = &vn_decoder_naming,
	.weights = weights,
	.gguf = { .arch = "qwen35moe", .act = "silu", .fields = fields },
};
