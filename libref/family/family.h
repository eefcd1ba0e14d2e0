/* family.h: the families of models, one page each, and the way to find one.
 *
 * A page reads the fields of config.json that its family knows and builds the
 * plan. Adding a family is adding a page and a line in family.c.
 */
#ifndef VN_LIBREF_PLAN_FAMILY_H
#define VN_LIBREF_PLAN_FAMILY_H

#include "libref/plan/plan.h"

#include <jansson.h>

/* How files spell the names of a family's weights. Lists end with NULL. */
typedef struct vn_naming {
	const char        *stem;     /* how the plan's names begin, those outside the trunk (lm_head) excepted */
	const char *const *prefixes; /* what a file may have in its place; the first that finds a weight counts for all */
	const char *const *ignored;  /* globs, of the file's names: buffers of old files, other modalities */
	const char        *copy, *original; /* a plan that does not read `copy` may find it all the same: as `original` */
} vn_naming;

extern const vn_naming vn_naming_model; /* "model.": all but GPT-2 */
extern const vn_naming vn_naming_gpt2;  /* "transformer." */

typedef struct vn_family {
	const char      *model_type; /* as config.json spells it */
	const vn_naming *naming;
	/* path is for messages */
	vn_status (*plan)(const char *path, const json_t *config, vn_plan **plan, vn_error *err);
} vn_family;

/* By the config's model_type; an unknown one is refused by name. */
vn_status vn_family_find(const char *path, const json_t *config, const vn_family **family, vn_error *err);

/* The plan that the text of a config means; NULL where it means none of ours. family: its model_type, or NULL. */
vn_plan *vn_family_plan(const char *config, const char **family);

vn_status vn_plan_gpt2(const char *path, const json_t *config, vn_plan **plan, vn_error *err);
vn_status vn_plan_qwen2(const char *path, const json_t *config, vn_plan **plan, vn_error *err);
vn_status vn_plan_qwen3(const char *path, const json_t *config, vn_plan **plan, vn_error *err);
vn_status vn_plan_qwen3_5(const char *path, const json_t *config, vn_plan **plan, vn_error *err);
vn_status vn_plan_llama(const char *path, const json_t *config, vn_plan **plan, vn_error *err);
vn_status vn_plan_mistral(const char *path, const json_t *config, vn_plan **plan, vn_error *err);

#endif
