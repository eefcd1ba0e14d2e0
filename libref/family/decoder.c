/* decoder.c: see decoder.h. */
#include "libref/family/decoder.h"

#include <math.h>
#include <stdio.h>

const char *vn_decoder_stem(int layer, char stem[VN_NAME_MAX])
{
	if (layer == VN_MTP_LAYER)
		snprintf(stem, VN_NAME_MAX, VN_MTP_LAYERS "0.");
	else
		snprintf(stem, VN_NAME_MAX, "model.layers.%d.", layer);
	return stem;
}

int vn_decoder_weight(vn_builder *p, int layer, const char *name, int64_t m, int64_t n)
{
	char stem[VN_NAME_MAX], full[2 * VN_NAME_MAX];
	snprintf(full, sizeof full, "%s%s", vn_decoder_stem(layer, stem), name);
	return vn_plan_weight(p, full, n ? 2 : 1, (int64_t[]) { m, n });
}

int vn_decoder_norm(vn_builder *p, const vn_config *c, int x, int w, vn_point out)
{
	return (c->norm_one ? vn_plan_rms_norm_one : vn_plan_rms_norm)(p, x, w, c->norm_eps, out);
}

int vn_decoder_linear(vn_builder *p, int layer, int x, vn_decoder_product y)
{
	char full[VN_NAME_MAX];
	int  w, bias = -1;

	snprintf(full, sizeof full, "%s.weight", y.name);
	w = vn_decoder_weight(p, layer, full, y.m, y.n);
	snprintf(full, sizeof full, "%s.bias", y.name);
	if (y.has_bias)
		bias = vn_decoder_weight(p, layer, full, y.m, 0);
	return vn_plan_linear(p, x, w, bias, y.heads, y.out);
}

#define LINEAR(x, ...)        vn_decoder_linear(p, l, x, (vn_decoder_product) { __VA_ARGS__ })
#define NORM(x, name, n, out) vn_decoder_norm(p, c, x, vn_decoder_weight(p, l, name ".weight", n, 0), out)

/* window 0: none */
static int attention(vn_builder *p, const vn_config *c, int l, int window, int x)
{
	const vn_rope *rope = window && c->local.theta > 0 ? &c->local : &c->rope;
	const int      D = c->D, H = c->H, G = c->G, K = c->K;
	const double   scale = 1.0 / sqrt(c->query_scale > 0 ? c->query_scale : (double)K);
	int            h, q, k, v, ctx, o;

	h = NORM(x, "input_layernorm", D, VN_POINT_ATTN_NORM);                        /* (T,D) */
	q = LINEAR(h, "self_attn.q_proj", H * K, D, c->qkv_bias, H, VN_POINT_Q_PROJ); /* (T,H,K) */
	k = LINEAR(h, "self_attn.k_proj", G * K, D, c->qkv_bias, G, VN_POINT_K_PROJ); /* (T,G,K) */
	v = LINEAR(h, "self_attn.v_proj", G * K, D, c->qkv_bias, G, VN_POINT_V_PROJ); /* (T,G,K) */
	if (c->qk_norm) {
		q = NORM(q, "self_attn.q_norm", c->norm_row ? H * K : K, VN_POINT_Q_NORM); /* (T,H,K) */
		k = NORM(k, "self_attn.k_norm", c->norm_row ? G * K : K, VN_POINT_K_NORM); /* (T,G,K) */
	}
	q = vn_plan_rope(p, q, rope, VN_POINT_Q_ROPE);      /* (T,H,K) */
	k = vn_plan_rope(p, k, rope, VN_POINT_K_ROPE);      /* (T,G,K) */
	ctx = vn_plan_attention(p, q, k, v, scale, window); /* (T,H,K) */
	if (c->score_cap != 0)
		vn_plan_set(p, ctx, "cap", c->score_cap);
	if (c->sinks)
		vn_plan_sinks(p, ctx, vn_decoder_weight(p, l, "self_attn.sinks", H, 0));
	o = LINEAR(ctx, "self_attn.o_proj", D, H * K, c->o_bias, 0, VN_POINT_ATTN_OUT); /* (T,D) */
	if (c->post_norms)
		o = NORM(o, "post_attention_layernorm", D, VN_POINT_ATTN_POST_NORM); /* (T,D) */
	return vn_plan_add(p, x, o, VN_POINT_ATTN_RESIDUAL);                     /* (T,D) */
}

int vn_decoder_feed_forward(vn_builder *p, const vn_config *c, int l, int x)
{
	const int D = c->D, F = c->F;
	int       h, gate, up, act, down;

	h = c->post_norms ? NORM(x, "pre_feedforward_layernorm", D, VN_POINT_MLP_NORM)
	                  : NORM(x, "post_attention_layernorm", D, VN_POINT_MLP_NORM); /* (T,D) */
	gate = LINEAR(h, "mlp.gate_proj", F, D, c->mlp_bias, 0, VN_POINT_GATE_PROJ);   /* (T,F) */
	up = LINEAR(h, "mlp.up_proj", F, D, c->mlp_bias, 0, VN_POINT_UP_PROJ);         /* (T,F) */
	vn_plan_act(p, c->act, gate, VN_POINT_GATE_ACT, true);                         /* (T,F) */
	act = vn_plan_gated(p, c->act, gate, up, VN_POINT_MLP_ACT);                    /* (T,F) */
	down = LINEAR(act, "mlp.down_proj", D, F, c->mlp_bias, 0, VN_POINT_DOWN_PROJ); /* (T,D) */
	if (c->post_norms)
		down = NORM(down, "post_feedforward_layernorm", D, VN_POINT_MLP_POST_NORM); /* (T,D) */
	return vn_plan_add(p, x, down, VN_POINT_OUTPUT);                                /* (T,D) */
}

int vn_decoder_logits(vn_builder *p, const vn_config *c, int embedding)
{
	return c->tied ? embedding : vn_plan_weight(p, "lm_head.weight", 2, (int64_t[]) { c->V, c->D });
}

int vn_decoder_head(vn_builder *p, const vn_config *c, int embedding, int x)
{
	vn_plan_layer(p, -1);
	const int norm = vn_plan_weight(p, "model.norm.weight", 1, (int64_t[]) { c->D });
	const int head = vn_decoder_logits(p, c, embedding), y = vn_decoder_norm(p, c, x, norm, VN_POINT_FINAL_NORM);
	x = vn_plan_linear(p, y, head, -1, 0, c->logit_cap != 0 ? VN_POINT_RAW_LOGITS : VN_POINT_LOGITS); /* (T,V) */
	if (c->logit_cap == 0)
		return y;
	x = vn_plan_map(p, VN_OP_SCALE, x, VN_POINT_LOGITS); /* (T,V) */
	vn_plan_set(p, x, "scale", 1.0);
	vn_plan_set(p, x, "cap", c->logit_cap);
	return y;
}

static vn_status mix_by_attention(const char *path, vn_builder *p, const vn_config *c, int l, int *x, vn_error *err)
{
	int             window = 0;
	const vn_status st = vn_config_window(path, c, l, &window, err);

	if (!st)
		*x = attention(p, c, l, window, *x);
	return st;
}

vn_status vn_plan_decoder(const char *path, vn_config *c, vn_plan **plan, vn_error *err)
{
	vn_status   st = VN_OK;
	vn_builder *p;

	*plan = NULL;
	/* transformers lacks partial rotation in most families: without RoPE scaling it ignores the
	 * factor, with scaling it fails. */
	if (c->rope.rotary_dim != c->K && c->partial_rotary <= 0.0)
		return vn_fail(err, VN_ERR_UNSUPPORTED,
		               "%s: partial_rotary_factor (%d of %d columns) is not supported in this family", path,
		               c->rope.rotary_dim, c->K);
	if (!(p = vn_plan_begin(c->L + (c->predictor ? 1 : 0), c->V, c->context)))
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for a plan", path);

	vn_config_lists(p, c);
	const int embedding = vn_plan_weight(p, "model.embed_tokens.weight", 2, (int64_t[]) { c->V, c->D });
	int       x = vn_plan_embed(p, embedding, c->scaled_embed ? VN_POINT_TOKEN_EMBED : VN_POINT_EMBED); /* (T,D) */

	if (c->scaled_embed) {
		x = vn_plan_map(p, VN_OP_SCALE, x, VN_POINT_EMBED);
		vn_plan_set(p, x, "scale", (double)sqrtf((float)c->D)); /* a float32 in transformers, too */
	}
	const int embed = x;
	for (int l = 0; l < c->L && !st; l++) {
		vn_plan_layer(p, l);
		vn_plan_name(p, x, VN_POINT_INPUT); /* (T,D) */
		if ((st = (c->mixer ? c->mixer : mix_by_attention)(path, p, c, l, &x, err)))
			break;
		x = (c->feed_forward ? c->feed_forward : vn_decoder_feed_forward)(p, c, l, x);
	}
	x = vn_decoder_head(p, c, embedding, x);
	if (c->predictor)
		c->predictor(p, c, embedding, (int[]) { embed, x });

	const vn_status built = vn_plan_finish(p, plan, st ? NULL : err);
	if (st && !built) {
		vn_plan_destroy(*plan);
		*plan = NULL;
	}
	return st ? st : built;
}

#define EXPERTS "mlp.experts."

const vn_spelling vn_decoder_spellings[] = {
	{ "mlp.gate.weight", "block_sparse_moe.gate.weight", 0, 0, false },
	{ EXPERTS "*.gate_proj.weight", "block_sparse_moe.experts.*.w1.weight", 0, 0, false },
	{ EXPERTS "*.down_proj.weight", "block_sparse_moe.experts.*.w2.weight", 0, 0, false },
	{ EXPERTS "*.up_proj.weight", "block_sparse_moe.experts.*.w3.weight", 0, 0, false },
	{ EXPERTS "*.gate_proj.weight", EXPERTS "gate_up_proj", 0, 2, false },
	{ EXPERTS "*.up_proj.weight", EXPERTS "gate_up_proj", 1, 2, false },
	{ EXPERTS "*.down_proj.weight", EXPERTS "down_proj", 0, 1, false },
	/* from GGUF files */
	{ EXPERTS "*.gate_proj.weight", EXPERTS "gate_proj.weight", 0, 1, false },
	{ EXPERTS "*.up_proj.weight", EXPERTS "up_proj.weight", 0, 1, false },
	{ EXPERTS "*.down_proj.weight", EXPERTS "down_proj.weight", 0, 1, false },
	{ 0 },
};

const vn_naming vn_decoder_naming = {
	.stem = "model.",
	.layers = "model.layers.",
	.prefixes = (const char *const[]) { "model.", "", "transformer.", "model.language_model.", "language_model.model.",
	                                    "model.model.", "language_model.", NULL },
	/* Qwen3.5's next-token module; vision towers, of Gemma 3 too; buffers in old files */
	.ignored = (const char *const[]) { "mtp.*", "model.visual.*", "visual.*", "{,model.}vision_tower.*",
	                                   "{,model.}multi_modal_projector.*", "*.rotary_emb.inv_freq", NULL },
	.copy = "lm_head.weight",
	.original = "model.embed_tokens.weight",
	.spellings = vn_decoder_spellings,
};

const vn_family_weight vn_decoder_weights[] = {
	{ VN_POINT_EMBED, "model.embed_tokens", "token_embd", 0, 0 },
	{ VN_POINT_FINAL_NORM, "model.norm", "output_norm", 0, 0 },
	{ VN_POINT_LOGITS, "lm_head", "output", 0, 0 },
	{ VN_POINT_ATTN_NORM, "input_layernorm", "attn_norm", 0, 0 },
	{ VN_POINT_MLP_NORM, "post_attention_layernorm", "ffn_norm", 0, 0 },
	{ VN_POINT_Q_PROJ, "self_attn.q_proj", "attn_q", 0, 0 },
	{ VN_POINT_K_PROJ, "self_attn.k_proj", "attn_k", 0, 0 },
	{ VN_POINT_V_PROJ, "self_attn.v_proj", "attn_v", 0, 0 },
	{ VN_POINT_ATTN_OUT, "self_attn.o_proj", "attn_output", 0, 0 },
	{ VN_POINT_Q_NORM, "self_attn.q_norm", "attn_q_norm", 0, 0 },
	{ VN_POINT_K_NORM, "self_attn.k_norm", "attn_k_norm", 0, 0 },
	{ VN_POINT_ROUTER_LOGITS, "mlp.gate", "ffn_gate_inp", 0, 0 },
	{ VN_POINT_EXPERT_OUT, "mlp.experts.gate_proj", "ffn_gate_exps", 0, 0 },
	{ VN_POINT_EXPERT_OUT, "mlp.experts.up_proj", "ffn_up_exps", 0, 0 },
	{ VN_POINT_EXPERT_OUT, "mlp.experts.down_proj", "ffn_down_exps", 0, 0 },
	{ VN_POINT_EXPERT_OUT, "mlp.experts.gate_up_proj", "ffn_gate_up_exps.weight", 0, true },
	{ VN_POINT_GATE_PROJ, "mlp.gate_proj", "ffn_gate", 0, 0 },
	{ VN_POINT_UP_PROJ, "mlp.up_proj", "ffn_up", 0, 0 },
	{ VN_POINT_DOWN_PROJ, "mlp.down_proj", "ffn_down", 0, 0 },
	{ 0 },
};
