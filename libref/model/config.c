/* config.c: see config.h. Rules: specs/models.md, "config.json, common rules". */
#include "libref/model/config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const json_t *field(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	return v && !json_is_null(v) ? v : NULL;
}

vn_status vn_config_int(const char *path, const json_t *o, const char *key, int low, int high, int *out, vn_error *err)
{
	const json_t *v = field(o, key);
	if (!v)
		return VN_OK;
	double x = json_number_value(v);
	if (!json_is_number(v) || x != floor(x) || !(x >= low && x <= high))
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s must be a whole number from %d to %d", path, key, low, high);
	*out = (int)x;
	return VN_OK;
}

vn_status vn_config_real(const char *path, const json_t *o, const char *key, double low, double high, double *out, vn_error *err)
{
	const json_t *v = field(o, key);
	if (!v)
		return VN_OK;
	double x = json_number_value(v);
	if (!json_is_number(v) || !(x >= low && x <= high))
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s must be a number from %g to %g", path, key, low, high);
	*out = x;
	return VN_OK;
}

vn_status vn_config_bool(const char *path, const json_t *o, const char *key, bool *out, vn_error *err)
{
	const json_t *v = field(o, key);
	if (!v)
		return VN_OK;
	if (!json_is_boolean(v))
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s must be true or false", path, key);
	*out = json_is_true(v);
	return VN_OK;
}

vn_status vn_config_act(const char *path, const json_t *o, const char *key, vn_act *act, vn_error *err)
{
	static const struct { const char *name; vn_act act; } known[] = {
		{ "silu", VN_SILU }, { "swish", VN_SILU }, { "gelu", VN_GELU }, { "gelu_new", VN_GELU_TANH },
		{ "gelu_pytorch_tanh", VN_GELU_TANH },
	};
	const json_t *v = field(o, key);

	if (!v)
		return VN_OK;
	const char *name = json_string_value(v);
	for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
		if (strcmp(name, known[i].name) == 0) {
			*act = known[i].act;
			return VN_OK;
		}
	return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: %s '%s' is not supported", path, key, name ? name : "(not a string)");
}

static vn_status rope_type(const char *path, const json_t *scaling, vn_rope_type *type, vn_error *err)
{
	static const struct { const char *name; vn_rope_type type; } known[] = {
		{ "default", VN_ROPE_DEFAULT }, { "linear", VN_ROPE_LINEAR }, { "yarn", VN_ROPE_YARN }, { "llama3", VN_ROPE_LLAMA3 },
	};
	const json_t *v = field(scaling, "rope_type");

	if (!v)
		v = field(scaling, "type");
	const char *name = v ? json_string_value(v) : "default";
	for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
		if (strcmp(name, known[i].name) == 0) {
			*type = known[i].type;
			return VN_OK;
		}
	return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: rope_type '%s' is not supported", path, name ? name : "(not a string)");
}

/* The settings object of either spelling; NULL: none. Both present must agree. */
static vn_status rope_object(const char *path, const json_t *o, const json_t **settings, vn_error *err)
{
	const json_t *five = field(o, "rope_parameters"), *four = field(o, "rope_scaling");

	if (five && !json_is_object(five))
		return vn_fail(err, VN_ERR_FORMAT, "%s: rope_parameters must be an object", path);
	if (four && !json_is_object(four))
		return vn_fail(err, VN_ERR_FORMAT, "%s: rope_scaling must be an object", path);
	*settings = five ? five : four;
	if (!five)
		return VN_OK;

	const char *key;
	json_t     *value;
	json_object_foreach((json_t *)(size_t)five, key, value)
		if (json_is_object(value))
			return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: rope_parameters by layer type (%s) is not supported", path, key);
	const json_t *theta4 = field(o, "rope_theta"), *theta5 = field(five, "rope_theta");
	if (theta4 && theta5 && json_number_value(theta4) != json_number_value(theta5))
		return vn_fail(err, VN_ERR_FORMAT, "%s: rope_theta is %g, rope_parameters.rope_theta is %g", path,
		               json_number_value(theta4), json_number_value(theta5));
	if (four)
		json_object_foreach((json_t *)(size_t)four, key, value) {
			const json_t *other = field(five, strcmp(key, "type") == 0 ? "rope_type" : key);
			bool same = other && (json_is_number(value) ? json_number_value(value) == json_number_value(other)
			                                            : json_equal(value, (json_t *)(size_t)other));
			if (!same)
				return vn_fail(err, VN_ERR_FORMAT, "%s: rope_scaling and rope_parameters disagree on %s", path, key);
		}
	return VN_OK;
}

/* rope_theta, the base of the powers. At 1 all pairs turn alike and the ramps of
 * yarn divide by its logarithm; rope.h asserts more than 1. */
static vn_status rope_theta(const char *path, const json_t *o, double *theta, vn_error *err)
{
	const json_t *v = field(o, "rope_theta");

	if (v && json_is_number(v) && !((float)json_number_value(v) > 1.0f))
		return vn_fail(err, VN_ERR_FORMAT, "%s: rope_theta is %g and must be above 1", path, json_number_value(v));
	return vn_config_real(path, o, "rope_theta", 1, 1e30, theta, err);
}

vn_status vn_config_rope(const char *path, const json_t *o, int context, vn_rope *r, vn_error *err)
{
	const json_t *s = NULL;
	vn_status     st = rope_object(path, o, &s, err);
	double        partial = 1.0;
	int           width = r->rotary_dim;
	bool          factor_given;

	if (st)
		return st;
	r->max_context = context;
	r->original_context = 0;
	r->factor = 1.0;
	r->beta_fast = 32.0;
	r->beta_slow = 1.0;
	r->truncate = true;
	if ((st = rope_theta(path, o, &r->theta, err)) ||
	    (st = rope_theta(path, s, &r->theta, err)) ||
	    (st = vn_config_real(path, o, "partial_rotary_factor", 0, 1, &partial, err)) ||
	    (st = vn_config_real(path, s, "partial_rotary_factor", 0, 1, &partial, err)) ||
	    (st = rope_type(path, s, &r->type, err)) ||
	    (st = vn_config_real(path, s, "factor", 1e-6, 1e9, &r->factor, err)) ||
	    (st = vn_config_real(path, s, "low_freq_factor", 1e-9, 1e9, &r->low_freq_factor, err)) ||
	    (st = vn_config_real(path, s, "high_freq_factor", 1e-9, 1e9, &r->high_freq_factor, err)) ||
	    (st = vn_config_real(path, s, "beta_fast", 1e-9, 1e9, &r->beta_fast, err)) ||
	    (st = vn_config_real(path, s, "beta_slow", 1e-9, 1e9, &r->beta_slow, err)) ||
	    (st = vn_config_real(path, s, "attention_factor", 1e-9, 1e9, &r->attention_factor, err)) ||
	    (st = vn_config_real(path, s, "mscale", 0, 1e9, &r->mscale, err)) ||
	    (st = vn_config_real(path, s, "mscale_all_dim", 0, 1e9, &r->mscale_all_dim, err)) ||
	    (st = vn_config_bool(path, s, "truncate", &r->truncate, err)) ||
	    (st = vn_config_int(path, s, "original_max_position_embeddings", 1, 1 << 30, &r->original_context, err)) ||
	    (st = vn_config_int(path, o, "original_max_position_embeddings", 1, 1 << 30, &r->original_context, err)))
		return st;

	r->rotary_dim = (int)(width * partial);
	if (r->rotary_dim < 2 || r->rotary_dim % 2)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: rotary width %d (head width %d times %g) is not an even number >= 2", path,
		               r->rotary_dim, width, partial);
	if (r->original_context == 0)
		r->original_context = context;
	factor_given = field(s, "factor") != NULL;
	if (!factor_given && r->type == VN_ROPE_YARN)
		r->factor = (double)context / r->original_context;
	else if (!factor_given && r->type != VN_ROPE_DEFAULT)
		return vn_fail(err, VN_ERR_FORMAT, "%s: RoPE scaling without a factor", path);
	if (r->type == VN_ROPE_LLAMA3 && !(r->low_freq_factor > 0 && r->high_freq_factor > r->low_freq_factor))
		return vn_fail(err, VN_ERR_FORMAT, "%s: llama3 RoPE needs low_freq_factor and a larger high_freq_factor", path);
	return VN_OK;
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
	/* null is not absent here: it means as many as heads in every family */
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
		return vn_fail(err, VN_ERR_FORMAT, "%s: %d heads do not share %d key/value heads evenly", path, c->H, c->G);
	if (c->K == 0 && c->D % c->H)
		return vn_fail(err, VN_ERR_FORMAT, "%s: hidden_size %d is not a multiple of %d heads", path, c->D, c->H);
	if (c->K == 0)
		c->K = c->D / c->H;
	c->rope.rotary_dim = c->K;
	return vn_config_rope(path, o, c->context, &c->rope, err);
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
		return vn_fail(err, VN_ERR_FORMAT, "%s: layer_types has %zu entries for %d layers", path, json_array_size(types), c->L);
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
	    (st = vn_config_sliding_window(path, o, c, err)) ||
	    (st = vn_config_int(path, o, "max_window_layers", 0, 1 << 20, &c->full_layers, err)) ||
	    (st = vn_config_layer_types(path, o, c, err)))
		return st;
	if (!use)
		c->window = 0;
	return VN_OK;
}

vn_status vn_config_window(const char *path, const vn_config *c, int layer, int *window, vn_error *err)
{
	*window = c->window && layer >= c->full_layers ? c->window : 0;
	if (!c->layer_types)
		return VN_OK;
	const char *type = json_string_value(json_array_get(c->layer_types, (size_t)layer));
	if (type && strcmp(type, "full_attention") == 0)
		*window = 0;
	else if (type && strcmp(type, "sliding_attention") == 0 && c->window)
		*window = c->window;
	else
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: layer_types[%d]: '%s' is not supported here", path, layer,
		               type ? type : "(not a string)");
	return VN_OK;
}
