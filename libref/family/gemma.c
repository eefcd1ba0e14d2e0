/* gemma.c: see gemma.h. */
#include "libref/family/gemma.h"

#include <math.h>

vn_status vn_gemma_read_cap(const char *path, const json_t *o, const char *key, double *cap, vn_error *err)
{
	if (json_is_null(json_object_get(o, key)))
		*cap = 0.0;
	return vn_config_real(path, o, key, 1e-6, 1e9, cap, err);
}

vn_status vn_gemma_read(const char *path, const json_t *o, vn_gemma *m, vn_error *err)
{
	bool      bias = false;
	vn_status st = vn_config_decoder(path, o, &m->c, err);

	if (st)
		return st;
	m->c.act = VN_GELU_TANH; /* transformers reads no hidden_act here */
	if ((st = vn_config_act(path, o, "hidden_activation", &m->c.act, err)) ||
	    (st = vn_config_sliding_window(path, o, &m->c, err)) || (st = vn_config_layer_types(path, o, &m->c, err)) ||
	    (st = vn_config_bool(path, o, "attention_bias", &bias, err)) ||
	    (st = vn_config_real(path, o, "query_pre_attn_scalar", 1e-6, 1e9, &m->query_scale, err)) ||
	    (st = vn_gemma_read_cap(path, o, "final_logit_softcapping", &m->logit_cap, err)))
		return st;
	m->c.qkv_bias = m->c.o_bias = bias;
	if (m->c.rope.rotary_dim != m->c.K)
		return vn_fail(err, VN_ERR_UNSUPPORTED,
		               "%s: partial_rotary_factor (%d of %d columns) is not supported in this family", path,
		               m->c.rope.rotary_dim, m->c.K);
	return VN_OK;
}

#define LINEAR(x, ...)        vn_decoder_linear(p, l, x, (vn_decoder_product) { __VA_ARGS__ })
#define NORM(x, name, n, out) vn_decoder_norm(p, c, x, vn_decoder_weight(p, l, name ".weight", n, 0), out)

/* window 0: none */
static int attention(vn_builder *p, const vn_gemma *m, int l, int window, int x)
{
	const vn_config *c = &m->c;
	const vn_rope   *rope = window && m->local.theta > 0 ? &m->local : &c->rope;
	const int        D = c->D, H = c->H, G = c->G, K = c->K;
	int              h, q, k, v, ctx, o;

	h = NORM(x, "input_layernorm", D, VN_POINT_ATTN_NORM);                        /* (T,D) */
	q = LINEAR(h, "self_attn.q_proj", H * K, D, c->qkv_bias, H, VN_POINT_Q_PROJ); /* (T,H,K) */
	k = LINEAR(h, "self_attn.k_proj", G * K, D, c->qkv_bias, G, VN_POINT_K_PROJ); /* (T,G,K) */
	v = LINEAR(h, "self_attn.v_proj", G * K, D, c->qkv_bias, G, VN_POINT_V_PROJ); /* (T,G,K) */
	if (c->qk_norm) {
		q = NORM(q, "self_attn.q_norm", K, VN_POINT_Q_NORM); /* (T,H,K) */
		k = NORM(k, "self_attn.k_norm", K, VN_POINT_K_NORM); /* (T,G,K) */
	}
	q = vn_plan_rope(p, q, rope, VN_POINT_Q_ROPE);                           /* (T,H,K) */
	k = vn_plan_rope(p, k, rope, VN_POINT_K_ROPE);                           /* (T,G,K) */
	ctx = vn_plan_attention(p, q, k, v, 1.0 / sqrt(m->query_scale), window); /* (T,H,K) */
	vn_plan_set(p, ctx, "cap", m->score_cap);
	o = LINEAR(ctx, "self_attn.o_proj", D, H * K, c->o_bias, 0, VN_POINT_ATTN_OUT); /* (T,D) */
	o = NORM(o, "post_attention_layernorm", D, VN_POINT_ATTN_POST_NORM);            /* (T,D) */
	return vn_plan_add(p, x, o, VN_POINT_ATTN_RESIDUAL);                            /* (T,D) */
}

static int feed_forward(vn_builder *p, const vn_config *c, int l, int x)
{
	const int D = c->D, F = c->F;
	int       h, gate, up, act, down;

	h = NORM(x, "pre_feedforward_layernorm", D, VN_POINT_MLP_NORM);             /* (T,D) */
	gate = LINEAR(h, "mlp.gate_proj", F, D, false, 0, VN_POINT_GATE_PROJ);      /* (T,F) */
	up = LINEAR(h, "mlp.up_proj", F, D, false, 0, VN_POINT_UP_PROJ);            /* (T,F) */
	vn_plan_act(p, c->act, gate, VN_POINT_GATE_ACT, true);                      /* (T,F) */
	act = vn_plan_gated(p, c->act, gate, up, VN_POINT_MLP_ACT);                 /* (T,F) */
	down = LINEAR(act, "mlp.down_proj", D, F, false, 0, VN_POINT_DOWN_PROJ);    /* (T,D) */
	down = NORM(down, "post_feedforward_layernorm", D, VN_POINT_MLP_POST_NORM); /* (T,D) */
	return vn_plan_add(p, x, down, VN_POINT_OUTPUT);                            /* (T,D) */
}

static void head(vn_builder *p, const vn_gemma *m, int embedding, int x)
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

vn_status vn_plan_gemma(const char *path, vn_gemma *m, vn_plan **plan, vn_error *err)
{
	const vn_config *c = &m->c;
	vn_status        st = VN_OK;
	vn_builder      *p;
	int              window;

	*plan = NULL;
	if (!(p = vn_plan_begin(c->L, c->V, c->context)))
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for a plan", path);

	vn_config_lists(p, &m->c);
	const int embedding = vn_plan_weight(p, "model.embed_tokens.weight", 2, (int64_t[]) { c->V, c->D });
	int       x = vn_plan_map(p, VN_OP_SCALE, vn_plan_embed(p, embedding, VN_POINT_TOKEN_EMBED), VN_POINT_EMBED);
	vn_plan_set(p, x, "scale", (double)sqrtf((float)c->D)); /* (T,D); a float32 in transformers, too */

	for (int l = 0; l < c->L; l++) {
		if ((st = vn_config_window(path, c, l, &window, err)))
			break;
		vn_plan_layer(p, l);
		vn_plan_name(p, x, VN_POINT_INPUT); /* (T,D) */
		x = attention(p, m, l, window, x);
		x = feed_forward(p, c, l, x);
	}
	head(p, m, embedding, x);

	const vn_status built = vn_plan_finish(p, plan, st ? NULL : err);
	if (st && !built) {
		vn_plan_destroy(*plan);
		*plan = NULL;
	}
	return st ? st : built;
}

const vn_family_weight vn_gemma_weights[] = {
	{ VN_POINT_TOKEN_EMBED, "model.embed_tokens", "token_embd", 0, 0 },
	{ VN_POINT_FINAL_NORM, "model.norm", "output_norm", VN_GGUF_ONE_MORE, 0 },
	{ VN_POINT_RAW_LOGITS, "lm_head", "output", 0, 0 },
	{ VN_POINT_ATTN_NORM, "input_layernorm", "attn_norm", VN_GGUF_ONE_MORE, 0 },
	{ VN_POINT_Q_PROJ, "self_attn.q_proj", "attn_q", 0, 0 },
	{ VN_POINT_K_PROJ, "self_attn.k_proj", "attn_k", 0, 0 },
	{ VN_POINT_V_PROJ, "self_attn.v_proj", "attn_v", 0, 0 },
	{ VN_POINT_Q_NORM, "self_attn.q_norm", "attn_q_norm", VN_GGUF_ONE_MORE, 0 },
	{ VN_POINT_K_NORM, "self_attn.k_norm", "attn_k_norm", VN_GGUF_ONE_MORE, 0 },
	{ VN_POINT_ATTN_OUT, "self_attn.o_proj", "attn_output", 0, 0 },
	{ VN_POINT_ATTN_POST_NORM, "post_attention_layernorm", "post_attention_norm", VN_GGUF_ONE_MORE, 0 },
	{ VN_POINT_MLP_NORM, "pre_feedforward_layernorm", "ffn_norm", VN_GGUF_ONE_MORE, 0 },
	{ VN_POINT_GATE_PROJ, "mlp.gate_proj", "ffn_gate", 0, 0 },
	{ VN_POINT_UP_PROJ, "mlp.up_proj", "ffn_up", 0, 0 },
	{ VN_POINT_DOWN_PROJ, "mlp.down_proj", "ffn_down", 0, 0 },
	{ VN_POINT_MLP_POST_NORM, "post_feedforward_layernorm", "post_ffw_norm", VN_GGUF_ONE_MORE, 0 },
	{ 0 },
};
