/* limits_use.h: what a limits file does at a set of checkpoints: which rule matches which, which
 * limit finally holds there, and which limits are useless.
 *
 * With a recording, each limit is tried on the recording's tensors. A limit that a tensor breaks when
 * it is merely rounded to the candidate's format cannot hold: no candidate in that format is closer.
 * A limit that zeros in the tensor's place keep cannot fail.
 *
 * Owner   limits, recording and names are borrowed and must outlive it.
 */
#ifndef VN_COMPARE_LIMITS_USE_H
#define VN_COMPARE_LIMITS_USE_H

#include "capture/recording/recording.h"
#include "compare/limits/limits.h"
#include "compare/text/lines.h"

#include <stdio.h>

typedef struct vn_key_use {
	int         holds;          /* checkpoints where this is the limit that holds */
	const vn_rule *instead;     /* of the others, the rule whose limit holds (or lifts it) at the first */
	int         tensors, zeros; /* tensors it was tried on; those where zeros keep to it */
	const char *broken;         /* the first that rounding breaks; NULL */
	double      value;          /* there */
} vn_key_use;

typedef struct vn_rule_use {
	int        matches; /* checkpoints */
	vn_key_use key[VN_N_FORMS][VN_N_METRICS];
} vn_rule_use;

typedef struct vn_limits_use {
	vn_limits    *limits;
	vn_recording *recording; /* NULL: names alone */
	const char  **name;      /* (n) in execution order, each once */
	int           n;
	vn_rule_use **rule;      /* (limits->n_rules) */
	vn_lines      warnings;
} vn_limits_use;

/* name, n: of no recording. as: the candidate's format; NULL: as recorded. u: zeroed, with limits, and recording or
 * names; vn_limits_use_free afterwards, whatever happened. */
vn_status vn_limits_use_of(vn_limits_use *u, const vn_dtype *as, int threads, vn_error *err);
void      vn_limits_use_free(vn_limits_use *u);

/* Does a limit of this metric in this rule say anything of this checkpoint? Metrics of logits in defaults do of logits alone. */
bool      vn_rule_speaks(const vn_rule *r, vn_metric m, const char *name);

/* Rule by rule, for a person; schema vernier-limits/1 (specs/limits.md). */
void      vn_limits_use_text(const vn_limits_use *u, FILE *out);
vn_status vn_limits_use_json(const vn_limits_use *u, FILE *out, vn_error *err);

#endif
