/* config.h: reads config.json with a family's defaults.
 *
 * A missing field gets the family's default; null counts as missing; unknown fields are ignored.
 * Unsupported settings are rejected with an error that names the field.
 */
#pragma once

#include "libref/base/error.h"
#include "libref/family/family.h"

#include <jansson.h>

/* What the decoder families with rotary attention and a gated MLP have in common. */
typedef struct vn_config {
	int         D, F, L, H, G, K, V; /* letters as in specs/models.md */
	int         context;             /* longest sequence */
	double      norm_eps;
	vn_rope     rope;
	vn_rope     local;          /* of layers with a window; theta 0: rope is */
	double      partial_rotary; /* default of partial_rotary_factor; 0: 1 */
	vn_act      act;
	bool        tied; /* logits use the embedding matrix */
	bool        qkv_bias, o_bias, mlp_bias;
	bool        qk_norm;                    /* RMS norms of each head's queries and keys */
	bool        norm_row;                   /* these norms are over all heads of a token together */
	bool        norm_one;                   /* norm weights are stored minus one */
	int         window, full_layers;        /* keys that a query sees (0: all), from layer full_layers on */
	int         full_every;                 /* every so many-th layer has no window; 0: all have */
	bool        sinks;                      /* each head has a score without a key (vn_plan_sinks) */
	bool        post_norms;                 /* norms behind the parts of a layer, too */
	bool        scaled_embed;               /* the embedding is multiplied by sqrt(D) */
	double      query_scale;                /* scores are divided by its root; 0: by that of K */
	double      score_cap, logit_cap;       /* soft caps; 0: none */
	json_t     *layer_types;                /* borrowed from the JSON; NULL: these two numbers decide */
	json_t     *short_factor, *long_factor; /* of LongRoPE, K/2 numbers each; borrowed */
	int         experts, per_token;         /* in a layer; how many a token goes through */
	int         expert_F;                   /* feed-forward width of each */
	bool        expert_bias;                /* of the router and of experts */
	double      expert_limit, expert_shift; /* limit and shift of VN_OP_EXPERTS */
	bool        normalised, wide_weights;   /* their weights sum to one; are not rounded to the format */
	int         shared_F;                   /* width of a further expert of all tokens; 0: none */
	bool        shared_gate;                /* which is gated */
	bool        wide_logits;                /* their router's scores are not rounded either */
	bool        router_sigmoid;             /* experts are chosen and weighed by sigmoids */
	bool        router_bias;                /* and a bias is added to them for the choice */
	int         groups, groups_used, best;  /* of VN_OP_TOP_K */
	double      router_scale;               /* multiplies the weights; 0: 1 */
	int         sparse_step;                /* only every sparse_step-th layer has experts; 0: all have */
	json_t     *dense_layers;               /* further layers without, borrowed; NULL: none */
	/* the modules of the router and of the further expert; NULL: mlp.gate, mlp.shared_expert */
	const char *router, *shared;
	/* adds the feed-forward part of layer l; NULL: a dense one */
	int (*feed_forward)(vn_builder *p, const struct vn_config *c, int l, int x);
	/* adds what comes before it, from input to attn_residual, to *x; NULL: attention */
	vn_status (*mixer)(const char *path, vn_builder *p, const struct vn_config *c, int l, int *x, vn_error *err);
	/* adds a multi-token-prediction head, which is layer L. in: embed and final_norm. NULL: none */
	void (*predictor)(vn_builder *p, const struct vn_config *c, int embedding, const int in[2]);
} vn_config;

/* Read one field each. *out keeps its value (the default) if the key is missing or null. Fail on
 * another type, or outside [low, high]. path: for messages. */
vn_status vn_config_int(const char *path, const json_t *o, const char *key, int low, int high, int *out, vn_error *err);
vn_status vn_config_real(const char *path, const json_t *o, const char *key, double low, double high, double *out,
                         vn_error *err);
vn_status vn_config_bool(const char *path, const json_t *o, const char *key, bool *out, vn_error *err);

/* Finds the object with the text model's fields: text_config, if the model is of this type, which
 * is multimodal; else all of it. */
vn_status vn_config_text(const char *path, const json_t *o, const char *multimodal, const json_t **text, vn_error *err);

/* Reads the sizes and settings that all these families spell alike, including RoPE. c holds the
 * family's defaults: G 0 means G = H, K 0 means K = D/H. */
vn_status vn_config_decoder(const char *path, const json_t *o, vn_config *c, vn_error *err);

/* Reads sliding_window into c->window, which holds the default; null: no window. */
vn_status vn_config_sliding_window(const char *path, const json_t *o, vn_config *c, vn_error *err);
/* Reads the list layer_types if there is one. c->L must be set. */
vn_status vn_config_layer_types(const char *path, const json_t *o, vn_config *c, vn_error *err);
/* Reads the four fields that say which layers of a Qwen model have a window. */
vn_status vn_config_qwen_window(const char *path, const json_t *o, vn_config *c, vn_error *err);

/* Reads RoPE settings as transformers 4 (rope_theta, rope_scaling) or 5 (rope_parameters) spell
 * them; files with both must agree. Before: rope->theta holds the family's default, rotary_dim the
 * head width. partial: the default of partial_rotary_factor. */
vn_status vn_config_rope(const char *path, const json_t *o, int context, double partial, vn_rope *rope, vn_error *err);
/* Reads the lists of LongRoPE, if c->rope, which must have been read, is of that type. */
vn_status vn_config_longrope(const char *path, const json_t *o, vn_config *c, vn_error *err);
/* Adds these lists to a plan, and sets their numbers in c->rope. */
void      vn_config_lists(vn_builder *b, vn_config *c);

/* Reads an activation by transformers' name; an unsupported one is an error that names it. *act
 * keeps its value if the key is missing or null. */
vn_status vn_config_act(const char *path, const json_t *o, const char *key, vn_act *act, vn_error *err);

/* Rejects settings that the family does not obey: fields that transformers obeys in every family
 * (is_causal, per_layer_config, quantization_config), and fields that change the computation in
 * other families, of ours or not. Also for text_config. */
vn_status vn_config_refuse(const char *path, const vn_family *f, const json_t *o, vn_error *err);

/* Sets *window of a layer; 0: full attention. Unknown layer types are rejected. */
vn_status vn_config_window(const char *path, const vn_config *c, int layer, int *window, vn_error *err);
