/* gemma.c: see gemma.h. */
#include "libref/family/gemma.h"

vn_status vn_gemma_read_cap(const char *path, const json_t *o, const char *key, double *cap, vn_error *err)
{
	if (json_is_null(json_object_get(o, key)))
		*cap = 0.0;
	return vn_config_real(path, o, key, 1e-6, 1e9, cap, err);
}

vn_status vn_gemma_read(const char *path, const json_t *o, vn_config *c, vn_error *err)
{
	bool      bias = false;
	vn_status st = vn_config_decoder(path, o, c, err);

	if (st)
		return st;
	c->act = VN_GELU_TANH; /* transformers reads no hidden_act here */
	if ((st = vn_config_act(path, o, "hidden_activation", &c->act, err)) ||
	    (st = vn_config_sliding_window(path, o, c, err)) || (st = vn_config_layer_types(path, o, c, err)) ||
	    (st = vn_config_bool(path, o, "attention_bias", &bias, err)) ||
	    (st = vn_config_real(path, o, "query_pre_attn_scalar", 1e-6, 1e9, &c->query_scale, err)) ||
	    (st = vn_gemma_read_cap(path, o, "final_logit_softcapping", &c->logit_cap, err)))
		return st;
	c->qkv_bias = c->o_bias = bias;
	return VN_OK;
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
