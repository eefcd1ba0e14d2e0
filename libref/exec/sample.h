/* sample.h: chooses the next token from the logits of the last one.
 *
 * Temperature 0 is greedy: the highest score, of equal scores the lowest id. Above 0 the token is
 * drawn from softmax(scores / temperature) by inverting its cumulative sum: the first id, in order,
 * at which the running sum of exp((score - highest) / temperature) exceeds u times the total.
 * Everything is computed in double, one number after the other: the same scores and the same u give
 * the same token on any machine and for any number of threads.
 *
 * u depends only on the seed and the number of the step, so a single step can be drawn again.
 */
#pragma once

#include "libref/base/dtype.h"
#include "libref/base/error.h"

/* Philox4x32-10: ten rounds over a counter with a key. Salmon, Moraes, Dror, Shaw, "Parallel Random
 * Numbers: As Easy as 1, 2, 3", SC 2011. */
void vn_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* Returns u in [0, 1), a multiple of 2^-53. Key: the seed, low word first; counter: the step in the
 * same way, then zeros. u has the upper 27 bits of the first word of the result, followed by the
 * upper 26 bits of the second. */
double vn_draw(uint64_t seed, uint64_t step);

/* The scores of the next token. */
typedef struct vn_next_scores {
	const void *data; /* (V) */
	vn_dtype    dtype;
	int64_t     V;
} vn_next_scores;

/* Chooses from scores. A score of minus infinity has probability 0. VN_ERR_FORMAT: a NaN or
 * plus infinity, or only minus infinities. */
vn_status vn_sample(const vn_next_scores *s, double temperature, double u, int32_t *id, vn_error *err);
