/* ref.h: the reference engine: a walk over a plan on the CPU.
 *
 * Every call takes some tokens, puts them behind those of earlier calls, and
 * leaves their keys and values in the cache: one call with the whole prompt is
 * a prefill, further calls with one token each are decoding.
 *
 * The same plan, weights, policy and calls give the same bits, run after run
 * and for any number of threads.
 *
 * Owner    plan and weights are borrowed and must outlive the engine.
 * Threads  one thread at a time per engine; it uses `threads` of its own.
 * Memory   weights stay where they are and are converted in panels; beside
 *          them: the live values of one call, the cache, a few MiB a thread.
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
} vn_ref_options;

/* weights: (n_weights of the plan), shapes as the plan says. */
vn_status vn_ref_create(const vn_plan *plan, const vn_tensor *weights, const vn_ref_options *o,
                        vn_ref **ref, vn_error *err);
void      vn_ref_destroy(vn_ref *r);

/* taps: NULL for none. Refused: an id outside the vocabulary, no tokens, more
 * tokens than the model's context. A failed call leaves the position as it was. */
vn_status vn_ref_forward(vn_ref *r, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err);

int64_t   vn_ref_position(const vn_ref *r); /* tokens in the cache */
void      vn_ref_reset(vn_ref *r);          /* empties the cache */
void      vn_ref_facts(const vn_ref *r, vn_facts *f);

#endif
