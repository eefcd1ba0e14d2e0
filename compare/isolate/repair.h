/* repair.h: finds which operations to replace to repair a run, and what that says about each.
 *
 * It makes and reports these runs:
 *
 *   plain   the run as it is
 *   whole   with everything replaced
 *   own     with what the user's VERNIER_FORCE_REF replaces
 *   found   the smallest sets of replacements that repair the run (isolate.h)
 *   check   a found set without one of its members; the worst other operations, each replaced alone
 *   curve   the repair curve: divergence of the logits after replacing the k worst operations
 *
 * No set is run twice, except a found one (isolate.h).
 */
#pragma once

#include "compare/isolate/runner.h"
#include "compare/isolate/isolate.h"
#include "compare/text/lines.h"

#include <stdio.h>

enum { VN_MOST_REPAIR_CHECKS = 12, VN_MOST_CURVE = 40, VN_MOST_OWN = 8 };

/* A run that was made. */
typedef struct vn_repair_run {
	vn_isolate_trial t;
	bool             on[]; /* (n) */
} vn_repair_run;

/* A run about one toggle. */
typedef struct vn_repair_check {
	int                     toggle;
	/* the set whose other members are replaced; -1: this toggle alone is replaced */
	int                     set;
	const vn_isolate_trial *t;
} vn_repair_check;

/* A run with what one glob of VERNIER_FORCE_REF replaces, or all of them. */
typedef struct vn_repair_own {
	char                   *globs;
	bool                   *on; /* (n) */
	int                     n;  /* toggles */
	const vn_isolate_trial *t;
} vn_repair_own;

typedef struct vn_repaired {
	int                     k, worst; /* number of toggles replaced; the one added last, -1: none */
	const vn_isolate_trial *t;
} vn_repaired;

typedef struct vn_repair {
	vn_isolated             found;
	vn_repair_run         **past; /* all runs, except those that confirm a set; the others are among them */
	int                     n_past;
	/* without and with all toggles replaced; whole NULL: not run */
	const vn_isolate_trial *plain, *whole;
	vn_repair_own           own[VN_MOST_OWN + 1];
	int                     n_own;
	int                    *order;   /* (n) toggles: origins first, then by decreasing error */
	int                     n_order; /* how many of them have an error */
	vn_repair_check         check[VN_MOST_REPAIR_CHECKS];
	int                     n_checks;
	vn_repaired             curve[VN_MOST_CURVE];
	int                     n_curve;
} vn_repair;

/* Makes the runs. If runs are not compared, only the search is made. own: the user's list of
 * globs; NULL or "": none. Call vn_repair_finish afterwards, also after a failure. */
vn_status vn_repair_find(vn_runner *x, const char *own, vn_repair *r, vn_error *err);
void      vn_repair_finish(vn_repair *r);

/* Are the checkpoints of its toggle within the limits? */
bool        vn_repair_own_within(const vn_repair_check *p);
/* Half a sentence on what a set says about its members, and a check about its toggle. */
const char *vn_repair_says_set(const vn_runner *x, const vn_isolated *f, int set);
const char *vn_repair_says_check(const vn_repair_check *p);

/* The reports. */
typedef struct vn_repair_about {
	const char     *model, *candidate, *precision; /* "gpu" or the command */
	const char     *weights;                       /* as vn_model_provenance */
	int64_t         tokens;                        /* 0: known only to the command */
	const char     *source, *gpu;                  /* source "": another engine ran */
	const vn_lines *notes;                         /* what the user's settings gave */
} vn_repair_about;
void      vn_repair_text(const vn_repair_about *a, const vn_runner *x, const vn_repair *r, FILE *out);
/* Schema vernier-isolate/2; see specs/json.md. */
vn_status vn_repair_json(const vn_repair_about *a, const vn_runner *x, const vn_repair *r, FILE *out, vn_error *err);
