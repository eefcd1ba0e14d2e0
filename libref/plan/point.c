/* point.c: the table of points, from which all other texts about points are derived. */
#include "libref/plan/point.h"

#include "libref/base/glob.h"
#include "libref/base/nearest.h"
#include "libref/base/text.h"

#include <stdio.h>
#include <string.h>

#define LAYER(...) \
	{ \
		__VA_ARGS__, .outside = false \
	}
#define ALONE(...) \
	{ \
		__VA_ARGS__, .outside = true \
	}

/* clang-format off */
static const vn_point_info table[VN_N_POINTS] = {
	[VN_POINT_TOKEN_EMBED]   = ALONE("token_embed",   "token hidden",        "hidden",
		"rows of the embedding, where positions are learned"),
	[VN_POINT_POS_EMBED]     = ALONE("pos_embed",     "token hidden",        "hidden",
		"rows of the table of learned positions"),
	[VN_POINT_EMBED]         = ALONE("embed",         "token hidden",        "hidden",
		"what enters the first layer: rows of the embedding, and positions if learned"),
	[VN_POINT_INPUT]         = LAYER("input",         "token hidden",        "hidden",
		"residual stream entering the layer"),
	[VN_POINT_ATTN_NORM]     = LAYER("attn_norm",     "token hidden",        "hidden",  "normed input of attention"),
	[VN_POINT_C_ATTN]        = LAYER("c_attn",        "token qkv",           "fused",
		"queries, keys and values in one product"),
	[VN_POINT_QG_PROJ]       = LAYER("qg_proj",       "token head dim",      "fused",
		"queries and gates as projected, side by side in each head"),
	[VN_POINT_Q_PROJ]        = LAYER("q_proj",        "token head dim",      "head",
		"queries as projected, bias included"),
	[VN_POINT_ATTN_GATE]     = LAYER("attn_gate",     "token head dim",      "head",
		"gate of the context, before sigmoid"),
	[VN_POINT_K_PROJ]        = LAYER("k_proj",        "token kv_head dim",   "kv_head",
		"keys as projected, bias included"),
	[VN_POINT_V_PROJ]        = LAYER("v_proj",        "token kv_head dim",   "kv_head",
		"values as projected, bias included"),
	[VN_POINT_Q_NORM]        = LAYER("q_norm",        "token head dim",      "head",
		"queries after their per-head norm"),
	[VN_POINT_K_NORM]        = LAYER("k_norm",        "token kv_head dim",   "kv_head",
		"keys after their per-head norm"),
	[VN_POINT_Q_ROPE]        = LAYER("q_rope",        "token head dim",      "head",    "queries after rotation"),
	[VN_POINT_K_ROPE]        = LAYER("k_rope",        "token kv_head dim",   "kv_head",
		"keys after rotation, as cached"),
	[VN_POINT_K_CACHE]       = LAYER("k_cache",       "key kv_head dim",     "kv_head",
		"cached keys of all tokens so far"),
	[VN_POINT_V_CACHE]       = LAYER("v_cache",       "key kv_head dim",     "kv_head",
		"cached values of all tokens so far"),
	[VN_POINT_ATTN_SCORES]   = LAYER("attn_scores",   "head token key",      "score",
		"scaled dot products, before the mask"),
	[VN_POINT_ATTN_PROBS]    = LAYER("attn_probs",    "head token key",      "score",   "masked softmax of the scores"),
	[VN_POINT_ATTN_CONTEXT]  = LAYER("attn_context",  "token head dim",      "head",    "probabilities times values"),
	[VN_POINT_ATTN_GATED]    = LAYER("attn_gated",    "token head dim",      "head",
		"context times the sigmoid of its gate"),
	[VN_POINT_GDN_QKV]       = LAYER("gdn_qkv",       "token lin_mix",       "lin_mix",
		"Gated DeltaNet's q, k and v as projected"),
	[VN_POINT_GDN_Z]         = LAYER("gdn_z",         "token lin_head dim",  "lin_v",
		"gate of the output norm, before silu"),
	[VN_POINT_GDN_B]         = LAYER("gdn_b",         "token lin_head",      "lin_head",
		"strength of writing, before sigmoid"),
	[VN_POINT_GDN_A]         = LAYER("gdn_a",         "token lin_head",      "lin_head", "decay as projected"),
	[VN_POINT_GDN_CONV]      = LAYER("gdn_conv",      "token lin_mix",       "lin_mix",
		"silu of the causal convolution of gdn_qkv"),
	[VN_POINT_GDN_CONV_STATE] = LAYER("gdn_conv_state", "row lin_mix",       "lin_mix",
		"the last rows of gdn_qkv, kept for the next call"),
	[VN_POINT_GDN_Q_CONV]    = LAYER("gdn_q_conv",    "token lin_key dim",   "lin_k",
		"queries after the convolution"),
	[VN_POINT_GDN_K_CONV]    = LAYER("gdn_k_conv",    "token lin_key dim",   "lin_k",   "keys after the convolution"),
	[VN_POINT_GDN_V]         = LAYER("gdn_v",         "token lin_head dim",  "lin_v",   "values after the convolution"),
	[VN_POINT_GDN_Q]         = LAYER("gdn_q",         "token lin_key dim",   "lin_k",
		"queries of length one, not scaled"),
	[VN_POINT_GDN_K]         = LAYER("gdn_k",         "token lin_key dim",   "lin_k",   "keys of length one"),
	[VN_POINT_GDN_BETA]      = LAYER("gdn_beta",      "token lin_head",      "lin_head", "strength of writing, 0 to 1"),
	[VN_POINT_GDN_G]         = LAYER("gdn_g",         "token lin_head",      "lin_head",
		"logarithm of the decay, at most 0"),
	[VN_POINT_GDN_CORE]      = LAYER("gdn_core",      "token lin_head dim",  "lin_v",
		"the value that the delta rule reads from its state"),
	[VN_POINT_GDN_STATE]     = LAYER("gdn_state",     "lin_head key_dim dim", "state",
		"the state after the last token"),
	[VN_POINT_GDN_NORM]      = LAYER("gdn_norm",      "token lin_head dim",  "lin_v",   "gated norm of gdn_core"),
	[VN_POINT_ATTN_OUT]      = LAYER("attn_out",      "token hidden",        "hidden",
		"attention, before the residual add"),
	[VN_POINT_ATTN_RESIDUAL] = LAYER("attn_residual", "token hidden",        "hidden",
		"residual stream after attention"),
	[VN_POINT_MLP_NORM]      = LAYER("mlp_norm",      "token hidden",        "hidden",
		"normed input of the feed-forward part"),
	[VN_POINT_GATE_PROJ]     = LAYER("gate_proj",     "token ffn",           "ffn",     "gate, before its activation"),
	[VN_POINT_UP_PROJ]       = LAYER("up_proj",       "token ffn",           "ffn",     "up projection"),
	[VN_POINT_GATE_ACT]      = LAYER("gate_act",      "token ffn",           "ffn",     "gate after its activation"),
	[VN_POINT_MLP_ACT]       = LAYER("mlp_act",       "token ffn",           "ffn",
		"activated gate times up, or activated up"),
	[VN_POINT_DOWN_PROJ]     = LAYER("down_proj",     "token hidden",        "hidden",
		"feed-forward part, before the residual add"),
	[VN_POINT_OUTPUT]        = LAYER("output",        "token hidden",        "hidden",
		"residual stream leaving the layer"),
	[VN_POINT_FINAL_NORM]    = ALONE("final_norm",    "token hidden",        "hidden",
		"normed residual stream after the last layer"),
	[VN_POINT_LOGITS]        = ALONE("logits",        "token vocab",         "vocab",
		"scores of the next token, before softmax"),
};
/* clang-format on */

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

const char *vn_axes_word(const char *axes, int i, size_t *n)
{
	axes += strspn(axes, " ");
	for (; i > 0; i--) {
		axes += strcspn(axes, " ");
		axes += strspn(axes, " ");
	}
	*n = strcspn(axes, " ");
	return axes;
}

int vn_axes_find(const char *axes, const char *word)
{
	size_t      n;
	const char *w = vn_axes_word(axes, 0, &n);
	for (int a = 0; n; w = vn_axes_word(axes, ++a, &n))
		if (n == strlen(word) && memcmp(w, word, n) == 0)
			return a;
	return -1;
}

int vn_name_layer(const char *name)
{
	int64_t     layer;
	const char *rest = strncmp(name, "layer", 5) == 0 ? vn_text_digits(name + 5, &layer) : NULL;
	return rest && *rest == '.' && layer >= 0 && layer <= INT32_MAX ? (int)layer : -1;
}

const char *vn_name_in_layer(const char *name)
{
	return vn_name_layer(name) < 0 ? name : strchr(name, '.') + 1;
}

/* Other engines' words for "layer3.", as of a name "model.layers.3.q_rope".
 * Returns false if the name has no layer. */
static bool spell_layer(const char *glob, char to[VN_GLOB_MAX + 8])
{
	static const char *const words[] = { "layers.", "layer.", "blk.", "block.", "blocks.", "h.", "layers" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		const char *at = strstr(glob, words[i]);
		if (!at || (at > glob && at[-1] != '.'))
			continue;
		const char  *number = at + strlen(words[i]);
		const size_t digits = strspn(number, "0123456789*{},");
		if (digits && number[digits] == '.')
			return snprintf(to, VN_GLOB_MAX + 8, "layer%s", number) < VN_GLOB_MAX + 8;
	}
	return false;
}

/* The part of a glob before its first '.', or behind it, spelt as names have it: "layr1.*" is
 * "layer1.*", "*.q_rop" is "*.q_rope". Settles near, if the result matches one of the names. */
static void spell_half(const char *glob, bool front, const char *(*name_of)(const void *context, int i),
                       const void *context, int n, vn_nearest *near)
{
	const char *dot = strchr(glob, '.');
	char        half[VN_GLOB_MAX + 1], whole[2 * VN_NEAREST_MAX];
	vn_nearest  nearest;

	if (!dot || strlen(glob) > VN_GLOB_MAX)
		return;
	snprintf(half, sizeof half, "%.*s", front ? (int)(dot - glob) : (int)VN_GLOB_MAX, front ? glob : dot + 1);
	if (strpbrk(half, "*?{["))
		return;
	vn_nearest_start(&nearest, half);
	for (int i = 0; i < n; i++) {
		char        own[VN_NEAREST_MAX];
		const char *name = name_of(context, i), *at = strchr(name, '.');
		if (!at ||
		    snprintf(own, sizeof own, "%.*s", front ? (int)(at - name) : 200, front ? name : at + 1) >= (int)sizeof own)
			continue;
		vn_nearest_try(&nearest, own);
	}
	if (!vn_nearest_found(&nearest))
		return;
	snprintf(whole, sizeof whole, "%.*s%s", front ? 0 : (int)(dot + 1 - glob), glob, vn_nearest_found(&nearest));
	if (front)
		vn_text_add(whole, sizeof whole, "%s", dot);
	for (int i = 0; i < n && strlen(whole) < VN_NEAREST_MAX; i++)
		if (vn_glob_match(whole, name_of(context, i))) {
			vn_nearest_settle(near, whole);
			return;
		}
}

/* A glob without a layer, or of nothing but a layer: "q_rope", "rope", "layer1". */
static void spell_layers(const char *glob, const char *(*name_of)(const void *context, int i), const void *context,
                         int n, vn_nearest *near)
{
	static const struct {
		const char *before, *after;
	} form[] = { { "layer*.", "" }, { "", ".*" }, { "layer*.*", "*" } };
	char whole[VN_GLOB_MAX + 1];

	for (size_t f = 0; f < sizeof form / sizeof *form; f++)
		if (snprintf(whole, sizeof whole, "%s%s%s", form[f].before, glob, form[f].after) < VN_GLOB_MAX)
			for (int i = 0; i < n; i++)
				if (vn_glob_match(whole, name_of(context, i))) {
					vn_nearest_settle(near, whole);
					return;
				}
	if (snprintf(whole, sizeof whole, "layer*.%s", glob) < VN_GLOB_MAX)
		spell_half(whole, false, name_of, context, n, near);
}

const char *vn_point_hint(const char *glob, const char *(*name_of)(const void *context, int i), const void *context,
                          int n, char text[VN_POINT_HINT])
{
	char       spelt[VN_GLOB_MAX + 8];
	const bool other = strlen(glob) <= VN_GLOB_MAX && spell_layer(glob, spelt);
	const int  asked = vn_name_layer(other ? spelt : glob);
	int        last = -1;
	vn_nearest near;

	vn_nearest_start(&near, glob);
	for (int i = 0; i < n; i++) {
		const char *name = name_of(context, i);
		last = vn_name_layer(name) > last ? vn_name_layer(name) : last;
		if (other && strlen(spelt) < VN_NEAREST_MAX && vn_glob_match(spelt, name)) {
			vn_nearest_settle(&near, spelt);
			break;
		}
		vn_nearest_try(&near, name);
	}
	if (!other && strpbrk(glob, "*?{[")) {
		spell_half(glob, true, name_of, context, n, &near);
		spell_half(glob, false, name_of, context, n, &near);
	}
	if (!strchr(glob, '.') && !vn_nearest_found(&near))
		spell_layers(glob, name_of, context, n, &near);
	if (asked > last && last >= 0)
		snprintf(text, VN_POINT_HINT, " (its layers are 0 to %d)", last);
	else
		snprintf(text, VN_POINT_HINT, "%s", vn_nearest_hint(&near));
	return text;
}
