/* healthy.h: what other healthy implementations of an operation do to its numbers.
 *
 * A floor says what the precision does in the reference's arithmetic. Two operations are
 * commonly computed in another, which is no fault and leaves more than that:
 *
 *   attention   in 16 bits: engines that write the scores out keep them in the storage format, rounded as products and
 *               again when they are scaled, before a softmax in float32 (transformers' eager attention)
 *   delta rule  chunks of 64 tokens in float32, by cumulated decays and a triangular system (transformers, FLA), where the
 *               reference follows the recurrence in double; and in 16 bits, of inputs that are kept in float32 within a kernel,
 *               and recorded rounded
 *
 * So where an operation comes out beyond its floor, it is computed in that way as well, on
 * the same inputs, and how far that is from the more precise numbers is added to the floor.
 * Which numbers were rounded to the recorded queries and keys of the delta rule nobody
 * knows: they are drawn again within their rounding, eight times, and the worst counts.
 *
 * Measured on transformers 5.17 (eager attention, chunks in torch), six trained fixtures, random
 * and repetitive prompts of 70 to 200 tokens, in multiples of the floor without it: attention's
 * probabilities 4 to 110, the delta rule 4 to 8 in 16 bits and up to 10 in float32. With it
 * none is beyond; 1 % in one head still is, by 40 floors and more.
 */
#ifndef VN_COMPARE_HEALTHY_H
#define VN_COMPARE_HEALTHY_H

#include "libref/plan/plan.h"

/* How many other implementations there are of a node, of numbers stored so. */
int  vn_healthy_others(const vn_node *n, vn_dtype storage);
/* Makes a plan's node that of other implementation i. */
void vn_healthy_other(vn_node *n, vn_dtype storage, int i);
/* Does i round so much that mistakes leave no more? Then only what is i's own number but for a floor is healthy; of others
 * whatever is no farther from the reference's. */
bool vn_healthy_alone(const vn_node *n, int i);

#endif
