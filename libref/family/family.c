/* family.c: see family.h. */
#include "libref/family/family.h"

#include "libref/base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const vn_family *const families[] = {
#define FAMILY(name) &vn_family_##name,
#include "libref/family/family.def"
};

const vn_family *vn_family_at(int i)
{
	return i >= 0 && (size_t)i < sizeof families / sizeof *families ? families[i] : NULL;
}

const vn_family *vn_family_named(const char *model_type)
{
	for (size_t i = 0; model_type && i < sizeof families / sizeof *families; i++)
		if (strcmp(families[i]->model_type, model_type) == 0)
			return families[i];
	return NULL;
}

const vn_family *vn_family_of_arch(const char *arch)
{
	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		if (families[i]->gguf.arch && strcmp(families[i]->gguf.arch, arch) == 0)
			return families[i];
	return NULL;
}

bool vn_respell(const char *from, const char *to, const char *name, char *out, size_t room, long *expert)
{
	const char  *star = strchr(from, '*'), *into = strchr(to, '*');
	const size_t n = star ? (size_t)(star - from) : strlen(from);
	char        *end = NULL;

	*expert = 0;
	if (strncmp(name, from, n) != 0)
		return false;
	if (star) {
		*expert = strtol(name + n, &end, 10);
		if (end == name + n || strcmp(end, star + 1) != 0)
			return false;
	} else if (name[n])
		return false;
	if (into)
		snprintf(out, room, "%.*s%ld%s", (int)(into - to), to, *expert, into + 1);
	else
		snprintf(out, room, "%s", to);
	return true;
}

const char *vn_after_layer(const char *name, const vn_naming *n)
{
	const char  *layers = strncmp(name, VN_MTP_LAYERS, strlen(VN_MTP_LAYERS)) == 0 ? VN_MTP_LAYERS : n->layers;
	const size_t length = strlen(layers);
	const char  *p = name + length;

	if (strncmp(name, layers, length) != 0)
		return NULL;
	while (*p >= '0' && *p <= '9')
		p++;
	return *p == '.' ? p + 1 : NULL;
}

vn_status vn_family_find(const char *path, const json_t *config, const vn_family **family, vn_error *err)
{
	const char *type = json_string_value(json_object_get(config, "model_type"));
	char        known[256] = "";

	if (!type)
		return vn_fail(err, VN_ERR_FORMAT, "%s: model_type is missing", path);
	if ((*family = vn_family_named(type)))
		return VN_OK;
	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", families[i]->model_type);
	return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: model_type '%s' is not supported (known: %s). " VN_FAMILY_NONE, path,
	               type, known);
}

vn_plan *vn_family_plan(const char *config, const char **family)
{
	const vn_family *f = NULL;
	vn_plan         *plan = NULL;
	VN_OWNED json_t *json = vn_json_parse(config, JSON_REJECT_DUPLICATES);

	if (json && vn_family_find("config", json, &f, NULL) == VN_OK && f->plan("config", json, &plan, NULL) != VN_OK)
		plan = NULL;
	if (family)
		*family = plan ? f->model_type : NULL;
	return plan;
}

bool vn_family_is_recurrent(const char *model_type)
{
	for (size_t i = 0; model_type && i < sizeof families / sizeof *families; i++)
		if (families[i]->recurrent &&
		    strncmp(model_type, families[i]->model_type, strlen(families[i]->model_type)) == 0)
			return true;
	return false;
}
