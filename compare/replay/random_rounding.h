/* random_rounding.h: rounds numbers at random, as a correct engine of a given precision might have.
 *
 * Two correct engines differ because each operation rounds its result, and a sum of K products
 * rounds K times, in an order that differs from engine to engine. Both are modelled as independent
 * errors (Monte Carlo arithmetic: D. S. Parker, 1997):
 *
 *   y = x + A ulp(x) u + B sqrt(K) ulp(rms of x over the row) v
 *
 * u and v have mean 0 and mean square 1; ulp(x) is the distance between neighbouring numbers of the
 * format near x. A and B: random_rounding.c.
 */
#pragma once

#include "libref/base/dtype.h"
#include "libref/plan/plan.h"
#include "libref/plan/policy.h"

typedef struct vn_random_rounding {
	const vn_plan *plan;
	vn_dtype       width;  /* VN_F32 or VN_F64: the type of the numbers, finer than the policy */
	vn_policy      policy; /* of the engine that is imitated */
	/* The same seed, node and element give the same u and v, on any number of threads. */
	uint64_t       seed;
	int            threads; /* 0: one per processor */
} vn_random_rounding;

/* Returns random bits of a node: those of two nodes, or seeds, have nothing in common. */
uint64_t vn_random_key(uint64_t seed, int node);
/* Rounds `tokens` rows of the first output of a node of the plan in place. past: position of the
 * first row. x: (tokens, row of the output). Copies (embeddings, slices) stay as they are. */
void     vn_round_at_random(const vn_random_rounding *r, int node, int64_t past, int64_t tokens, void *x);
