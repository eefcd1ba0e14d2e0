/* name_map.h: other engines' names for our checkpoints (specs/names.md).
 *
 * A map is a YAML file of rules. A rule says which tensors of a recording it speaks
 * of (a glob with {n} for the number of the layer), what they are called here ({n-1}: from 0 on), and
 * where needed what their axes are: then several tokens' heads in one row become
 * heads, a batch of one is dropped, a fused product is cut into its parts, two
 * tensors are added. The first rule that matches a name has it; names that no rule
 * matches stay as they are.
 */
#ifndef VN_CAPTURE_NAME_MAP_H
#define VN_CAPTURE_NAME_MAP_H

#include "capture/view/like.h"

typedef struct vn_map_rule {
	int    line, column;
	char  *from;          /* the glob */
	char **plus;          /* further names that are added to it, without wildcards */
	int    n_plus;
	char  *to;            /* NULL: none */
	char  *either[2], *either_axes[2]; /* one of these, by what it holds (vn_name_map_apply), and its axes; NULL: not so */
	char **parts;         /* cut along an axis into these */
	int    n_parts;
	char  *along;
	char  *each;          /* one for each index of that axis, which is then {n}; NULL */
	char  *axes, *to_axes; /* dims strings, with groups: "batch token (head dim)"; NULL: as the file or the point says */
	char  *cut;           /* an axis of which only the first are ours; NULL */
	char  *op, *family;   /* globs: only of this operation, in this family; NULL: any */
	bool   ignore;        /* nothing of ours */
	bool   fallback;      /* only where no other tensor is the same checkpoint */
	bool   copy;          /* the same numbers as the other tensor that is this checkpoint, where there is one */
} vn_map_rule;

typedef struct vn_name_map {
	char        *path, *name;
	vn_map_rule *rule;
	int          n, room;
} vn_name_map;

/* A file, or one of vernier's own by its name without .yaml ("hf"). */
vn_status vn_name_map_open(const char *name, vn_name_map **m, vn_error *err);
vn_status vn_name_map_parse(const char *path, const char *text, size_t n, vn_name_map **m, vn_error *err);
void      vn_name_map_destroy(vn_name_map *m);

/* Does the rule's glob match? *n: the number that {n} stands for; -1 where it has none. */
bool vn_map_rule_match(const vn_map_rule *rule, const char *name, int *n);
/* pattern with {n}, {n-1}, {n+1}... written out, into room bytes; false: too long, or a number below 0. */
bool vn_map_name(const char *pattern, int n, char *to, size_t room);
/* Where the first such word is, how long it is, what it adds to n; NULL: there is none. */
const char *vn_map_number(const char *pattern, size_t *length, int *add);

typedef struct vn_map_use {
	const vn_like      *like;   /* how long axes are */
	void              (*say)(void *context, const char *words); /* what was decided by content; NULL */
	void              (*trouble)(void *context, const char *words); /* what a rule could not do: its tensors are left out; NULL: it is an error */
	void               *context;
	int                 mapped, ignored, left; /* set: tensors that rules spoke of, dropped, and those of neither */
	int                 spare;  /* set: of those spoken of, left out since another tensor is that checkpoint */
} vn_map_use;

/* *r becomes a derived recording that the map's names are ours in; where no rule
 * matches anything it stays as it is. Also on failure *r is the caller's to close, and may be NULL.
 * A tensor whose shape does not fit what its axes say keeps its shape under its new name.
 * `either` is decided by layer{n}.attn_residual = layer{n}.input + it, which holds for the first
 * of the two or not, where these were recorded.
 * Errors   two tensors that become one, copies that differ, parts that do not add up, an `either` that nothing decides:
 *          file, line and column of the rule. */
vn_status vn_name_map_apply(const vn_name_map *m, vn_recording **r, vn_map_use *use, vn_error *err);

#endif
