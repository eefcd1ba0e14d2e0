/* gguf_names.c: see gguf_names.h. */
#include "libref/model/gguf_names.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names without ".weight" or ".bias", which both sides share, unless `whole`. Names of a layer omit
 * "blk.N." and the layer's own prefix. */
typedef struct name_row {
	const char    *gguf, *hf;
	vn_gguf_change change;
	bool           whole;
} name_row;

static const name_row trunk[] = {
	{ "token_embd", "model.embed_tokens", 0, 0 },
	{ "output_norm", "model.norm", 0, 0 },
	{ "output", "lm_head", 0, 0 },
	{ 0 },
};
static const name_row qwen35_trunk[] = {
	{ "token_embd", "model.embed_tokens", 0, 0 },
	{ "output_norm", "model.norm", VN_GGUF_ONE_MORE, 0 },
	{ "output", "lm_head", 0, 0 },
	{ 0 },
};
static const name_row gpt2_trunk[] = {
	{ "token_embd", "transformer.wte", 0, 0 },
	{ "position_embd", "transformer.wpe", 0, 0 },
	{ "output_norm", "transformer.ln_f", 0, 0 },
	{ "output", "lm_head", 0, 0 },
	{ 0 },
};

static const name_row decoder[] = {
	{ "attn_norm", "input_layernorm", 0, 0 },    { "ffn_norm", "post_attention_layernorm", 0, 0 },
	{ "attn_q", "self_attn.q_proj", 0, 0 },      { "attn_k", "self_attn.k_proj", 0, 0 },
	{ "attn_v", "self_attn.v_proj", 0, 0 },      { "attn_output", "self_attn.o_proj", 0, 0 },
	{ "attn_q_norm", "self_attn.q_norm", 0, 0 }, { "attn_k_norm", "self_attn.k_norm", 0, 0 },
	{ "ffn_gate", "mlp.gate_proj", 0, 0 },       { "ffn_up", "mlp.up_proj", 0, 0 },
	{ "ffn_down", "mlp.down_proj", 0, 0 },       { 0 },
};
static const name_row llama[] = {
	{ "attn_norm", "input_layernorm", 0, 0 },
	{ "ffn_norm", "post_attention_layernorm", 0, 0 },
	{ "attn_q", "self_attn.q_proj", VN_GGUF_ROTATED_Q, 0 },
	{ "attn_k", "self_attn.k_proj", VN_GGUF_ROTATED_K, 0 },
	{ "attn_v", "self_attn.v_proj", 0, 0 },
	{ "attn_output", "self_attn.o_proj", 0, 0 },
	{ "ffn_gate", "mlp.gate_proj", 0, 0 },
	{ "ffn_up", "mlp.up_proj", 0, 0 },
	{ "ffn_down", "mlp.down_proj", 0, 0 },
	{ 0 },
};
static const name_row qwen35[] = {
	{ "attn_norm", "input_layernorm", VN_GGUF_ONE_MORE, 0 },
	{ "post_attention_norm", "post_attention_layernorm", VN_GGUF_ONE_MORE, 0 },
	{ "attn_q", "self_attn.q_proj", 0, 0 },
	{ "attn_k", "self_attn.k_proj", 0, 0 },
	{ "attn_v", "self_attn.v_proj", 0, 0 },
	{ "attn_output", "self_attn.o_proj", 0, 0 },
	{ "attn_q_norm", "self_attn.q_norm", VN_GGUF_ONE_MORE, 0 },
	{ "attn_k_norm", "self_attn.k_norm", VN_GGUF_ONE_MORE, 0 },
	{ "attn_qkv", "linear_attn.in_proj_qkv", VN_GGUF_TILED_QKV, 0 },
	{ "attn_gate", "linear_attn.in_proj_z", VN_GGUF_TILED_Z, 0 },
	{ "ssm_alpha", "linear_attn.in_proj_a", VN_GGUF_TILED, 0 },
	{ "ssm_beta", "linear_attn.in_proj_b", VN_GGUF_TILED, 0 },
	{ "ssm_conv1d", "linear_attn.conv1d", VN_GGUF_TILED_CONV, 0 },
	{ "ssm_dt.bias", "linear_attn.dt_bias", VN_GGUF_TILED, 1 },
	{ "ssm_a", "linear_attn.A_log", VN_GGUF_DECAY, 1 },
	{ "ssm_norm", "linear_attn.norm", 0, 0 },
	{ "ssm_out", "linear_attn.out_proj", VN_GGUF_TILED_COLUMNS, 0 },
	{ "ffn_gate", "mlp.gate_proj", 0, 0 },
	{ "ffn_up", "mlp.up_proj", 0, 0 },
	{ "ffn_down", "mlp.down_proj", 0, 0 },
	{ 0 },
};
static const name_row gpt2[] = {
	{ "attn_norm", "ln_1", 0, 0 },
	{ "ffn_norm", "ln_2", 0, 0 },
	{ "attn_qkv", "attn.c_attn", VN_GGUF_TRANSPOSED, 0 },
	{ "attn_output", "attn.c_proj", VN_GGUF_TRANSPOSED, 0 },
	{ "ffn_up", "mlp.c_fc", VN_GGUF_TRANSPOSED, 0 },
	{ "ffn_down", "mlp.c_proj", VN_GGUF_TRANSPOSED, 0 },
	{ 0 },
};

static const struct {
	const char     *arch, *layers;
	const name_row *trunk, *layer;
} known[] = {
	{ "gpt2", "transformer.h.", gpt2_trunk, gpt2 },      { "llama", "model.layers.", trunk, llama },
	{ "qwen2", "model.layers.", trunk, decoder },        { "qwen3", "model.layers.", trunk, decoder },
	{ "qwen35", "model.layers.", qwen35_trunk, qwen35 },
};

/* The row of a name; *suffix: the part that both sides share. */
static const name_row *find_weight(const name_row *r, const char *name, const char **suffix)
{
	for (; r->gguf; r++) {
		const size_t n = strlen(r->gguf);
		*suffix = name + n;
		if (strncmp(name, r->gguf, n) == 0 &&
		    (r->whole ? !**suffix : strcmp(*suffix, ".weight") == 0 || strcmp(*suffix, ".bias") == 0))
			return r;
	}
	return NULL;
}

/* Parses "blk.17.rest" into 17 and its rest; -1: another form. */
static int64_t layer_of(const char *name, const char **rest)
{
	const char *p = name + 4;
	int64_t     n = 0;

	if (strncmp(name, "blk.", 4) != 0 || *p < '0' || *p > '9' || (*p == '0' && p[1] != '.'))
		return -1;
	for (; *p >= '0' && *p <= '9' && n < 1000000; p++)
		n = 10 * n + (*p - '0');
	*rest = p + 1;
	return *p == '.' ? n : -1;
}

vn_gguf_change vn_gguf_name(const char *arch, int64_t layers, int64_t extra, const char *name, char *hf, size_t room)
{
	const char *rest = name, *suffix = "";

	snprintf(hf, room, "%s", name);
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (strcmp(known[i].arch, arch) != 0)
			continue;
		const int64_t   layer = layer_of(name, &rest);
		const name_row *r = find_weight(layer < 0 ? known[i].trunk : known[i].layer, rest, &suffix);
		if (layer >= layers && layer < layers + extra) {
			snprintf(hf, room, "mtp.%s", name);
			return VN_GGUF_AS_IT_WAS;
		}
		if (r && layer < 0)
			snprintf(hf, room, "%s%s", r->hf, suffix);
		else if (r)
			snprintf(hf, room, "%s%lld.%s%s", known[i].layers, (long long)layer, r->hf, suffix);
		return r ? r->change : VN_GGUF_AS_IT_WAS;
	}
	return VN_GGUF_AS_IT_WAS;
}
