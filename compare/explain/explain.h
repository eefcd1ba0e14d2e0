/* explain.h: which known mistake reproduces a tensor that came out wrong.
 *
 * Every fault of the catalogue (libref/plan/fault.h) that can be made at the operation of
 * an origin, or at one between it and what was captured, is a hypothesis: the checkpoint is
 * computed with that fault on the candidate's own inputs, in the candidate's precision
 * (recompute.h), and what the candidate has is held against it as a replay holds it against
 * the unmodified operation (local.h). A hypothesis explains the checkpoint when what is left
 * is within its floor, as of a healthy operation, and a quarter of the error at most (a sixteenth
 * of what was fitted, which has a number of its own to come near with, and of an error that is below 16 floors).
 *
 * Where several operations lie between the checkpoint and what was captured, one mistake is
 * tried at all of them at once, too, as an engine makes it: on queries and keys, in a layer, everywhere.
 *
 * Where none of the catalogue does, parameters are fitted (theta, eps, scales, an offset of
 * positions, a factor), and what the operation gives is tried in other arrangements; where some
 * heads alone came out otherwise, everything is tried in these. Where none of these does, the error is put into words.
 *
 * An answer should hold in all steps of its point (across_steps.h). A hypothesis is contradicted by a step
 * that is right although the mistake would change it, and by a step that is wrong in another way.
 * Contradicted hypotheses come last.
 *
 * Hypotheses that explain it and leave less than VN_EXPLAIN_APART times as much as the best
 * cannot be told from it by these numbers: aliases.
 *
 * Reads   request.options, opened.cand, opened.model, opened.policy, result.origins and the replayed checkpoints
 * Fills   a vn_explanations (result.why)
 */
#ifndef VN_COMPARE_EXPLAIN_H
#define VN_COMPARE_EXPLAIN_H

#include "compare/explain/hypothesis.h"

#define VN_EXPLAIN_APART 2.0
/* Residuals below this many floors count as equal: reproducing the bits is no better than coming as near as rounding does. */
#define VN_EXPLAIN_LEAST 0.25

typedef struct vn_explanation {
	int            point;
	vn_hypothesis *by;       /* what was tried, those that leave least first: VN_EXPLAIN_KEPT at most */
	int            n;
	int            n_tried;  /* faults of the catalogue that fit some place */
	int            n_fit;    /* how many of them explain it */
	int            n_alias;  /* how many of these, from the first, cannot be told apart; 1: a clear answer */
	double         margin;   /* residual of the first that is no alias, over that of the best; INFINITY: none was tried */
	bool           fitted;   /* no fault of the catalogue explains it as it stands */
	vn_hypothesis  unmodified;    /* the residual of the unmodified operation */
	char           separate[240]; /* the input that would tell aliases apart; "" */
	char           why_not[200];  /* why it cannot be recomputed; "" */
	int            like;     /* the explanation that holds here, too, so that not everything was tried: an index; -1 */
	vn_lines       looks;    /* the error in words, where nothing fits */
} vn_explanation;

enum { VN_EXPLAIN_KEPT = 8 };

typedef struct vn_explanations {
	vn_explanation *of;      /* an origin each, in their order */
	int             n;
	int             left_out; /* origins that were not examined, because there are too many */
} vn_explanations;

/* Explanations of c's origins, after vn_replay_run. Needs opened.model. vn_explanations_free afterwards, whatever happened. */
vn_status vn_explain(vn_comparison *c, vn_explanations *x, vn_error *err);
void      vn_explanations_free(vn_explanations *x);

/* The residual in floors. A healthy operation leaves at most 4. */
double vn_hypothesis_left(const vn_hypothesis *h);

#endif
