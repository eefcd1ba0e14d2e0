/* config.h: what config.json says, read with a family's defaults.
 *
 * A missing field takes the family's default; null counts as absent; unknown
 * fields are ignored; what is asked for and not supported is refused by name.
 */
#ifndef VN_LIBREF_MODEL_CONFIG_H
#define VN_LIBREF_MODEL_CONFIG_H

#include "libref/base/error.h"
#include "libref/plan/plan.h"

#include <jansson.h>

/* What the decoder families with rotary attention and a gated MLP share. */
typedef struct vn_config {
	int     D, F, L, H, G, K, V; /* the letters of specs/models.md */
	int     context;             /* longest sequence */
	double  norm_eps;
	vn_rope rope;
	double  partial_rotary;      /* the family's default of partial_rotary_factor; 0: 1 */
	vn_act  act;
	bool    tied;                /* logits by the embedding matrix */
	bool    qkv_bias, o_bias, mlp_bias;
	bool    qk_norm;             /* RMS norms of each head's queries and keys */
	bool    norm_one;            /* weights of norms are kept less one */
	int     window, full_layers; /* keys a query sees (0: all), from layer full_layers on */
	json_t *layer_types;         /* borrowed from the JSON; NULL: full_layers decides */
	json_t *short_factor, *long_factor; /* of LongRoPE, K/2 numbers each; borrowed likewise */
} vn_config;

/* One field each. *out keeps its value (the default) when the key is absent or
 * null. Refused: another type, outside [low, high]. path is for messages. */
vn_status vn_config_int(const char *path, const json_t *o, const char *key, int low, int high, int *out, vn_error *err);
vn_status vn_config_real(const char *path, const json_t *o, const char *key, double low, double high, double *out, vn_error *err);
vn_status vn_config_bool(const char *path, const json_t *o, const char *key, bool *out, vn_error *err);

/* The sizes and settings that all of them spell alike, RoPE included. c holds the
 * family's defaults: G 0 means as many as H, K 0 the D/H columns of a head. */
vn_status vn_config_decoder(const char *path, const json_t *o, vn_config *c, vn_error *err);

/* sliding_window into c->window, which holds the default of an absent key; null: no window. */
vn_status vn_config_sliding_window(const char *path, const json_t *o, vn_config *c, vn_error *err);
/* layer_types, when there is such a list; c->L must be known. */
vn_status vn_config_layer_types(const char *path, const json_t *o, vn_config *c, vn_error *err);
/* All four fields by which a Qwen says which layers have a window. */
vn_status vn_config_qwen_window(const char *path, const json_t *o, vn_config *c, vn_error *err);

/* RoPE settings in the spelling of transformers 4 (rope_theta, rope_scaling)
 * or 5 (rope_parameters); files with both must agree. rope->theta holds the
 * family's default, rotary_dim the head width; context must be known. partial:
 * the default of partial_rotary_factor. */
vn_status vn_config_rope(const char *path, const json_t *o, int context, double partial, vn_rope *rope, vn_error *err);
/* The lists of LongRoPE, when c->rope is that; c->rope has been read. */
vn_status vn_config_longrope(const char *path, const json_t *o, vn_config *c, vn_error *err);
/* They go into a plan, and c->rope says which they are there. */
void      vn_config_lists(vn_builder *b, vn_config *c);

/* An activation by transformers' name for it; one we do not have is refused by
 * name. *act keeps its value when the key is absent or null. */
vn_status vn_config_act(const char *path, const json_t *o, const char *key, vn_act *act, vn_error *err);

/* Refuses what no family of ours has: fields that transformers obeys in all of them
 * (is_causal, per_layer_config, quantization_config), and those by which other
 * families change what is computed. Of text_config too. */
vn_status vn_config_refuse(const char *path, const json_t *o, vn_error *err);

/* The window of a layer: 0 for full attention. Unknown layer types are refused. */
vn_status vn_config_window(const char *path, const vn_config *c, int layer, int *window, vn_error *err);

#endif
