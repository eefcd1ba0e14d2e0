/* limits.h: the limits that a comparison must keep to. The language is described in
 * specs/limits.md.
 *
 * A limits file is a list of rules. For a checkpoint, all defaults are applied first, then every
 * rule that matches its name, in order; the last one wins, key by key. Rules of an extended file
 * come before those of the file itself.
 *
 * Owner   a vn_limits owns its rules; pointers into it live until vn_limits_destroy.
 * Errors  FILE:LINE:COLUMN and what was expected there.
 */
#pragma once

#include "compare/metrics/metrics.h"
#include "compare/text/lines.h"
#include "libref/base/digest.h"

/* How a metric is limited: the metric itself; its ratio to the floor's (nmse_over_floor); or the
 * metric itself, but only if no floor is known. */
typedef enum vn_form {
	VN_PLAIN,
	VN_OVER_FLOOR,
	VN_WITHOUT_FLOOR,
	VN_N_FORMS,
	/* the error that the operation itself added, over its floor (by_operation.h); not in files */
	VN_OF_OPERATION = VN_N_FORMS,
} vn_form;

/* What a rule may allow, or refuse again, by a word: `missing: allowed`. */
typedef enum vn_permission {
	VN_PERMIT_MISSING,
	VN_PERMIT_EXTRA,
	VN_PERMIT_CONSTANT,
	VN_PERMIT_OPERATION,
	VN_PERMIT_ACCUMULATED,
	VN_N_PERMISSIONS
} vn_permission;

typedef struct vn_permission_info {
	const char *key, *refusal; /* the word for what is not allowed */
	bool        by_default;    /* allowed unless a rule refuses it */
} vn_permission_info;
const vn_permission_info *vn_permission_get(vn_permission p);

typedef struct vn_rule {
	char *file;  /* the path that was opened */
	int   line;  /* where the rule starts */
	char *match; /* NULL: defaults */
	char *why;   /* reason; never empty in a rule; NULL: defaults without a reason */
	/* reason of a single metric, if it has its own; [1]: of its ratio to the floor; NULL: why */
	char *why_of[2][VN_N_METRICS];
	bool  shipped; /* from an extended file, or one of vernier's own */
	bool  hit;     /* it matched a checkpoint */
	struct {
		enum { VN_UNSAID, VN_SAID, VN_LIFTED } state;
		bool   deep; /* by depth: value holds in the first layer, last in the last one */
		double value, last;
		int    line;
	} key[VN_N_FORMS][VN_N_METRICS];
	int permission[VN_N_PERMISSIONS]; /* -1 not set, 0 refused, 1 allowed */
} vn_rule;

typedef struct vn_limit {
	const vn_rule *rule;  /* NULL: no limit */
	double         value; /* at the checkpoint's depth */
	int            line;
} vn_limit;

/* The limits of one checkpoint. */
typedef struct vn_limit_set {
	vn_limit       limit[VN_N_FORMS][VN_N_METRICS];
	/* the rule that changes it from what it is by default; NULL: none */
	const vn_rule *permission[VN_N_PERMISSIONS];
} vn_limit_set;

typedef struct vn_limits {
	char     *name, *path;
	vn_digest digest; /* of the text, including extended files */
	int       n_rules;
	/* of the model, for limits by depth; 0: not known, every layer counts as the first */
	int       layers;
	vn_rule **rule;
	vn_lines  warnings; /* for example about limits that cannot fail */
} vn_limits;

/* Reads a limits file. The caller destroys *l. */
vn_status vn_limits_read(const char *path, vn_limits **l, vn_error *err);
/* Same; if path names no file and has no folder, it is the name of one of vernier's own files.
 * Their rules are `shipped`. */
vn_status vn_limits_open(const char *path, vn_limits **l, vn_error *err);
/* Parses limits that are built into the program, not in a file: rules have line 0, and reports show
 * `name` as the file. */
vn_status vn_limits_built_in(const char *name, const char *text, size_t n, vn_limits **l, vn_error *err);
/* Parses limits from memory (n bytes). path is used in messages and to find extended files. */
vn_status vn_limits_parse(const char *path, const char *text, size_t n, vn_limits **l, vn_error *err);
void      vn_limits_destroy(vn_limits *l);

/* Creates the limits of --bitwise: no element may differ. A NaN on both sides does not differ. */
vn_status vn_limits_bitwise(vn_limits **l, vn_error *err);
/* Does some rule limit this metric? */
bool      vn_limits_mention(const vn_limits *l, vn_metric m);
/* Does some rule limit a multiple of the floor? */
bool      vn_limits_ask_floor(const vn_limits *l);

/* Returns the reason for the rule's limit of this metric in this form; NULL: none was given. */
const char *vn_rule_why(const vn_rule *r, vn_form form, vn_metric m);

/* Fills *set with the limits of the checkpoint `name`. Marks the rules that match as `hit`. */
void vn_limits_for(vn_limits *l, const char *name, vn_limit_set *set);

/* Writes the key, such as "nmse_over_floor", to text (VN_KEY_TEXT bytes). Returns text. */
#define VN_KEY_TEXT 64
char *vn_limit_key(vn_form form, vn_metric m, char *text);

/* Returns why this limit is useless (even an empty recording keeps to it, or no run can), or
 * NULL. */
const char *vn_limit_doubt(vn_form form, vn_metric m, double value);

/* Does the value keep to the limit? NaN never does. */
bool   vn_limit_holds(vn_metric m, vn_form form, double limit, double value);
/* Returns the quantity that the limit bounds: the value, or its distance from 1. */
double vn_limit_subject(vn_metric m, vn_form form, double value);

/* Finds one of vernier's own limits files ("fp16-acc32.yaml") by name. path: PATH_MAX bytes. Only
 * in $VERNIER_SPECS/limits if that is set; else next to the program (installed, or in a build
 * tree), in the installation directory, or in the source tree. */
vn_status   vn_limits_find(const char *name, char *path, vn_error *err);
/* Reads one of vernier's own files. */
vn_status   vn_limits_shipped(const char *file, vn_limits **l, vn_error *err);
/* Returns the name of vernier's file for weights stored as `format` ("gguf Q4_K, Q6_K, F32")
 * against unquantised ones; NULL: none. family: "qwen2"..., or NULL. */
const char *vn_limits_of_blocks(const char *format, const char *family);
/* Reads vernier's own limits for a precision in an engine's words: "f16", "torch.bfloat16". family:
 * as above. */
vn_status   vn_limits_own(const char *precision, const char *family, vn_limits **l, vn_error *err);
