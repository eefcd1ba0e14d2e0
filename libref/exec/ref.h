/* ref.h: the reference engine: executes a plan on the CPU.
 *
 * Every call takes some tokens, appends them to those of earlier calls, and keeps the states of
 * nodes (vn_state; for example the cache of keys and values) for the next call. One call with the
 * whole prompt is a prefill; further calls with one token each are decoding.
 *
 * The same plan, weights, policy and calls give the same bits, in every run and for any number of
 * threads.
 *
 * Owner    plan and weights are borrowed and must outlive the engine.
 * Threads  one thread at a time per engine; it uses `threads` of its own.
 * Memory   Weights stay where they are and are converted in panels. In addition: the live values of
 *          one call; the states (those of fixed size twice); the logits in pieces of at most 256
 *          MiB (in vn_ref_run_both one of each engine); and per thread what an operation needs.
 *          linear: a panel of 16 MiB (f64, vn_ref_run_both: 32), more only for inputs wider than
 *          65536. attention: 8 bytes for each of (S + 128) K + 64 S, with S tokens so far and
 *          heads of width K: 48 MiB for S = 32768 and K = 128; tapped scores and probabilities:
 *          64 S numbers.
 */
#pragma once

#include "libref/plan/engine.h"
#include "libref/plan/policy.h"

typedef struct vn_ref vn_ref;

typedef struct vn_ref_options {
	vn_policy policy;
	int       threads;  /* 0: one per processor */
	bool      progress; /* show progress on the terminal */
	/* NULL, or called before every node and every piece of the logits; true makes the call fail
	 * with VN_ERR_INTERRUPTED. */
	bool (*stop)(void *ctx);
	void *stop_ctx;
	/* NULL, or called with the first output of every node, before anything reads it, and may change
	 * it: `tokens` rows from row `first` of the call on, as doubles in f64, else as floats. Scores
	 * and probabilities that attention shows are not passed. Not for vn_ref_run_both. */
	void (*made)(void *ctx, int node, int64_t first, int64_t tokens, void *x);
	void *made_ctx;
	/* NULL, or called before a weight of a routed expert is read, which gives it data if it has
	 * none (vn_model_need). */
	void (*need)(const void *ctx, int weight);
	const void *need_ctx;
} vn_ref_options;

/* Creates an engine. weights: (n_weights of the plan), in the plan's shapes. Refuses a plan that
 * vn_plan_check refuses. */
vn_status vn_ref_create(const vn_plan *plan, const vn_tensor *weights, const vn_ref_options *o, vn_ref **ref,
                        vn_error *err);

/* What every engine can do: libref/plan/engine.h. self: a vn_ref. */
extern const vn_engine_ops vn_ref_ops;

/* Details of this engine. Values share memory: a value exists from its node until its last reader
 * has run, so write it only when its node's turn has come. Running or reading anything whose value
 * is gone fails (VN_ERR_USAGE). A value that streams (vn_value_streams: the logits, attention
 * scores) is never in memory as a whole; use taps. A failed run leaves the call begun. flush does
 * nothing: taps are handed over at once. */

/* Runs one node in two engines whose open calls have the same tokens, like `run` in each. A product
 * of equal inputs with weights that both policies store alike is computed once
 * (vn_linear_also_f32). */
vn_status vn_ref_run_both(vn_ref *r, vn_ref *also, int node, vn_error *err);

/* Like `write`, of numbers in a format whose numbers the value's format holds exactly. */
vn_status vn_ref_write(vn_ref *r, int value, const void *data, vn_dtype from, vn_error *err);

/* Rounds rows of a growing state (tokens, row), of the width that the policy computes in, to the
 * format in which it keeps keys and values. */
void vn_ref_round_cache(const vn_state *s, vn_policy policy, void *rows, int64_t tokens, int threads);

/* Changes what products and roles round from now on to those of p; formats of storage and sums
 * stay. */
void vn_ref_rounds(vn_ref *r, vn_policy p);
