/* config_refuse.c: rejects settings that a family does not obey, see config.h. */
#include "libref/family/config.h"

#include "libref/base/json.h"
#include "libref/base/text.h"

#include <stdlib.h>
#include <string.h>

/* Settings that none of our families obeys. transformers obeys the first two in every family. It
 * reads the others in some families and ignores them in ours, where engines that obey them would
 * run another model. */
static const vn_setting foreign[] = {
	{ "is_causal", VN_ONLY_TRUE, NULL },
	{ "per_layer_config", VN_NOTHING, NULL },
	{ "use_bidirectional_attention", VN_FALSE, NULL },
	{ "attention_chunk_size", VN_NOTHING, NULL },
	{ "rope_interleaved", VN_FALSE, NULL },
	{ "embedding_multiplier", VN_ONE, NULL },
	{ "residual_multiplier", VN_ONE, NULL },
	{ "attention_multiplier", VN_NOTHING, NULL },
	{ "logit_scale", VN_ONE, NULL },
	{ "logits_scaling", VN_ONE, NULL },
	{ "clip_qkv", VN_NOTHING, NULL },
	{ 0 },
};

static bool changes_nothing(const json_t *v, vn_harmless value)
{
	if (!v || value == VN_ONLY_TRUE)
		return !v || json_is_true(v);
	if (json_is_null(v))
		return true;
	if (value == VN_ONE)
		return json_is_number(v) && json_number_value(v) == 1.0;
	return json_is_false(v) || (value == VN_NOTHING && ((json_is_number(v) && json_number_value(v) == 0.0) ||
	                                                    (json_is_object(v) && !json_object_size(v)) ||
	                                                    (json_is_array(v) && !json_array_size(v))));
}

static bool obeys(const vn_family *f, const char *key)
{
	for (const vn_setting *s = f->obeys; s && s->key; s++)
		if (strcmp(s->key, key) == 0)
			return true;
	return false;
}

/* Rejects the settings of a list that the family does not obey. */
static vn_status refuse_list(const char *path, const vn_family *f, const vn_setting *s, const json_t *o, vn_error *err)
{
	for (; s && s->key; s++) {
		const json_t *v = json_object_get(o, s->key);
		if (changes_nothing(v, s->harmless) || obeys(f, s->key) ||
		    (s->unless && json_is_false(json_object_get(o, s->unless))))
			continue;
		if (strcmp(s->key, VN_MTP_KEY) == 0)
			return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: --mtp: a %s model has no multi-token-prediction head", path,
			               f->model_type);
		char           number[32];
		VN_FREED char *said = json_is_real(v) ? strdup(vn_text_number(json_real_value(v), number))
		                      : json_is_object(v) || json_is_array(v) ? NULL
		                                                              : vn_json_dump(v, JSON_ENCODE_ANY);
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: %s%s%.40s is not supported", path, s->key, said ? " " : "",
		               said ? said : "");
	}
	return VN_OK;
}

vn_status vn_config_refuse(const char *path, const vn_family *f, const json_t *o, vn_error *err)
{
	const json_t *text = json_object_get(o, "text_config"), *quantised = json_object_get(o, "quantization_config");
	const char   *method = json_string_value(json_object_get(quantised, "quant_method"));
	vn_status     st;

	if (method && strcmp(method, "mxfp4") == 0)
		return vn_fail(
			err, VN_ERR_UNSUPPORTED,
			"%s: quantization_config: weights in MXFP4 are not supported; to write them in bfloat16, in Python: "
			"AutoModelForCausalLM.from_pretrained(DIR, "
			"quantization_config=Mxfp4Config(dequantize=True)).save_pretrained(OUT, save_original_format=False)",
			path);
	if (quantised && !json_is_null(quantised))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: quantization_config: quantised weights are not supported", path);
	if ((st = refuse_list(path, f, foreign, o, err)))
		return st;
	for (int i = 0; vn_family_at(i); i++)
		if ((st = refuse_list(path, f, vn_family_at(i)->obeys, o, err)))
			return st;
	return json_is_object(text) ? vn_config_refuse(path, f, text, err) : VN_OK;
}
