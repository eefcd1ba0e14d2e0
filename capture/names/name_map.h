/* name_map.h: renames another engine's tensors to vernier's checkpoints (specs/names.md).
 *
 * A map is a YAML file of rules. A rule says which tensors of a recording it applies to (a glob,
 * with {n} for the number of the layer), their checkpoint names ({n-1}: layers count from 0), and
 * if necessary their axes. With axes, a rule can split a row that holds several heads, drop a batch
 * axis of length one, cut a fused product into its parts, or add two tensors. The first rule that
 * matches a name applies; names that no rule matches stay as they are.
 */
#pragma once

#include "capture/view/like.h"

enum { VN_MAP_NAMES = 16 }; /* the most names in a list of a rule */

typedef struct vn_name_map_rule {
	int   line, column;
	char *from;               /* the glob */
	char *plus[VN_MAP_NAMES]; /* (n_plus) further names to add to it, without wildcards */
	int   n_plus;
	char *to;    /* NULL: none */
	char *again; /* the checkpoint that `to` is a second recording of; NULL: none */
	/* the tensor is one of these two checkpoints, which its content decides (vn_name_map_apply);
	 * and the axes of each; NULL: not used */
	char *either[2], *either_axes[2];
	char *parts[VN_MAP_NAMES]; /* (n_parts) the parts that it is cut into, along `along` */
	int   n_parts;
	char *along;
	char *each; /* a pattern with {n}: one name per index of that axis; NULL */
	/* dims strings, with groups: "batch token (head dim)"; NULL: from the file or the point */
	char *axes, *to_axes;
	char *cut;         /* an axis; only its first indices are used; NULL */
	char *op, *family; /* globs: applies only to this operation, in this family; NULL: any */
	bool  ignore;      /* the tensor is dropped */
	/* applies only if the model, or else the other recording, has the checkpoint `to` */
	bool  in_model;
	bool  fallback; /* applies only if no other tensor is that checkpoint */
	/* if another tensor is that checkpoint, this one must have the same numbers */
	bool  copy;
} vn_name_map_rule;

typedef struct vn_name_map {
	char             *path, *name;
	vn_name_map_rule *rule;
	int               n;
} vn_name_map;

/* Opens one of vernier's own maps by its name without .yaml ("hf"); if vernier has no such map, it
 * is a file. A file called hf in the current folder is "./hf". */
vn_status vn_name_map_open(const char *name, vn_name_map **m, vn_error *err);
vn_status vn_name_map_parse(const char *path, const char *text, size_t n, vn_name_map **m, vn_error *err);
void      vn_name_map_destroy(vn_name_map *m);

/* Names of the shipped maps for engines; NULL ends them. */
extern const char *const vn_name_maps[];

/* Finds the shipped map that knows most of n names. *best: NULL if none knows half of them, else
 * its name, for vn_name_map_open; *fits: how many it knows. */
vn_status vn_name_map_fit(const char *const *name, int n, const char **best, int *fits, vn_error *err);

/* Does the rule's glob match? *n: the number that {n} stands for; -1: there is no {n}. */
bool        vn_name_map_rule_match(const vn_name_map_rule *rule, const char *name, int *n);
/* Expands {n}, {n-1}, {n+1}... in a pattern, into `to` (room bytes). Returns false if it is too
 * long or a number is below 0. */
bool        vn_name_map_name(const char *pattern, int n, char *to, size_t room);
/* Returns the first such {...} in a pattern, or NULL. *length: its length; *add: what it adds to
 * n. */
const char *vn_name_map_number(const char *pattern, size_t *length, int *add);

typedef struct vn_name_map_use {
	const vn_like *like; /* the lengths of axes */
	/* receives decisions made by content; NULL */
	void (*say)(void *context, const char *words);
	/* receives what a rule could not do; its tensors are then left out. NULL: this is an error */
	void (*trouble)(void *context, const char *words);
	void *context;
	/* out: tensors that rules matched, dropped, and those that no rule matched */
	int   mapped, ignored, left;
	/* out: matched, but left out because another tensor is that checkpoint */
	int   spare;
} vn_name_map_use;

/* Replaces *r by a derived recording with the names of the map; if no rule matches, *r stays as it
 * is. The caller closes *r, also after a failure, when it may be NULL.
 *
 * A tensor whose shape does not fit the axes of its rule keeps its shape under its new name.
 * `either` is decided by the equation layer{n}.attn_residual = layer{n}.input + x: if it holds with
 * the tensor as x, the tensor is the first of the two, else the second.
 *
 * Errors   two tensors that become one, copies that differ, parts that do not add up, an `either`
 *          that cannot be decided: file, line and column of the rule. */
vn_status vn_name_map_apply(const vn_name_map *m, vn_recording **r, vn_name_map_use *use, vn_error *err);
