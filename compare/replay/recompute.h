/* recompute.h: computes one checkpoint, by any plan, from the tensors that the candidate recorded.
 *
 * Values that the candidate captured whole are taken from its recording. Other values are computed,
 * back to captured ones. The plan may be a changed copy of the model's plan (libref/plan/fault.h).
 * Values that the change does not affect are computed once for all plans that are tried on a
 * checkpoint.
 *
 * Operations are computed call by call, from the first recorded step on: keys of earlier steps are
 * the candidate's own, and states are carried from call to call. Only the rows of the checkpoint's
 * own step are kept.
 *
 * Three kinds of values are never taken from the recording: the checkpoint itself, a value that was
 * not measured, and a value whose capture is wrong according to the replay
 * (vn_replayed.recorder_fault).
 *
 * replay.h answers another question, forward through the whole plan on two engines: does each
 * operation agree, given its inputs? Neither can replace the other. Here, n decoded steps would
 * cost n^2 / 2 steps. There, each trial would cost a run of the model (of a small llama 0.2 s;
 * here 4 ms).
 *
 * Reads    request.options, opened.ref, opened.cand, opened.model, opened.policy, and the measured
 *          and replayed checkpoints
 * Fills    nothing of the comparison
 * Owner    both arguments are borrowed; opened.model must be open.
 * Threads  call from one thread at a time; it uses the threads of the comparison.
 */
#pragma once

#include "compare/comparison/comparison.h"

#include "libref/base/rounding.h"
#include "libref/plan/fault.h"

typedef struct vn_recompute vn_recompute;

/* How numbers are rounded: as the candidate stores them; more precisely; as the candidate stores
 * them, but with float16 accumulation in products; in bfloat16 or float16, inputs included. */
typedef enum vn_recompute_as {
	VN_OWN_WIDTH,
	VN_FINE_WIDTH,
	VN_HALF_SUMS,
	VN_IN_BF16,
	VN_IN_F16,
	VN_N_WIDTHS
} vn_recompute_as;

/* The current checkpoint. The pointer from vn_recompute_site stays valid; the contents change with
 * vn_recompute_at. */
typedef struct vn_site {
	const vn_plan   *plan; /* the model's own, unmodified */
	const vn_tensor *weights;
	int              target; /* the checkpoint's value, aliases resolved */
	/* the candidate's rows that a run computes (of logits, a sample of the vocabulary) */
	vn_tensor        cand;
	bool             sampled; /* cand has only some of its rows */
	const char      *axes;
	int64_t          first;        /* position of the token of its first row */
	int64_t          tokens;       /* in all steps up to and including its own */
	int             *span, n_span; /* nodes between it and captured values, its own first */
	/* (tokens): the position at which the call of a token begins, also if calls were joined to one
	 * step; -1: the first call, or a call of one token (vn_call_begin) */
	int64_t         *begins;
	int64_t          prompt;       /* tokens of the first call, likewise */
	bool             begins_later; /* it has rows of a call that is neither */
} vn_site;

vn_status vn_recompute_create(const vn_opened *o, const vn_checkpoints *all, vn_recompute **p, vn_error *err);
void      vn_recompute_destroy(vn_recompute *p);

/* Moves to a checkpoint, and discards what was computed for the previous one. VN_ERR_UNSUPPORTED:
 * it cannot be recomputed (not a value of the plan, or steps that do not follow each other). */
vn_status      vn_recompute_at(vn_recompute *p, int point, vn_error *err);
const vn_site *vn_recompute_site(const vn_recompute *p);
/* Does another plan with the same values change anything that the checkpoint is computed from? */
bool           vn_recompute_touched(vn_recompute *p, const vn_plan *plan, const vn_tensor *weights);
/* Computes the checkpoint by plan and weights. The caller frees out->data. VN_ERR_UNSUPPORTED: the
 * plan does not make this checkpoint, or makes it in another shape. */
vn_status      vn_recompute_run(vn_recompute *p, const vn_plan *plan, const vn_tensor *weights, vn_recompute_as as,
                                vn_tensor *out, vn_error *err);
/* Same as the candidate stores them, with correct implementation i (reference_variants.h) of each
 * node of the span. */
vn_status      vn_recompute_run_variant(vn_recompute *p, const vn_plan *plan, const vn_tensor *weights, int i,
                                        vn_tensor *out, vn_error *err);
/* Does one of these implementations judge alone? */
bool           vn_recompute_variant_alone(const vn_recompute *p, const vn_plan *plan, int i);
/* Same for a checkpoint of attention whose cache slots were mixed up: slot j holds the key of token
 * token[0][j] and the value of token[1][j] (both (tokens); NULL: token j; negative:
 * zeros). */
vn_status      vn_recompute_run_slots(vn_recompute *p, const vn_plan *plan, const int64_t *const token[2],
                                      vn_recompute_as as, vn_tensor *out, vn_error *err);
/* What a call begins with in place of the state of fixed size that the call before left. */
typedef enum vn_state_kind {
	VN_STATE_USUAL,
	VN_STATE_EARLIER, /* that of some calls earlier */
	VN_STATE_FIRST,   /* that after the first call */
	VN_STATE_ROUNDED, /* its own, rounded to a format */
	VN_STATE_TIMES,   /* its own, multiplied by `factor` */
	VN_STATE_ROLLED,  /* each head of the delta rule has that of the head `calls` before; 0: in reversed order */
	VN_STATE_TURNED,  /* its own, transposed */
	VN_STATE_AGAIN,   /* its own, after the last token of the call before was applied again */
	VN_STATE_PADDING, /* the first call: that after the padding before the prompt in its batch */
	VN_STATE_PACKED   /* the first call: that after the prompts packed before this one */
} vn_state_kind;
typedef struct vn_other_state {
	vn_state_kind      kind;
	int                calls; /* of VN_STATE_EARLIER, and how often VN_STATE_AGAIN: at least 1 */
	vn_rounding_format format;
	double             factor;
} vn_other_state;
/* Same as vn_recompute_run by the unmodified plan, for a checkpoint whose own operation keeps
 * states of fixed size and begins its call with another. VN_ERR_UNSUPPORTED: what that takes was
 * not recorded, or the call has no such state. */
vn_status vn_recompute_run_state(vn_recompute *p, const vn_other_state *other, vn_recompute_as as, vn_tensor *out,
                                 vn_error *err);
/* Until vn_recompute_at, computes this value instead of taking it from the recording; -1: takes all
 * from the recording again. For an operation that changes its input itself, so that the recorded
 * input is not what it used. */
void      vn_recompute_disregard(vn_recompute *p, int value);
/* Was this value captured whole in all steps up to the checkpoint's? */
bool      vn_recompute_has(const vn_recompute *p, int value);
/* Estimates vn_recompute_run on a few tokens, each by itself, to discard most of a hundred plans
 * quickly. *off: the nmse of their rows. VN_ERR_UNSUPPORTED: the checkpoint is not computed token
 * by token. */
vn_status vn_recompute_estimate_tokens(vn_recompute *p, const vn_plan *plan, const vn_tensor *weights, double *off,
                                       vn_error *err);
/* Estimates vn_recompute_run on the first tokens of a run that is one call: causal operations make
 * their rows from these tokens alone. *off: the nmse of their rows. VN_ERR_UNSUPPORTED: too few
 * tokens to save time, or an operation of the plan reads later tokens, or could. */
vn_status vn_recompute_estimate_first(vn_recompute *p, const vn_plan *plan, const vn_tensor *weights, double *off,
                                      vn_error *err);
/* For logits: chooses blocks of the vocabulary in which trials are estimated: those with the
 * largest error of the unmodified plan, whose result is `own`, and as many at equal distances.
 * NULL: the checkpoint is not logits, or the unmodified plan leaves no error. */
const vn_some_rows *vn_recompute_choose(vn_recompute *p, const vn_tensor *own);
/* Estimates vn_recompute_run on the chosen blocks. Only these rows of the product's weights are
 * read (vn_faulty_make_some). *share: the nmse there, divided by the nmse of the unmodified plan.
 * VN_ERR_UNSUPPORTED: the plan does not make the checkpoint column by column. */
vn_status vn_recompute_estimate_columns(vn_recompute *p, const vn_plan *plan, const vn_tensor *weights, double *share,
                                        vn_error *err);
/* Fills *out with an input of the checkpoint's node under the unmodified plan: all tokens of all
 * steps, in the format of `as`. The data belongs to p. */
vn_status vn_recompute_input(vn_recompute *p, int input, vn_recompute_as as, vn_tensor *out, vn_error *err);
