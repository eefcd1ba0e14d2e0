/* gemma2.c: the text model of Gemma 2.
 *
 * A decoder with a norm before and behind each part, whose norms store their weight minus one.
 * Layers have a window and none in turn. The embedding is multiplied by sqrt(D); scores, and the
 * logits, have a soft cap; queries are scaled by a number of the config.
 */
#include "libref/family/family.h"

#include "libref/base/json.h"
#include "libref/family/decoder.h"

#include <math.h>

typedef struct gemma2 {
	vn_config c;
	double    query_scale;          /* scores are divided by its root */
	double    score_cap, logit_cap; /* 0: none */
} gemma2;

/* A cap, or none if the config says null. */
static vn_status read_cap(const char *path, const json_t *j, const char *key, double *cap, vn_error *err)
{
	if (json_is_null(json_object_get(j, key)))
		*cap = 0.0;
	return vn_config_real(path, j, key, 1e-6, 1e9, cap, err);
}

static vn_status read_config(const char *path, const json_t *j, gemma2 *m, vn_error *err)
{
	bool      bias = false;
	vn_status st;

	*m = (gemma2) { .c = { .V = 256000,
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
		                   .window = 4096 },
		            .query_scale = 256.0,
		            .score_cap = 50.0,
		            .logit_cap = 30.0 };
	if ((st = vn_config_decoder(path, j, &m->c, err)))
		return st;
	m->c.act = VN_GELU_TANH; /* transformers reads no hidden_act here */
	if ((st = vn_config_act(path, j, "hidden_activation", &m->c.act, err)) ||
	    (st = vn_config_sliding_window(path, j, &m->c, err)) || (st = vn_config_layer_types(path, j, &m->c, err)) ||
	    (st = vn_config_bool(path, j, "attention_bias", &bias, err)) ||
	    (st = vn_config_real(path, j, "query_pre_attn_scalar", 1e-6, 1e9, &m->query_scale, err)) ||
	    (st = read_cap(path, j, "attn_logit_softcapping", &m->score_cap, err)) ||
	    (st = read_cap(path, j, "final_logit_softcapping", &m->logit_cap, err)))
		return st;
	m->c.qkv_bias = m->c.o_bias = bias;
	if (m->c.rope.rotary_dim != m->c.K)
		return vn_fail(err, VN_ERR_UNSUPPORTED,
		               "%s: partial_rotary_factor (%d of %d columns) is not supported in this family", path,
		               m->c.rope.rotary_dim, m->c.K);
	return VN_OK;
}

/* Without a list, every other layer has a window, from the first on. */
static vn_status window_of(const char *path, const gemma2 *m, int layer, int *window, vn_error *err)
{
	*window = layer % 2 == 0 ? m->c.window : 0;
	return m->c.layer_types ? vn_config_window(path, &m->c, layer, window, err) : VN_OK;
}

#define LINEAR(x, ...)     vn_decoder_linear(p, l, x, (vn_decoder_product) { __VA_ARGS__ })
#define NORM(x, name, out) vn_decoder_norm(p, c, x, vn_decoder_weight(p, l, name ".weight", c->D, 0), out)

static int attention(vn_builder *p, const gemma2 *m, int l, int window, int x)
{
	const vn_config *c = &m->c;
	const int        D = c->D, H = c->H, G = c->G, K = c->K;
	int              h, q, k, v, ctx, o;

	h = NORM(x, "input_layernorm", VN_POINT_ATTN_NORM);                           /* (T,D) */
	q = LINEAR(h, "self_attn.q_proj", H * K, D, c->qkv_bias, H, VN_POINT_Q_PROJ); /* (T,H,K) */
	k = LINEAR(h, "self_attn.k_proj", G * K, D, c->qkv_bias, G, VN_POINT_K_PROJ); /* (T,G,K) */
	v = LINEAR(h, "self_attn.v_proj", G * K, D, c->qkv_bias, G, VN_POINT_V_PROJ); /* (T,G,K) */
	q = vn_plan_rope(p, q, &c->rope, VN_POINT_Q_ROPE);                            /* (T,H,K) */
	k = vn_plan_rope(p, k, &c->rope, VN_POINT_K_ROPE);                            /* (T,G,K) */
	ctx = vn_plan_attention(p, q, k, v, 1.0 / sqrt(m->query_scale), window);      /* (T,H,K) */
	vn_plan_set(p, ctx, "cap", m->score_cap);
	o = LINEAR(ctx, "self_attn.o_proj", D, H * K, c->o_bias, 0, VN_POINT_ATTN_OUT); /* (T,D) */
	o = NORM(o, "post_attention_layernorm", VN_POINT_ATTN_POST_NORM);               /* (T,D) */
	return vn_plan_add(p, x, o, VN_POINT_ATTN_RESIDUAL);                            /* (T,D) */
}

static int feed_forward(vn_builder *p, const vn_config *c, int l, int x)
{
	const int D = c->D, F = c->F;
	int       h, gate, up, act, down;

	h = NORM(x, "pre_feedforward_layernorm", VN_POINT_MLP_NORM);             /* (T,D) */
	gate = LINEAR(h, "mlp.gate_proj", F, D, false, 0, VN_POINT_GATE_PROJ);   /* (T,F) */
	up = LINEAR(h, "mlp.up_proj", F, D, false, 0, VN_POINT_UP_PROJ);         /* (T,F) */
	vn_plan_act(p, c->act, gate, VN_POINT_GATE_ACT, true);                   /* (T,F) */
	act = vn_plan_gated(p, c->act, gate, up, VN_POINT_MLP_ACT);              /* (T,F) */
	down = LINEAR(act, "mlp.down_proj", D, F, false, 0, VN_POINT_DOWN_PROJ); /* (T,D) */
	down = NORM(down, "post_feedforward_layernorm", VN_POINT_MLP_POST_NORM); /* (T,D) */
	return vn_plan_add(p, x, down, VN_POINT_OUTPUT);                         /* (T,D) */
}

static void head(vn_builder *p, const gemma2 *m, int embedding, int x)
{
	const vn_config *c = &m->c;

	vn_plan_layer(p, -1);
	const int norm = vn_plan_weight(p, "model.norm.weight", 1, (int64_t[]) { c->D });
	const int w = c->tied ? embedding : vn_plan_weight(p, "lm_head.weight", 2, (int64_t[]) { c->V, c->D });
	x = vn_decoder_norm(p, c, x, norm, VN_POINT_FINAL_NORM);                                       /* (T,D) */
	x = vn_plan_linear(p, x, w, -1, 0, m->logit_cap != 0 ? VN_POINT_RAW_LOGITS : VN_POINT_LOGITS); /* (T,V) */
	if (m->logit_cap == 0)
		return;
	x = vn_plan_map(p, VN_OP_SCALE, x, VN_POINT_LOGITS); /* (T,V) */
	vn_plan_set(p, x, "scale", 1.0);
	vn_plan_set(p, x, "cap", m->logit_cap);
}

static vn_status plan_gemma2(const char *path, const json_t *config, vn_plan **plan, vn_error *err)
{
	gemma2      m;
	vn_status   st = read_config(path, config, &m, err);
	vn_builder *p;
	int         window;

	*plan = NULL;
	if (st)
		return st;
	if (!(p = vn_plan_begin(m.c.L, m.c.V, m.c.context)))
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for a plan", path);

	vn_config_lists(p, &m.c);
	const int embedding = vn_plan_weight(p, "model.embed_tokens.weight", 2, (int64_t[]) { m.c.V, m.c.D });
	int       x = vn_plan_map(p, VN_OP_SCALE, vn_plan_embed(p, embedding, VN_POINT_TOKEN_EMBED), VN_POINT_EMBED);
	vn_plan_set(p, x, "scale", (double)sqrtf((float)m.c.D)); /* (T,D); a float32 in transformers, too */

	for (int l = 0; l < m.c.L; l++) {
		if ((st = window_of(path, &m, l, &window, err)))
			break;
		vn_plan_layer(p, l);
		vn_plan_name(p, x, VN_POINT_INPUT); /* (T,D) */
		x = attention(p, &m, l, window, x);
		x = feed_forward(p, &m.c, l, x);
	}
	head(p, &m, embedding, x);

	const vn_status built = vn_plan_finish(p, plan, st ? NULL : err);
	if (st && !built) {
		vn_plan_destroy(*plan);
		*plan = NULL;
	}
	return st ? st : built;
}

static const vn_setting obeys[] = {
	{ "attention_bias", VN_FALSE, NULL },
	{ "sliding_window", VN_NOTHING, "use_sliding_window" },
	{ "query_pre_attn_scalar", VN_NOTHING, NULL },
	{ "attn_logit_softcapping", VN_NOTHING, NULL },
	{ "final_logit_softcapping", VN_NOTHING, NULL },
	{ 0 },
};

static const vn_family_weight weights[] = {
	{ VN_POINT_TOKEN_EMBED, "model.embed_tokens", "token_embd", 0, 0 },
	{ VN_POINT_FINAL_NORM, "model.norm", "output_norm", VN_GGUF_ONE_MORE, 0 },
	{ VN_POINT_RAW_LOGITS, "lm_head", "output", 0, 0 },
	{ VN_POINT_ATTN_NORM, "input_layernorm", "attn_norm", VN_GGUF_ONE_MORE, 0 },
	{ VN_POINT_Q_PROJ, "self_attn.q_proj", "attn_q", 0, 0 },
	{ VN_POINT_K_PROJ, "self_attn.k_proj", "attn_k", 0, 0 },
	{ VN_POINT_V_PROJ, "self_attn.v_proj", "attn_v", 0, 0 },
	{ VN_POINT_ATTN_OUT, "self_attn.o_proj", "attn_output", 0, 0 },
	{ VN_POINT_ATTN_POST_NORM, "post_attention_layernorm", "post_attention_norm", VN_GGUF_ONE_MORE, 0 },
	{ VN_POINT_MLP_NORM, "pre_feedforward_layernorm", "ffn_norm", VN_GGUF_ONE_MORE, 0 },
	{ VN_POINT_GATE_PROJ, "mlp.gate_proj", "ffn_gate", 0, 0 },
	{ VN_POINT_UP_PROJ, "mlp.up_proj", "ffn_up", 0, 0 },
	{ VN_POINT_DOWN_PROJ, "mlp.down_proj", "ffn_down", 0, 0 },
	{ VN_POINT_MLP_POST_NORM, "post_feedforward_layernorm", "post_ffw_norm", VN_GGUF_ONE_MORE, 0 },
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
	.weights = weights,
	.gguf = { .arch = "gemma2", .act = "gelu_pytorch_tanh", .fields = fields, .window = VN_GGUF_WINDOW_FAMILY },
	.published = published,
};
