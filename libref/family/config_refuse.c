/* config_refuse.c: rejects settings that no supported family has, see config.h. */
#include "libref/family/config.h"

#include "libref/base/json.h"

#include <stdlib.h>

/* Values of a field that change nothing. */
typedef enum harmless {
	ONLY_TRUE, /* not null, which transformers takes for false */
	FALSE,
	ONE,
	NOTHING /* 0, or empty */
} harmless;

/* transformers obeys the first two in every family. It reads the others in some families and
 * ignores them in ours, where engines that obey them would run another model. */
/* clang-format off */
static const struct { const char *key; harmless value; } asked[] = {
	{ "is_causal", ONLY_TRUE }, { "per_layer_config", NOTHING },
	{ "use_bidirectional_attention", FALSE }, { "attention_chunk_size", NOTHING }, { "rope_interleaved", FALSE },
	{ "embedding_multiplier", ONE }, { "residual_multiplier", ONE }, { "attention_multiplier", NOTHING },
	  { "query_pre_attn_scalar", NOTHING },
	{ "logit_scale", ONE }, { "logits_scaling", ONE }, { "attn_logit_softcapping", NOTHING },
	  { "final_logit_softcapping", NOTHING },
};
/* clang-format on */

static bool changes_nothing(const json_t *v, harmless value)
{
	if (!v || value == ONLY_TRUE)
		return !v || json_is_true(v);
	if (json_is_null(v))
		return true;
	if (value == ONE)
		return json_is_number(v) && json_number_value(v) == 1.0;
	return json_is_false(v) || (value == NOTHING && ((json_is_number(v) && json_number_value(v) == 0.0) ||
	                                                 (json_is_object(v) && !json_object_size(v)) ||
	                                                 (json_is_array(v) && !json_array_size(v))));
}

vn_status vn_config_refuse(const char *path, const json_t *o, vn_error *err)
{
	const json_t *text = json_object_get(o, "text_config"), *quantised = json_object_get(o, "quantization_config");

	if (quantised && !json_is_null(quantised))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: quantization_config: quantised weights are not supported", path);
	for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
		const json_t *v = json_object_get(o, asked[i].key);
		if (changes_nothing(v, asked[i].value))
			continue;
		char     *said = json_is_object(v) || json_is_array(v) ? NULL : vn_json_dump(v, JSON_ENCODE_ANY);
		vn_status st = vn_fail(err, VN_ERR_UNSUPPORTED, "%s: %s%s%.40s is not supported", path, asked[i].key,
		                       said ? " " : "", said ? said : "");
		free(said);
		return st;
	}
	return json_is_object(text) ? vn_config_refuse(path, text, err) : VN_OK;
}
