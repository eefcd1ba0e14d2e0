/* runner.h: runs a model with some operations replaced by the reference, and judges the outcome.
 *
 * A toggle is a node of the model's plan, named after its first output. The candidate is the GPU
 * engine, in this process, or any command. A command finds the names of the nodes to replace in
 * VERNIER_FORCE_REF, separated by commas, and answers by its exit status, 0 good and 1 bad, or by a
 * recording. Recordings are compared with one float32 run of the reference on the same tokens; the
 * floor is a run of the reference in the precision of the replaced nodes.
 *
 * Owner    what the options point to is borrowed.
 * Threads  call from one thread at a time.
 * Files    recordings are in a directory of their own in $TMPDIR, which vn_runner_close
 *          removes.
 */
#pragma once

#include "capture/run/run.h"
#include "compare/comparison/checkpoint.h"
#include "compare/result/words.h"

#include <limits.h>
#include "libref/base/progress.h"

typedef struct vn_runner_options {
	const vn_model    *model;
	vn_recipe          recipe; /* tokens and points; the output path is ignored */
	vn_engine_options  cand;   /* of the GPU; `quiet` applies to all engines */
	const vn_policy   *as;     /* replaced nodes run in this precision; NULL: the candidate's */
	const char        *check;  /* command to run instead of the GPU; NULL */
	/* the file that the command writes; NULL: its exit status is the answer */
	const char        *recording;
	const char        *limits; /* NULL: vernier's own for the candidate's precision */
	vn_compare_options compare;
} vn_runner_options;

typedef struct vn_runner {
	vn_runner_options o;
	const vn_plan    *plan;
	int               n;                 /* toggles */
	const int        *node;              /* (n) */
	const char      **name;              /* (n) */
	const int        *component, *layer; /* (n) the point (vn_point) of the first output; -1: outside layers */
	vn_progress       bar;
	int               runs, left;                  /* made; foreseen after the next one, set by the caller */
	int               compared;                    /* checkpoints in the last run; 0: nothing was compared */
	char              limits[PATH_MAX];            /* the limits in use; "": none yet */
	char              recorded_by[2][VN_RECORDER]; /* the reference and the candidate; "": nothing was compared */
	/* private */
	int              *nodes;  /* (3 n_nodes): of node, component, layer */
	bool             *forced; /* (n_nodes) */
	vn_engine         engine;
	char              dir[PATH_MAX], ref[PATH_MAX], floor[PATH_MAX], cand[PATH_MAX];
} vn_runner;

/* The outcome of one run. */
typedef struct vn_isolate_trial {
	bool    within;
	int     outside;         /* checkpoints */
	char    first[VN_LABEL]; /* first divergence; "": none */
	double  kl;              /* mean over the rows of the logits; NaN: not known */
	/* (n), about the checkpoints that the toggle's node makes: */
	bool   *bad;    /* one is outside */
	bool   *origin; /* one is an origin of the comparison */
	/* largest nmse, in floors if there are any; INFINITY: not finite; 0: not compared */
	double *error;
} vn_isolate_trial;

/* Makes the reference run and the engine. Call vn_runner_close afterwards, also after a
 * failure. */
vn_status vn_runner_open(vn_runner *x, const vn_runner_options *o, vn_error *err);
void      vn_runner_close(vn_runner *x);
/* Are runs compared as recordings? If not, the only answer is good or bad. */
bool      vn_runner_compares(const vn_runner *x);

/* Sets on[i] (n) for the toggles that a comma-separated list of globs selects. */
vn_status vn_runner_select(const vn_runner *x, const char *globs, bool *on, vn_error *err);
/* Returns the shortest list of globs that selects these toggles: "*.q_rope,layer{0,3}.k_rope". The
 * caller frees it; NULL: no memory. */
char     *vn_runner_switch(const vn_runner *x, const bool *on);

/* Runs with the toggles on[i] (n) replaced. *t: zeroed, or from an earlier run. Call
 * vn_isolate_trial_finish afterwards. */
vn_status vn_runner_run(vn_runner *x, const bool *on, vn_isolate_trial *t, vn_error *err);
void      vn_isolate_trial_finish(vn_isolate_trial *t);
