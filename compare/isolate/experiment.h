/* experiment.h: a run with some operations replaced by the reference, and what became of it.
 *
 * A toggle is a node of the model's plan, under the name of its first output. The
 * candidate is the GPU engine, in this process, or whatever a command runs: that one is
 * told in VERNIER_FORCE_REF which nodes to replace, names with commas between, and
 * answers by its exit status, 0 good and 1 bad, or by a recording. Recordings are
 * compared with the reference's of the same tokens, in float32, made once; the floor
 * is a run of the reference in the precision of what is replaced.
 *
 * Owner    what the options point at is borrowed.
 * Threads  one at a time.
 * Files    recordings lie in a directory of their own in $TMPDIR, removed by close.
 */
#ifndef VN_COMPARE_EXPERIMENT_H
#define VN_COMPARE_EXPERIMENT_H

#include "capture/run/run.h"
#include "compare/comparison/comparison.h"

#include <limits.h>
#include "libref/base/progress.h"

typedef struct vn_experiment_options {
	const vn_model     *model;
	vn_recipe           recipe;    /* the tokens and the points; not where it goes */
	vn_engine_options   cand;      /* of the GPU; quiet or not for all engines */
	const vn_policy    *as;        /* replaced nodes run in this precision; NULL: the candidate's */
	const char         *check;     /* a command instead of the GPU; NULL */
	const char         *recording; /* which it writes; NULL: its exit status is the answer */
	const char         *limits;    /* NULL: vernier's own for the candidate's precision */
	vn_compare_options  compare;
} vn_experiment_options;

typedef struct vn_experiment {
	vn_experiment_options o;
	const vn_plan *plan;
	int            n;              /* toggles */
	const int     *node;           /* (n) */
	const char   **name;           /* (n) */
	vn_progress    bar;
	int            runs;
	int            compared;       /* checkpoints, in the last run; 0: none are */
	char           limits[PATH_MAX]; /* that were kept to; empty: none yet */
	/* its own */
	int           *nodes;
	bool          *forced;         /* (n_nodes) */
	vn_engine      engine;
	char           dir[PATH_MAX], ref[PATH_MAX], floor[PATH_MAX], cand[PATH_MAX];
} vn_experiment;

/* What became of one run. */
typedef struct vn_isolate_trial {
	bool    within;
	int     outside;            /* checkpoints */
	char    first[VN_NAME_MAX + 24]; /* where it first goes wrong; empty */
	double  kl;                 /* mean over the rows of the logits; NaN: not known */
	/* (n) of the checkpoints that a toggle's node makes: */
	bool   *bad;                /* some is outside */
	bool   *origin;             /* some is where the comparison sees an error begin */
	double *error;              /* the largest nmse, in floors where there are; INFINITY: no numbers; 0: not compared */
} vn_isolate_trial;

/* Makes the reference run and the engine. vn_experiment_close in any case. */
vn_status vn_experiment_open(vn_experiment *x, const vn_experiment_options *o, vn_error *err);
void      vn_experiment_close(vn_experiment *x);
/* Are runs compared, or is there but a yes or no? */
bool      vn_experiment_compares(const vn_experiment *x);

/* With these toggles (n) on. *t: zeroed, or of an earlier run; vn_trial_finish afterwards. */
vn_status vn_experiment_run(vn_experiment *x, const bool *on, vn_isolate_trial *t, vn_error *err);
void      vn_trial_finish(vn_isolate_trial *t);

#endif
