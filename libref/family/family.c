/* family.c: see family.h. */
#include "libref/family/family.h"

#include "libref/base/json.h"

#include <stdio.h>
#include <string.h>

#define LIST(...) \
	(const char *const[]) \
	{ \
		__VA_ARGS__, NULL \
	}

/* All families but GPT-2. */
static const vn_naming model_naming = {
	.stem = "model.",
	.prefixes = LIST("model.", "", "transformer.", "model.language_model.", "language_model.model.", "model.model."),
	/* the next-token module and the vision tower of Qwen3.5; buffers in old files */
	.ignored = LIST("mtp.*", "model.visual.*", "visual.*", "*.rotary_emb.inv_freq"),
	.copy = "lm_head.weight",
	.original = "model.embed_tokens.weight",
};

static const vn_naming gpt2_naming = {
	.stem = "transformer.",
	.prefixes = LIST("transformer.", "", "model.", "model.transformer."),
	/* the causal mask and its fill value, stored as buffers */
	.ignored = LIST("*h.*.attn.bias", "*h.*.attn.masked_bias"),
	.copy = "lm_head.weight",
	.original = "transformer.wte.weight",
};

static const vn_family families[] = {
	{ "gpt2", &gpt2_naming, vn_plan_gpt2, false },
	{ "llama", &model_naming, vn_plan_llama, false },
	{ "mistral", &model_naming, vn_plan_mistral, false },
	{ "qwen2", &model_naming, vn_plan_qwen2, false },
	{ "qwen3", &model_naming, vn_plan_qwen3, false },
	{ "qwen3_5", &model_naming, vn_plan_qwen3_5, true },
	{ "qwen3_5_text", &model_naming, vn_plan_qwen3_5, true },
};

vn_status vn_family_find(const char *path, const json_t *config, const vn_family **family, vn_error *err)
{
	const char *type = json_string_value(json_object_get(config, "model_type"));
	char        known[128] = "";

	if (!type)
		return vn_fail(err, VN_ERR_FORMAT, "%s: model_type is missing", path);
	for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
		if (strcmp(families[i].model_type, type) == 0) {
			*family = &families[i];
			return VN_OK;
		}
		snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", families[i].model_type);
	}
	return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: model_type '%s' is not supported (known: %s)", path, type, known);
}

vn_plan *vn_family_plan(const char *config, const char **family)
{
	const vn_family *f = NULL;
	vn_plan         *plan = NULL;
	json_t          *json = vn_json_parse(config, JSON_REJECT_DUPLICATES);

	if (json && vn_family_find("config", json, &f, NULL) == VN_OK && f->plan("config", json, &plan, NULL) != VN_OK)
		plan = NULL;
	if (family)
		*family = plan ? f->model_type : NULL;
	json_decref(json);
	return plan;
}

bool vn_family_is_recurrent(const char *model_type)
{
	for (size_t i = 0; model_type && i < sizeof families / sizeof *families; i++)
		if (families[i].recurrent && strncmp(model_type, families[i].model_type, strlen(families[i].model_type)) == 0)
			return true;
	return false;
}
