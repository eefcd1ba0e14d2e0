/* family.c: see family.h. */
#include "libref/plan/family.h"

#include <stdio.h>
#include <string.h>

static const vn_family families[] = {
	{ "qwen2", vn_plan_qwen2 },
};

vn_status vn_family_find(const char *path, const json_t *config, const vn_family **family, vn_error *err)
{
	const char *type = json_string_value(json_object_get(config, "model_type"));
	char        known[128] = "";

	if (!type)
		return vn_fail(err, VN_ERR_FORMAT, "%s: no model_type", path);
	for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
		if (strcmp(families[i].model_type, type) == 0) {
			*family = &families[i];
			return VN_OK;
		}
		snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", families[i].model_type);
	}
	return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: model_type '%s' is not supported (known: %s)", path, type, known);
}
