/* family.h: the families of models, and the function that finds one.
 *
 * Each family is one file, which reads the fields of config.json that it knows and builds the plan.
 * To add a family, add a file and a row in family.c.
 */
#ifndef VN_LIBREF_FAMILY_FAMILY_H
#define VN_LIBREF_FAMILY_FAMILY_H

#include "libref/plan/plan.h"

#include <jansson.h>

/* How files spell the names of a family's weights. Lists end with NULL. */
typedef struct vn_naming {
	/* the prefix of the plan's names, except of those outside the trunk (lm_head) */
	const char        *stem;
	/* prefixes that files may have instead; the first that finds a weight is used for all */
	const char *const *prefixes;
	/* globs of file names to ignore: buffers of old files, other modalities */
	const char *const *ignored;
	/* a file may contain `copy`, equal to `original`, for a plan that does not read it */
	const char        *copy, *original;
} vn_naming;

typedef struct vn_family {
	const char      *model_type; /* as config.json spells it */
	const vn_naming *naming;
	/* path: for messages. */
	vn_status (*plan)(const char *path, const json_t *config, vn_plan **plan, vn_error *err);
	bool recurrent; /* has layers of Gated DeltaNet, which multiply the error that a format causes */
} vn_family;

/* Finds the family by the config's model_type; an unknown one is an error that names it. */
vn_status vn_family_find(const char *path, const json_t *config, const vn_family **family, vn_error *err);

/* Builds the plan from the text of a config; NULL: it is not a supported model. *family: its
 * model_type, or NULL. */
vn_plan *vn_family_plan(const char *config, const char **family);

/* Whether a model_type, or a longer word that begins with it ("qwen3_5_moe"), is of a recurrent
 * family: for runs whose plan is not known. NULL: no. */
bool vn_family_is_recurrent(const char *model_type);

vn_status vn_plan_gpt2(const char *path, const json_t *config, vn_plan **plan, vn_error *err);
vn_status vn_plan_qwen2(const char *path, const json_t *config, vn_plan **plan, vn_error *err);
vn_status vn_plan_qwen3(const char *path, const json_t *config, vn_plan **plan, vn_error *err);
vn_status vn_plan_qwen3_5(const char *path, const json_t *config, vn_plan **plan, vn_error *err);
vn_status vn_plan_llama(const char *path, const json_t *config, vn_plan **plan, vn_error *err);
vn_status vn_plan_mistral(const char *path, const json_t *config, vn_plan **plan, vn_error *err);

#endif
