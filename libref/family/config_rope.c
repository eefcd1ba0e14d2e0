/* config_rope.c: the RoPE settings of config.json, see config.h. Rules: specs/models.md,
 * "config.json, common rules" and "RoPE scaling types". */
#include "libref/family/config.h"

#include "libref/base/json.h"
#include "libref/base/text.h"

#include <stdlib.h>
#include <string.h>

static vn_status rope_type(const char *path, const json_t *scaling, vn_rope_type *type, vn_error *err)
{
	static const struct {
		const char  *name;
		vn_rope_type type;
	} known[] = {
		{ "default", VN_ROPE_DEFAULT }, { "linear", VN_ROPE_LINEAR },   { "yarn", VN_ROPE_YARN },
		{ "llama3", VN_ROPE_LLAMA3 },   { "dynamic", VN_ROPE_DYNAMIC }, { "longrope", VN_ROPE_LONGROPE },
	};
	const json_t *v = vn_json_field(scaling, "rope_type");

	if (!v)
		v = vn_json_field(scaling, "type");
	const char *name = v ? json_string_value(v) : "default";
	for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
		if (strcmp(name, known[i].name) == 0) {
			*type = known[i].type;
			return VN_OK;
		}
	return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: rope_type '%s' is not supported", path,
	               name ? name : "(not a string)");
}

/* Name of the first setting in one spelling that the other lacks; NULL: none. The base and the
 * rotated part may be at the top level instead. */
static const char *find_missing_setting(const json_t *o, const json_t *one, const json_t *other)
{
	const char *key;
	json_t     *value;

	json_object_foreach((json_t *)(size_t)one, key, value)
	{
		const bool    type = strcmp(key, "type") == 0 || strcmp(key, "rope_type") == 0;
		const json_t *have = vn_json_field(other, type ? "rope_type" : key);
		if (!have && (type || strcmp(key, "rope_theta") == 0 || strcmp(key, "partial_rotary_factor") == 0))
			have = type ? vn_json_field(other, "type") : vn_json_field(o, key);
		const char *name = json_string_value(value);
		const bool  nothing = json_is_null(value) || (type && !have && name && strcmp(name, "default") == 0);
		if (!nothing && !(have && (json_is_number(value) ? json_number_value(value) == json_number_value(have)
		                                                 : json_equal(value, (json_t *)(size_t)have))))
			return key;
	}
	return NULL;
}

/* The settings object in either spelling; NULL: none. When both are present they must
 * agree: transformers 5 then takes the older one as a whole, and older versions know no other. */
static vn_status rope_object(const char *path, const json_t *o, const json_t **settings, vn_error *err)
{
	const json_t *five = vn_json_field(o, "rope_parameters"), *four = vn_json_field(o, "rope_scaling");
	const char   *key;
	json_t       *value;

	if (five && !json_is_object(five))
		return vn_fail(err, VN_ERR_FORMAT, "%s: rope_parameters must be an object", path);
	if (four && !json_is_object(four))
		return vn_fail(err, VN_ERR_FORMAT, "%s: rope_scaling must be an object", path);
	*settings = five ? five : four;
	json_object_foreach((json_t *)(size_t)*settings, key, value) if (json_is_object(value)) return vn_fail(
		err, VN_ERR_UNSUPPORTED, "%s: %s by layer type (%s) is not supported", path,
		five ? "rope_parameters" : "rope_scaling", key);
	if (!five)
		return VN_OK;
	const json_t *theta4 = vn_json_field(o, "rope_theta"), *theta5 = vn_json_field(five, "rope_theta");
	if (theta4 && theta5 && json_number_value(theta4) != json_number_value(theta5)) {
		char one[32], other[32];
		return vn_fail(err, VN_ERR_FORMAT, "%s: rope_theta is %s, but rope_parameters.rope_theta is %s", path,
		               vn_text_number(json_number_value(theta4), one),
		               vn_text_number(json_number_value(theta5), other));
	}
	if (json_object_size(four) > 0 &&
	    ((key = find_missing_setting(o, four, five)) || (key = find_missing_setting(o, five, four))))
		return vn_fail(err, VN_ERR_FORMAT, "%s: rope_scaling and rope_parameters disagree on %s", path, key);
	return VN_OK;
}

/* rope_theta, the base of the powers. With 1 all pairs rotate alike and yarn divides by its
 * logarithm, 0; rope.h asserts more than 1. */
static vn_status rope_theta(const char *path, const json_t *o, double *theta, vn_error *err)
{
	const json_t *v = vn_json_field(o, "rope_theta");

	if (v && json_is_number(v) && !((float)json_number_value(v) > 1.0f)) {
		char number[32];
		return vn_fail(err, VN_ERR_FORMAT, "%s: rope_theta is %s, expected a number above 1", path,
		               vn_text_number(json_number_value(v), number));
	}
	return vn_config_real(path, o, "rope_theta", 1, 1e30, theta, err);
}

vn_status vn_config_rope(const char *path, const json_t *o, int context, double partial, vn_rope *r, vn_error *err)
{
	const json_t *s = NULL;
	vn_status     st = rope_object(path, o, &s, err);
	int           width = r->rotary_dim;
	bool          factor_given;

	if (st)
		return st;
	r->max_context = context;
	r->original_context = 0;
	r->factor = 1.0;
	r->beta_fast = 32.0;
	r->beta_slow = 1.0;
	r->truncate = !json_is_null(json_object_get(s, "truncate")); /* null is false, as in transformers */
	if ((st = rope_theta(path, o, &r->theta, err)) || (st = rope_theta(path, s, &r->theta, err)) ||
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
		return vn_fail(err, VN_ERR_UNSUPPORTED,
		               "%s: the rotary width is %d (head width %d times %g), expected an even number of at least 2",
		               path, r->rotary_dim, width, partial);
	if (r->original_context == 0)
		r->original_context = context;
	factor_given = vn_json_field(s, "factor") != NULL;
	const bool ratio = r->type == VN_ROPE_LONGROPE ||
	                   (r->type == VN_ROPE_YARN && json_object_get(s, "factor")); /* null */
	if (!factor_given && ratio)
		r->factor = (double)context / r->original_context;
	else if (!factor_given && r->type != VN_ROPE_DEFAULT)
		return vn_fail(err, VN_ERR_FORMAT, "%s: the RoPE scaling has no factor", path);
	if (r->type == VN_ROPE_DYNAMIC && r->rotary_dim < 4)
		return vn_fail(err, VN_ERR_UNSUPPORTED,
		               "%s: dynamic RoPE with %d rotary columns is not supported (at least 4 are)", path,
		               r->rotary_dim);
	if (r->type == VN_ROPE_LONGROPE && r->original_context < 2)
		return vn_fail(err, VN_ERR_FORMAT, "%s: longrope needs an original_max_position_embeddings above 1", path);
	if (r->type == VN_ROPE_LLAMA3 && !(r->low_freq_factor > 0 && r->high_freq_factor > r->low_freq_factor))
		return vn_fail(err, VN_ERR_FORMAT, "%s: llama3 RoPE needs low_freq_factor and a larger high_freq_factor", path);
	return VN_OK;
}

static vn_status read_factors(const char *path, const json_t *settings, const char *key, int n, json_t **list,
                              vn_error *err)
{
	json_t *a = json_object_get(settings, key), *x;
	size_t  i;
	bool    good = json_is_array(a) && json_array_size(a) == (size_t)n;

	if (good)
		json_array_foreach(a, i, x)
			good = good && json_is_number(x) && json_number_value(x) >= 1e-6 && json_number_value(x) <= 1e9;
	if (!good)
		return vn_fail(err, VN_ERR_FORMAT, "%s: longrope's %s must be a list of %d numbers above 0", path, key, n);
	*list = a;
	return VN_OK;
}

vn_status vn_config_longrope(const char *path, const json_t *o, vn_config *c, vn_error *err)
{
	const json_t *s = NULL;
	vn_status     st = rope_object(path, o, &s, err);

	if (st || c->rope.type != VN_ROPE_LONGROPE)
		return st;
	if ((st = read_factors(path, s, "short_factor", c->rope.rotary_dim / 2, &c->short_factor, err)))
		return st;
	return read_factors(path, s, "long_factor", c->rope.rotary_dim / 2, &c->long_factor, err);
}

static int list_of(vn_builder *b, const json_t *numbers)
{
	float   few[256], *x = few;
	size_t  i, n = json_array_size(numbers);
	json_t *number;
	int     list = 0;

	if (n > sizeof few / sizeof *few && !(x = malloc(n * sizeof *x)))
		return 0; /* refused: a plan needs the list */
	json_array_foreach((json_t *)(size_t)numbers, i, number) x[i] = (float)json_number_value(number);
	list = vn_plan_list(b, (int)n, x);
	if (x != few)
		free(x);
	return list;
}

void vn_config_lists(vn_builder *b, vn_config *c)
{
	if (c->rope.type != VN_ROPE_LONGROPE)
		return;
	c->rope.short_factor = list_of(b, c->short_factor);
	c->rope.long_factor = list_of(b, c->long_factor);
}
