/* limits.h: what a comparison must keep to; the language is in specs/limits.md.
 *
 * A limits file is a list of rules. For a checkpoint all defaults are applied,
 * then every rule that matches its name, in order: the last one wins, key by
 * key. Files that are extended come first.
 *
 * Owner   a vn_limits owns its rules; pointers into it live until destroy.
 * Errors  FILE:LINE:COLUMN and what was expected there.
 */
#ifndef VN_COMPARE_LIMITS_H
#define VN_COMPARE_LIMITS_H

#include "compare/metrics/metrics.h"
#include "libref/base/digest.h"

/* In which form a metric is limited: as it is; as a multiple of the floor's
 * (nmse_over_floor); or as it is, but only where no floor is known. */
typedef enum vn_form {
	VN_PLAIN, VN_OVER_FLOOR, VN_WITHOUT_FLOOR, VN_N_FORMS,
	VN_OF_OPERATION = VN_N_FORMS, /* of what the operation itself added, over its floor: a replay's (by_operation.h), not in files */
} vn_form;

typedef struct vn_rule {
	char *file;       /* as it was opened */
	int   line;       /* where the rule starts */
	char *match;      /* NULL: defaults */
	char *why;        /* never empty in a rule; of defaults NULL: none given */
	char *why_of[2][VN_N_METRICS]; /* of a metric that rests on something else, [1] of its multiple of the floor; NULL: why */
	bool  shipped;    /* from a file that was extended, or from one of vernier's own */
	bool  hit;        /* it matched a checkpoint */
	struct {
		enum { VN_UNSAID, VN_SAID, VN_LIFTED } state;
		bool   deep;  /* by depth: value in the first layer, last in the last one */
		double value, last;
		int    line;
	} key[VN_N_FORMS][VN_N_METRICS];
	int missing, extra, constant; /* -1 unsaid, 0 refused, 1 allowed */
	int operation, accumulated;   /* -1 unsaid, 0 fail, 1 allowed */
} vn_rule;

typedef struct vn_limit {
	const vn_rule *rule; /* NULL: no limit */
	double value; /* at the checkpoint's depth */
	int    line;
} vn_limit;

/* What holds for one checkpoint. */
typedef struct vn_limit_set {
	vn_limit       limit[VN_N_FORMS][VN_N_METRICS];
	const vn_rule *missing, *extra, *constant, *operation; /* the rule that allows it, or NULL */
	const vn_rule *accumulated_fails; /* the rule that says so, or NULL */
} vn_limit_set;

typedef struct vn_limits {
	char     *name, *path;
	vn_digest digest;  /* of the text, and of what it extends */
	int       n_rules, n_warnings;
	int       layers;  /* of the model, for limits that go by depth; 0: not known, and every layer is the first */
	vn_rule **rule;
	char    **warning; /* lines for the person: limits that cannot fail... */
} vn_limits;

vn_status vn_limits_read(const char *path, vn_limits **l, vn_error *err);
/* The same; a path without a folder that is no file is the name of one of vernier's own, whose rules are `shipped`. */
vn_status vn_limits_open(const char *path, vn_limits **l, vn_error *err);
/* vernier's own that are in no file: rules have no line (0), and `name` is what stands in reports for their file. */
vn_status vn_limits_built_in(const char *name, const char *text, size_t n, vn_limits **l, vn_error *err);
/* The same from memory; path is for messages and for what it extends. */
vn_status vn_limits_parse(const char *path, const char *text, size_t n, vn_limits **l, vn_error *err);
void      vn_limits_destroy(vn_limits *l);

/* The one limit of --bitwise: nothing differs, and a NaN on both sides is no difference. */
vn_status vn_limits_bitwise(vn_limits **l, vn_error *err);
/* Does some rule limit this metric? */
bool      vn_limits_mention(const vn_limits *l, vn_metric m);
/* Does some rule limit a multiple of the floor? */
bool      vn_limits_ask_floor(const vn_limits *l);

/* A limit by depth, `first` in layer 0, `last` in layer `layers` - 1, by equal factors between them (of what must
 * be high: of the distance from 1). Outside layers: embeddings have the first, everything else the last. */
double    vn_limit_at_depth(vn_metric m, vn_form form, double first, double last, const char *name, int layers);

/* What the rule's limit of this metric in this form rests on; NULL: none given. */
const char *vn_rule_why(const vn_rule *r, vn_form form, vn_metric m);

/* Marks the rules it uses as hit. */
void      vn_limits_for(vn_limits *l, const char *name, vn_limit_set *set);

/* "nmse_over_floor" into text of VN_KEY_TEXT bytes; returns text. */
#define VN_KEY_TEXT 64
char     *vn_limit_key(vn_form form, vn_metric m, char *text);

/* Why nobody should write this limit, or NULL; an empty recording would keep to it, or no run can. */
const char *vn_limit_doubt(vn_form form, vn_metric m, double value);

/* Does the value keep to the limit? A NaN never does. */
bool      vn_limit_holds(vn_metric m, vn_form form, double limit, double value);
/* What is held against a limit: the metric, or its distance from 1. */
double    vn_limit_subject(vn_metric m, vn_form form, double value);

/* A limits file of vernier's own ("fp16-acc32.yaml") by its name: in
 * $VERNIER_SPECS/limits alone when that is set; else beside the program (as
 * installed, or in a build tree), where it was to be installed, or in the tree
 * it was built from. path: PATH_MAX bytes. */
vn_status vn_limits_find(const char *name, char *path, vn_error *err);
/* One of vernier's own files, read. */
vn_status vn_limits_shipped(const char *file, vn_limits **l, vn_error *err);
/* Which of them is for weights stored as format says ("gguf Q4_K, Q6_K, F32") against unquantised ones; NULL: none.
 * family: "qwen2"..., or NULL. */
const char *vn_limits_of_blocks(const char *format, const char *family);
/* Vernier's own for a precision, in the words of engines: "f16", "torch.bfloat16". family: as above. */
vn_status vn_limits_own(const char *precision, const char *family, vn_limits **l, vn_error *err);

#endif
