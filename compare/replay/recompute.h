/* recompute.h: one checkpoint computed by any plan on what the candidate recorded.
 *
 * Values that the candidate captured whole are taken from its recording. Other values are computed, back to
 * captured ones. The plan may be a changed copy of the model's plan (libref/plan/fault.h). Values that the change
 * does not affect are computed once for all plans that are tried on a checkpoint.
 *
 * Operations are computed call by call, from the first recorded step on: keys of earlier steps are the candidate's
 * own, and states are carried from call to call. Only the rows of the checkpoint's own step are kept.
 *
 * Three kinds of values are never taken from the recording: the checkpoint itself, a value that was not measured, and
 * a value whose capture is wrong according to the replay (vn_replayed.captured).
 *
 * Owner    the comparison is borrowed; its opened.model must be open.
 * Threads  one at a time; it uses the comparison's own.
 */
#ifndef VN_COMPARE_RECOMPUTE_H
#define VN_COMPARE_RECOMPUTE_H

#include "compare/comparison/comparison.h"

typedef struct vn_recompute vn_recompute;

/* How numbers are rounded: as the candidate stores them; more precisely; as the candidate stores them, but with sums of
 * products in float16. */
typedef enum vn_recompute_as { VN_OWN_WIDTH, VN_FINE_WIDTH, VN_HALF_SUMS, VN_N_WIDTHS } vn_recompute_as;

/* Where it stands. The pointer to it stays valid; what it holds changes with every vn_recompute_at. */
typedef struct vn_site {
	const vn_plan   *plan;    /* the model's, and its weights */
	const vn_tensor *weights;
	int              target;  /* the checkpoint's value, aliases resolved */
	vn_tensor        cand;    /* the candidate's numbers of it, those rows that a run gives (of scores over a vocabulary a sample) */
	const char      *axes;
	int64_t          first;   /* its first row is the token at this position */
	int64_t          tokens;  /* of all steps up to its own */
	int             *span, n_span; /* the nodes between it and what is captured, its own first */
} vn_site;

vn_status vn_recompute_create(vn_comparison *c, vn_recompute **p, vn_error *err);
void      vn_recompute_destroy(vn_recompute *p);

/* Turns to a checkpoint, and forgets what was computed for the one before. VN_ERR_UNSUPPORTED: it cannot be computed (no
 * value of the plan, steps that do not follow each other). */
vn_status vn_recompute_at(vn_recompute *p, int point, vn_error *err);
const vn_site *vn_recompute_site(const vn_recompute *p);
/* Does another plan, with the same values, change anything that the checkpoint is computed from? */
bool      vn_recompute_touched(vn_recompute *p, const vn_plan *plan, const vn_tensor *weights);
/* Fills *out with the checkpoint as plan and weights make it; the caller frees out->data. VN_ERR_UNSUPPORTED: the plan makes
 * no such checkpoint, or one of another shape. */
vn_status vn_recompute_run(vn_recompute *p, const vn_plan *plan, const vn_tensor *weights, vn_recompute_as as, vn_tensor *out, vn_error *err);
/* Fills *out as the plan makes it where slot j holds the key of token keys[j], the value of values[j] (as many as there are tokens; NULL: of j),
 * or 0 (less than 0); the checkpoint is an attention's. */
vn_status vn_recompute_run_slots(vn_recompute *p, const vn_plan *plan, const int64_t *keys, const int64_t *values, vn_recompute_as as, vn_tensor *out, vn_error *err);
/* Was it captured whole in all steps up to the checkpoint's? */
bool      vn_recompute_has(const vn_recompute *p, int value);
/* A quick look, to sort out most of a hundred plans: computes a few tokens, each by itself, and gives the nmse of their
 * rows. VN_ERR_UNSUPPORTED: the checkpoint is not made token by token. */
vn_status vn_recompute_glance(vn_recompute *p, const vn_plan *plan, const vn_tensor *weights, double *off, vn_error *err);
/* An input of the checkpoint's node as the unmodified plan has it: all tokens of all steps, in the width of `as`; its own. */
vn_status vn_recompute_input(vn_recompute *p, int input, vn_recompute_as as, vn_tensor *out, vn_error *err);

#endif
