/* probe.h: one checkpoint computed by any plan on what the candidate recorded.
 *
 * A value that the candidate captured whole is taken from its recording; any other is
 * computed, back to what was captured. The plan may be a changed copy of the model's
 * (libref/plan/fault.h): what it has in common with the sound plan is computed once
 * for all plans that are tried on a checkpoint.
 *
 * Operations are computed call by call, as the recorded steps were, from the first on: keys of
 * earlier steps are the candidate's own, and a state is carried from call to call. The
 * checkpoint's own rows are kept.
 *
 * Not taken from the recording: the checkpoint itself, what was not measured, and what a
 * replay found to be captured wrongly (vn_replayed.captured).
 *
 * Owner    the comparison is borrowed, with c->model open.
 * Threads  one at a time; it uses the comparison's own.
 */
#ifndef VN_COMPARE_PROBE_H
#define VN_COMPARE_PROBE_H

#include "compare/compare.h"

typedef struct vn_probe vn_probe;

/* As the candidate stores, and more precisely: the engines of a replay; as it stores, with the sums of products in float16. */
typedef enum vn_probe_as { VN_PROBE_OWN, VN_PROBE_FINE, VN_PROBE_HALF_SUMS, VN_PROBE_WIDTHS } vn_probe_as;

vn_status vn_probe_create(vn_comparison *c, vn_probe **p, vn_error *err);
void      vn_probe_destroy(vn_probe *p);

/* Turns to a checkpoint, and forgets what was computed for the one before. VN_ERR_UNSUPPORTED: it cannot be computed (no
 * value of the plan, steps that do not follow each other). */
vn_status vn_probe_at(vn_probe *p, int point, vn_error *err);
/* The nodes that stand between the checkpoint and what is captured, its own first; *n of them, the probe's. */
const int *vn_probe_span(vn_probe *p, int *n);
/* The model's plan and weights. */
const vn_plan   *vn_probe_plan(const vn_probe *p);
const vn_tensor *vn_probe_weights(const vn_probe *p);
/* The checkpoint's value, aliases resolved. */
int              vn_probe_target(const vn_probe *p);
/* The candidate's numbers of the checkpoint, those rows that a run gives (of scores over a vocabulary a sample). Valid until
 * the next vn_probe_at. */
const vn_tensor *vn_probe_candidate(const vn_probe *p);
const char      *vn_probe_axes(const vn_probe *p);
/* Its first row is the token at this position; the tokens there are up to the last of its step. */
int64_t          vn_probe_first(const vn_probe *p);
int64_t          vn_probe_tokens(const vn_probe *p);

/* Does the checkpoint come of anything that another plan, of the same values, has otherwise? */
bool      vn_probe_touched(vn_probe *p, const vn_plan *plan, const vn_tensor *weights);
/* Fills *out as plan and weights make the checkpoint; out->data is the caller's to free. VN_ERR_UNSUPPORTED: the plan makes it of
 * another shape, or not at all. */
vn_status vn_probe_run(vn_probe *p, const vn_plan *plan, const vn_tensor *weights, vn_probe_as as, vn_tensor *out, vn_error *err);
/* Fills *out as the plan makes it where slot j holds the key of token keys[j], the value of values[j] (as many as there are tokens; NULL: of j),
 * or 0 (less than 0); the checkpoint is an attention's. */
vn_status vn_probe_run_slots(vn_probe *p, const vn_plan *plan, const int64_t *keys, const int64_t *values, vn_probe_as as, vn_tensor *out, vn_error *err);
/* Was it captured whole in all steps up to the checkpoint's? */
bool      vn_probe_has(const vn_probe *p, int value);
/* What plan and weights make of a few tokens, each by itself: the nmse of these rows. Quick, where a hundred plans are to be tried. VN_ERR_UNSUPPORTED:
 * it is not made token by token. */
vn_status vn_probe_glance(vn_probe *p, const vn_plan *plan, const vn_tensor *weights, double *off, vn_error *err);
/* An input of the checkpoint's node as the sound plan has it: all tokens of all steps, in the width of `as`; the probe's. */
vn_status vn_probe_input(vn_probe *p, int input, vn_probe_as as, vn_tensor *out, vn_error *err);

#endif
