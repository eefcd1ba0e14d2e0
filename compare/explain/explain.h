/* explain.h: finds which known mistake reproduces a wrong tensor.
 *
 * The faults of the catalogue (libref/plan/fault.h) that can be made at the operation of an origin,
 * or at one between it and captured values, are the hypotheses. For each, the checkpoint is
 * computed with that fault from the candidate's own inputs, in the candidate's precision
 * (recompute.h), and compared with the candidate's numbers, as a replay compares the unmodified
 * operation (local.h). A hypothesis explains the checkpoint if the residual is no more than a
 * healthy operation leaves, and at most a quarter of the error; a sixteenth if a parameter was
 * fitted, since a free parameter always helps, or if the error is below 16 floors.
 *
 * If several operations lie between the checkpoint and captured values, one mistake is also tried
 * at all of them at once, as engines make it: on queries and keys, in a layer, everywhere.
 *
 * If no fault of the catalogue explains it, parameters are fitted (theta, eps, scales, an offset of
 * positions, a factor), and other arrangements of the operation's result are tried. If only some
 * heads are wrong, all of this is tried on those heads. If nothing fits, the error is described in
 * words.
 *
 * An answer should hold in all steps of its point (across_steps.h). A step contradicts a hypothesis
 * if it is right although the mistake would change it, or wrong in another way. Contradicted
 * hypotheses come last.
 *
 * Hypotheses that explain the checkpoint and leave less than VN_EXPLAIN_APART times the residual of
 * the best cannot be told from it by these numbers: aliases.
 *
 * Reads   request.options, opened.cand, opened.model, opened.policy, result.origins and the
 *         replayed checkpoints
 * Fills   a vn_explanations (result.why)
 */
#ifndef VN_COMPARE_EXPLAIN_H
#define VN_COMPARE_EXPLAIN_H

#include "compare/explain/hypothesis.h"

#define VN_EXPLAIN_APART 2.0
/* Residuals below this many floors count as equal: reproducing the bits is no better than agreeing
 * up to rounding. */
#define VN_EXPLAIN_LEAST 0.25

typedef struct vn_explanation {
	int            point;
	vn_hypothesis *by; /* hypotheses by increasing residual, at most VN_EXPLAIN_KEPT */
	int            n;
	int            n_tried; /* how many faults of the catalogue apply at some place */
	int            n_fit;   /* how many hypotheses explain it */
	int            n_alias; /* how many of those, from the first, are aliases; 1: a clear answer */
	/* residual of the first hypothesis that is not an alias / residual of the best; INFINITY: all are aliases */
	double         margin;
	bool           fitted;        /* no fault of the catalogue explains it without fitting */
	vn_hypothesis  unmodified;    /* its residual is that of the unmodified operation */
	char           separate[240]; /* the input that would separate the aliases; "" */
	char           why_not[200];  /* why the checkpoint cannot be recomputed; "" */
	/* index of the explanation that holds here too, so that little else was tried; -1 */
	int            like;
	vn_lines       looks; /* description of the error, if nothing fits */
} vn_explanation;

enum { VN_EXPLAIN_KEPT = 8 };

typedef struct vn_explanations {
	vn_explanation *of; /* one for each origin, in their order */
	int             n;
	int             left_out; /* origins that were not examined, because there are too many */
} vn_explanations;

/* Explains c's origins. Call after vn_replay_run; needs opened.model. Call vn_explanations_free
 * afterwards, also after a failure. */
vn_status vn_explain(vn_comparison *c, vn_explanations *x, vn_error *err);
void      vn_explanations_free(vn_explanations *x);

/* Returns the residual in floors. A healthy operation leaves at most 4. */
double vn_hypothesis_left(const vn_hypothesis *h);

#endif
