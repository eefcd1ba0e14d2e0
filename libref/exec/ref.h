/* ref.h: the reference engine: a walk over a plan on the CPU.
 *
 * Every call takes some tokens, puts them behind those of earlier calls, and
 * leaves what nodes keep (vn_state: the cache of keys and values, for one) for
 * the next: one call with the whole prompt is a prefill, further calls with one
 * token each are decoding.
 *
 * The same plan, weights, policy and calls give the same bits, run after run
 * and for any number of threads.
 *
 * Owner    plan and weights are borrowed and must outlive the engine.
 * Threads  one thread at a time per engine; it uses `threads` of its own.
 * Memory   weights stay where they are and are converted in panels; beside
 *          them: the live values of one call, the states (those of fixed size
 *          twice), the logits in pieces of 256 MiB at most, and what an operation needs for each thread: a
 *          linear a panel of 16 MiB (f64: 32) and more only for inputs wider
 *          than 65536; an attention 8 bytes for every (S + 128) K + 64 S, with S
 *          the tokens so far and K the width of a head: 48 MiB at S = 32768 and
 *          K = 128. Scores and probabilities, when tapped: 64 S numbers a thread.
 */
#ifndef VN_LIBREF_EXEC_REF_H
#define VN_LIBREF_EXEC_REF_H

#include "libref/base/facts.h"
#include "libref/plan/policy.h"
#include "libref/plan/tap.h"

typedef struct vn_ref vn_ref;

typedef struct vn_ref_options {
	vn_policy policy;
	int       threads;  /* 0: one a processor */
	bool      progress; /* a line on the terminal */
	/* NULL, or asked before every node and every piece of the logits: true makes
	 * the call fail with VN_ERR_INTERRUPTED. */
	bool    (*stop)(void *ctx);
	void     *stop_ctx;
} vn_ref_options;

/* weights: (n_weights of the plan), shapes as the plan says. Refused: a plan that
 * vn_plan_check refuses. */
vn_status vn_ref_create(const vn_plan *plan, const vn_tensor *weights, const vn_ref_options *o,
                        vn_ref **ref, vn_error *err);
void      vn_ref_destroy(vn_ref *r);

/* taps: NULL for none. Refused: an id outside the vocabulary, no tokens, more
 * tokens than the model's context. A failed call leaves the position and the
 * states as they were. */
vn_status vn_ref_forward(vn_ref *r, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err);

/* The same in parts, for a run that is partly somebody else's. begin fixes the
 * call; ids and taps are the caller's and must live until the end. run executes
 * nodes [from, to) of the plan. read copies out a value (tokens, row), in the
 * storage format of the policy; write puts numbers in its place, and its node is
 * then simply not run. forward is begin, run of all nodes, end.
 *
 * A value that shows a state (vn_policy_dtype has its format) is read as the state
 * is now: one that grows once the rows of this call have joined it, one of fixed
 * size at any time, before its node has run as earlier calls left it. Write the
 * latter when its node is computed elsewhere; a state that grows takes the rows
 * that its node reads as soon as those are made or written.
 *
 * Values share memory: one is there from its node until its last reader has run,
 * so write it when its node's turn has come, not earlier. A node or a read whose
 * value is not there is refused (VN_ERR_USAGE), never computed from something
 * else. Never in memory is what streams (vn_value_streams: the logits, attention
 * scores); taps show it. A tap shows what a node makes, not what is written.
 *
 * A failed run leaves the call begun. end ends it, and is nothing without one;
 * keep: the position advances, and the states are what the call made of them. A
 * node that needs a state, keys of an earlier call, say, that was neither made
 * nor written in a kept call is refused. */
vn_status vn_ref_begin(vn_ref *r, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err);
vn_status vn_ref_run(vn_ref *r, int from, int to, vn_error *err);
vn_status vn_ref_read(vn_ref *r, int value, void *data, vn_error *err);
vn_status vn_ref_write(vn_ref *r, int value, const void *data, vn_error *err);
void      vn_ref_end(vn_ref *r, bool keep);

/* What products round from here on; the rest of the policy stays. */
void      vn_ref_products(vn_ref *r, vn_products products);
int64_t   vn_ref_position(const vn_ref *r); /* tokens of all kept calls */
void      vn_ref_reset(vn_ref *r);          /* states as at the start; ends a call that is begun */
/* Back to `position` tokens: as if the later ones had never come. Refused as
 * vn_plan_can_rewind says; then nothing changes. Ends a call that is begun. */
vn_status vn_ref_rewind(vn_ref *r, int64_t position, vn_error *err);
void      vn_ref_facts(const vn_ref *r, vn_facts *f);

#endif
