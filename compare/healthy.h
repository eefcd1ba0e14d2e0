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
 * the same inputs, and the floor is at least how far that is from the more precise numbers.
 */
#ifndef VN_COMPARE_HEALTHY_H
#define VN_COMPARE_HEALTHY_H

#include "libref/plan/plan.h"

/* Makes the node of a plan that other implementation's, of numbers stored so. false: it has none, nothing is changed. */
bool vn_healthy_other(vn_node *n, vn_dtype storage);

#endif
