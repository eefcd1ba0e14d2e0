/* repair.h: which operations to replace to repair a run, and what that says about each.
 *
 * These runs are made and reported:
 *
 *   plain   the run as it is
 *   whole   with everything replaced
 *   found   the smallest sets of replacements that repair the run (isolate.h)
 *   probe   a found set without one of its members; the worst other operations, each replaced alone
 *   curve   the repair curve: divergence of the logits after replacing the k worst operations
 */
#ifndef VN_COMPARE_REPAIR_H
#define VN_COMPARE_REPAIR_H

#include "compare/isolate/experiment.h"
#include "compare/isolate/isolate.h"

#include <stdio.h>

enum { VN_MOST_PROBES = 12, VN_MOST_CURVE = 40 };

/* One toggle by itself. */
typedef struct vn_probe {
	int    toggle;
	int    set;     /* whose other members are replaced, and it is not; -1: it is replaced alone */
	bool   own;     /* its own checkpoints are within the limits then */
	int    outside; /* checkpoints that are not */
	double kl;
} vn_probe;

typedef struct vn_repaired {
	int    k, worst; /* toggles replaced; the last that joined them, -1: none */
	bool   within;
	int    outside;
	double kl;
} vn_repaired;

typedef struct vn_repair {
	vn_isolated found;
	vn_isolate_trial    plain, whole; /* with nothing and with everything replaced; whole.bad NULL: not run */
	int        *order;        /* (n) toggles, the worst first: where errors begin, then by error */
	int         n_order;      /* of them with an error */
	vn_probe    probe[VN_MOST_PROBES];
	int         n_probes;
	vn_repaired curve[VN_MOST_CURVE];
	int         n_curve;
} vn_repair;

/* vn_repair_finish in any case. Where runs are not compared there is but the search. */
vn_status vn_repair_find(vn_experiment *x, vn_repair *r, vn_error *err);
void      vn_repair_finish(vn_repair *r);

/* What a set says of its members, and a probe of its toggle: half a sentence. */
const char *vn_repair_says_set(const vn_isolated *f, int set);
const char *vn_repair_says_probe(const vn_probe *p);

/* The reports. */
typedef struct vn_repair_about {
	const char *model, *candidate, *precision; /* "gpu" or the command */
	int64_t     tokens; /* 0: the command's business */
	const char *source, *gpu; /* as vn_shell_runs takes them; source "": another engine ran */
} vn_repair_about;
void      vn_repair_text(const vn_repair_about *a, const vn_experiment *x, const vn_repair *r, FILE *out);
/* Schema vernier-isolate/1; see specs/isolate.md. */
vn_status vn_repair_json(const vn_repair_about *a, const vn_experiment *x, const vn_repair *r, FILE *out, vn_error *err);

#endif
