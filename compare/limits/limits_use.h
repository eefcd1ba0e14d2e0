/* limits_use.h: finds how a limits file applies to a set of checkpoints: which rules match, which
 * limit is the final one, and which limits are useless.
 *
 * With a recording, each limit is tried on the recording's tensors. A limit that a tensor breaks if
 * it is only rounded to the candidate's format cannot hold, because no candidate in that format is
 * closer. A limit that a tensor of zeros keeps cannot fail.
 *
 * Owner   limits, recording and names are borrowed and must outlive the vn_limits_use.
 */
#pragma once

#include "capture/recording/recording.h"
#include "compare/limits/limits.h"
#include "compare/text/lines.h"

#include <stdio.h>

typedef struct vn_key_use {
	int            holds; /* checkpoints where this limit is the final one */
	/* the rule that overrides it, at the first of the checkpoints where one does */
	const vn_rule *instead;
	/* tensors on which it was tried; tensors for which zeros keep to it */
	int            tensors, zeros;
	const char    *broken; /* the first tensor that rounding alone puts outside; NULL: none */
	double         value;  /* at that tensor */
} vn_key_use;

typedef struct vn_rule_use {
	int        matches; /* checkpoints that match */
	vn_key_use key[VN_N_FORMS][VN_N_METRICS];
} vn_rule_use;

typedef struct vn_limits_use {
	vn_limits    *limits;
	vn_recording *recording; /* NULL: only names */
	const char  **name;      /* (n) in execution order, without repetition */
	int           n;
	vn_rule_use  *rule; /* (limits->n_rules) */
	vn_lines      warnings;
} vn_limits_use;

/* Fills *u. Before: u zeroed, limits set, and either recording, or name and n. as: the candidate's
 * format; NULL: as recorded. Call vn_limits_use_free afterwards, also after a failure. */
vn_status vn_limits_use_of(vn_limits_use *u, const vn_dtype *as, int threads, vn_error *err);
void      vn_limits_use_free(vn_limits_use *u);

/* Does the rule match this name? Defaults match every name. */
bool vn_rule_matches(const vn_rule *r, const char *name);

/* Does the limit of metric m in this rule apply to this checkpoint? Metrics of logits in defaults
 * apply to logits only. */
bool vn_rule_speaks(const vn_rule *r, vn_metric m, const char *name);

/* Write it rule by rule, as text or as JSON (schema vernier-limits/1, specs/json.md). */
void      vn_limits_use_text(const vn_limits_use *u, FILE *out);
vn_status vn_limits_use_json(const vn_limits_use *u, FILE *out, vn_error *err);
