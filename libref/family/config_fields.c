/* config_fields.c: reads one field of config.json, see config.h. A field that is absent or null
 * keeps its default. */
#include "libref/family/config.h"

#include "libref/base/json.h"

#include <math.h>
#include <string.h>

vn_status vn_config_int(const char *path, const json_t *o, const char *key, int low, int high, int *out, vn_error *err)
{
	const json_t *v = vn_json_field(o, key);
	if (!v)
		return VN_OK;
	double x = json_number_value(v);
	if (!json_is_number(v) || x != floor(x) || !(x >= low && x <= high))
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s must be a whole number from %d to %d", path, key, low, high);
	*out = (int)x;
	return VN_OK;
}

vn_status vn_config_real(const char *path, const json_t *o, const char *key, double low, double high, double *out,
                         vn_error *err)
{
	const json_t *v = vn_json_field(o, key);
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
	const json_t *v = vn_json_field(o, key);
	if (!v)
		return VN_OK;
	if (!json_is_boolean(v))
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s must be true or false", path, key);
	*out = json_is_true(v);
	return VN_OK;
}

vn_status vn_config_act(const char *path, const json_t *o, const char *key, vn_act *act, vn_error *err)
{
	static const struct {
		const char *name;
		vn_act      act;
	} known[] = {
		{ "silu", VN_SILU },
		{ "swish", VN_SILU },
		{ "gelu", VN_GELU },
		{ "gelu_new", VN_GELU_TANH },
		{ "gelu_pytorch_tanh", VN_GELU_TANH },
	};
	const json_t *v = vn_json_field(o, key);

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

vn_status vn_config_text(const char *path, const json_t *o, const char *multimodal, const json_t **text, vn_error *err)
{
	const char *type = json_string_value(json_object_get(o, "model_type"));

	*text = type && strcmp(type, multimodal) == 0 ? json_object_get(o, "text_config") : o;
	if (!json_is_object(*text))
		return vn_fail(err, VN_ERR_FORMAT, "%s: a %s model needs a text_config", path, multimodal);
	return VN_OK;
}
