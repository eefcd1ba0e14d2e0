/* config.c: see config.h. Rules: specs/models.md, "config.json, common rules". */
#include "libref/family/config.h"

#include <math.h>
#include <string.h>

/* The context length of the model. Where max_position_embeddings is the trained length, RoPE
 * scaling extends it: linear and yarn by their factor; dynamic without a limit other than that of
 * integers in a float. */
static int longest_context(const vn_config *c)
{
	const vn_rope *r = &c->rope;
	double         most = c->context;

	if (r->type == VN_ROPE_LINEAR)
		most = fmax(most, floor(c->context * r->factor));
	else if (r->type == VN_ROPE_YARN)
		most = fmax(most, floor(r->original_context * r->factor));
	else if (r->type == VN_ROPE_DYNAMIC)
		most = fmax(most, 1 << 24);
	return (int)fmin(most, 1 << 30);
}

vn_status vn_config_decoder(const char *path, const json_t *o, vn_config *c, vn_error *err)
{
	vn_status st;

	if ((st = vn_config_int(path, o, "vocab_size", 1, 1 << 24, &c->V, err)) ||
	    (st = vn_config_int(path, o, "hidden_size", 1, 1 << 20, &c->D, err)) ||
	    (st = vn_config_int(path, o, "intermediate_size", 1, 1 << 22, &c->F, err)) ||
	    (st = vn_config_int(path, o, "num_hidden_layers", 1, 1024, &c->L, err)) ||
	    (st = vn_config_int(path, o, "num_attention_heads", 1, 4096, &c->H, err)))
		return st;
	/* null differs from absent here: in every family it means as many as heads */
	if (c->G == 0 || json_is_null(json_object_get(o, "num_key_value_heads")))
		c->G = c->H;
	if ((st = vn_config_int(path, o, "num_key_value_heads", 1, 4096, &c->G, err)) ||
	    (st = vn_config_int(path, o, "head_dim", 1, 65536, &c->K, err)) ||
	    (st = vn_config_int(path, o, "max_position_embeddings", 1, 1 << 30, &c->context, err)) ||
	    (st = vn_config_real(path, o, "rms_norm_eps", 0, 1, &c->norm_eps, err)) ||
	    (st = vn_config_bool(path, o, "tie_word_embeddings", &c->tied, err)) ||
	    (st = vn_config_act(path, o, "hidden_act", &c->act, err)))
		return st;
	if (c->H % c->G)
		return vn_fail(err, VN_ERR_FORMAT, "%s: %d heads cannot share %d key/value heads evenly", path, c->H, c->G);
	if (c->K == 0 && c->D % c->H)
		return vn_fail(err, VN_ERR_FORMAT, "%s: hidden_size %d is not a multiple of %d heads", path, c->D, c->H);
	if (c->K == 0)
		c->K = c->D / c->H;
	c->rope.rotary_dim = c->K;
	if ((st = vn_config_rope(path, o, c->context, c->partial_rotary > 0.0 ? c->partial_rotary : 1.0, &c->rope, err)) ||
	    (st = vn_config_longrope(path, o, c, err)))
		return st;
	c->context = longest_context(c);
	return VN_OK;
}

vn_status vn_config_sliding_window(const char *path, const json_t *o, vn_config *c, vn_error *err)
{
	if (json_is_null(json_object_get(o, "sliding_window")))
		c->window = 0;
	return vn_config_int(path, o, "sliding_window", 1, 1 << 30, &c->window, err);
}

vn_status vn_config_layer_types(const char *path, const json_t *o, vn_config *c, vn_error *err)
{
	json_t *types = json_object_get(o, "layer_types");

	if (!types || json_is_null(types))
		return VN_OK;
	if (!json_is_array(types))
		return vn_fail(err, VN_ERR_FORMAT, "%s: layer_types must be a list", path);
	if (json_array_size(types) != (size_t)c->L)
		return vn_fail(err, VN_ERR_FORMAT, "%s: layer_types has %zu entries, expected %d (one for each layer)", path,
		               json_array_size(types), c->L);
	c->layer_types = types;
	return VN_OK;
}

vn_status vn_config_qwen_window(const char *path, const json_t *o, vn_config *c, vn_error *err)
{
	bool      use = false;
	vn_status st;

	c->window = 4096;
	c->full_layers = 28;
	if ((st = vn_config_bool(path, o, "use_sliding_window", &use, err)) ||
	    (use && (st = vn_config_sliding_window(path, o, c, err))) || /* when unused, any value is allowed, and it
	                                                                  * is stored as 0 */
	    (st = vn_config_int(path, o, "max_window_layers", 0, 1 << 20, &c->full_layers, err)) ||
	    (st = vn_config_layer_types(path, o, c, err)))
		return st;
	if (!use)
		c->window = 0;
	return VN_OK;
}

vn_status vn_config_window(const char *path, const vn_config *c, int layer, int *window, vn_error *err)
{
	const bool full = layer < c->full_layers || (c->full_every && (layer + 1) % c->full_every == 0);

	*window = full ? 0 : c->window;
	if (!c->layer_types)
		return VN_OK;
	const char *type = json_string_value(json_array_get(c->layer_types, (size_t)layer));
	if (type && strcmp(type, "full_attention") == 0)
		*window = 0;
	else if (type && strcmp(type, "sliding_attention") == 0 && c->window)
		*window = c->window;
	else if (type && strcmp(type, "sliding_attention") == 0)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: layer_types[%d] is '%s', but the config sets no sliding_window",
		               path, layer, type);
	else
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: layer_types[%d]: '%s' is not supported in this family", path,
		               layer, type ? type : "(not a string)");
	return VN_OK;
}
