/* point.c: the table of points; everything said of them elsewhere comes from here. */
#include "libref/plan/point.h"

#include <string.h>

static const vn_point_info table[VN_N_POINTS] = {
	[VN_POINT_TOKEN_EMBED]   = { "token_embed",   "token hidden",        "hidden",  "rows of the embedding, where positions are learned", true },
	[VN_POINT_POS_EMBED]     = { "pos_embed",     "token hidden",        "hidden",  "rows of the table of learned positions", true },
	[VN_POINT_EMBED]         = { "embed",         "token hidden",        "hidden",  "what enters the first layer: rows of the embedding, and positions if learned", true },
	[VN_POINT_INPUT]         = { "input",         "token hidden",        "hidden",  "residual stream entering the layer" },
	[VN_POINT_ATTN_NORM]     = { "attn_norm",     "token hidden",        "hidden",  "normed input of attention" },
	[VN_POINT_C_ATTN]        = { "c_attn",        "token qkv",           "fused",   "queries, keys and values in one product" },
	[VN_POINT_QG_PROJ]       = { "qg_proj",       "token head dim",      "fused",   "queries and gates as projected, side by side in each head" },
	[VN_POINT_Q_PROJ]        = { "q_proj",        "token head dim",      "head",    "queries as projected, bias included" },
	[VN_POINT_ATTN_GATE]     = { "attn_gate",     "token head dim",      "head",    "gate of the context, before sigmoid" },
	[VN_POINT_K_PROJ]        = { "k_proj",        "token kv_head dim",   "kv_head", "keys as projected, bias included" },
	[VN_POINT_V_PROJ]        = { "v_proj",        "token kv_head dim",   "kv_head", "values as projected, bias included" },
	[VN_POINT_Q_NORM]        = { "q_norm",        "token head dim",      "head",    "queries after their per-head norm" },
	[VN_POINT_K_NORM]        = { "k_norm",        "token kv_head dim",   "kv_head", "keys after their per-head norm" },
	[VN_POINT_Q_ROPE]        = { "q_rope",        "token head dim",      "head",    "queries after rotation" },
	[VN_POINT_K_ROPE]        = { "k_rope",        "token kv_head dim",   "kv_head", "keys after rotation, as cached" },
	[VN_POINT_K_CACHE]       = { "k_cache",       "key kv_head dim",     "kv_head", "cached keys of all tokens so far" },
	[VN_POINT_V_CACHE]       = { "v_cache",       "key kv_head dim",     "kv_head", "cached values of all tokens so far" },
	[VN_POINT_ATTN_SCORES]   = { "attn_scores",   "head token key",      "score",   "scaled dot products, before the mask" },
	[VN_POINT_ATTN_PROBS]    = { "attn_probs",    "head token key",      "score",   "masked softmax of the scores" },
	[VN_POINT_ATTN_CONTEXT]  = { "attn_context",  "token head dim",      "head",    "probabilities times values" },
	[VN_POINT_ATTN_GATED]    = { "attn_gated",    "token head dim",      "head",    "context times the sigmoid of its gate" },
	[VN_POINT_GDN_QKV]       = { "gdn_qkv",       "token lin_mix",       "lin_mix", "Gated DeltaNet's q, k and v as projected" },
	[VN_POINT_GDN_Z]         = { "gdn_z",         "token lin_head dim",  "lin_v",   "gate of the output norm, before silu" },
	[VN_POINT_GDN_B]         = { "gdn_b",         "token lin_head",      "lin_head", "strength of writing, before sigmoid" },
	[VN_POINT_GDN_A]         = { "gdn_a",         "token lin_head",      "lin_head", "decay as projected" },
	[VN_POINT_GDN_CONV]      = { "gdn_conv",      "token lin_mix",       "lin_mix", "silu of the causal convolution of gdn_qkv" },
	[VN_POINT_GDN_CONV_STATE] = { "gdn_conv_state", "row lin_mix",       "lin_mix", "the last rows of gdn_qkv, kept for the next call" },
	[VN_POINT_GDN_Q_CONV]    = { "gdn_q_conv",    "token lin_key dim",   "lin_k",   "queries after the convolution" },
	[VN_POINT_GDN_K_CONV]    = { "gdn_k_conv",    "token lin_key dim",   "lin_k",   "keys after the convolution" },
	[VN_POINT_GDN_V]         = { "gdn_v",         "token lin_head dim",  "lin_v",   "values after the convolution" },
	[VN_POINT_GDN_Q]         = { "gdn_q",         "token lin_key dim",   "lin_k",   "queries of length one, not scaled" },
	[VN_POINT_GDN_K]         = { "gdn_k",         "token lin_key dim",   "lin_k",   "keys of length one" },
	[VN_POINT_GDN_BETA]      = { "gdn_beta",      "token lin_head",      "lin_head", "strength of writing, 0 to 1" },
	[VN_POINT_GDN_G]         = { "gdn_g",         "token lin_head",      "lin_head", "logarithm of the decay, at most 0" },
	[VN_POINT_GDN_CORE]      = { "gdn_core",      "token lin_head dim",  "lin_v",   "what the delta rule reads from its state" },
	[VN_POINT_GDN_STATE]     = { "gdn_state",     "lin_head key_dim dim", "state",  "the state after the last token" },
	[VN_POINT_GDN_NORM]      = { "gdn_norm",      "token lin_head dim",  "lin_v",   "gated norm of gdn_core" },
	[VN_POINT_ATTN_OUT]      = { "attn_out",      "token hidden",        "hidden",  "attention, before the residual add" },
	[VN_POINT_ATTN_RESIDUAL] = { "attn_residual", "token hidden",        "hidden",  "residual stream after attention" },
	[VN_POINT_MLP_NORM]      = { "mlp_norm",      "token hidden",        "hidden",  "normed input of the feed-forward part" },
	[VN_POINT_GATE_PROJ]     = { "gate_proj",     "token ffn",           "ffn",     "gate, before its activation" },
	[VN_POINT_UP_PROJ]       = { "up_proj",       "token ffn",           "ffn",     "up projection" },
	[VN_POINT_GATE_ACT]      = { "gate_act",      "token ffn",           "ffn",     "gate after its activation" },
	[VN_POINT_MLP_ACT]       = { "mlp_act",       "token ffn",           "ffn",     "activated gate times up, or activated up" },
	[VN_POINT_DOWN_PROJ]     = { "down_proj",     "token hidden",        "hidden",  "feed-forward part, before the residual add" },
	[VN_POINT_OUTPUT]        = { "output",        "token hidden",        "hidden",  "residual stream leaving the layer" },
	[VN_POINT_FINAL_NORM]    = { "final_norm",    "token hidden",        "hidden",  "normed residual stream after the last layer", true },
	[VN_POINT_LOGITS]        = { "logits",        "token vocab",         "vocab",   "scores of the next token, before softmax", true },
};

const vn_point_info *vn_point_get(vn_point p)
{
	return &table[p];
}

int vn_point_from_name(const char *name, vn_point *p)
{
	for (int i = 0; i < VN_N_POINTS; i++)
		if (strcmp(table[i].name, name) == 0) {
			*p = (vn_point)i;
			return 1;
		}
	return 0;
}

int vn_axes_find(const char *axes, const char *word)
{
	for (int a = 0; *axes; a++) {
		const size_t n = strcspn(axes, " ");
		if (n == strlen(word) && memcmp(axes, word, n) == 0)
			return a;
		axes += n + strspn(axes + n, " ");
	}
	return -1;
}
