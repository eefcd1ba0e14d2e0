/* reference_variants.h: what other healthy implementations of an operation do to its numbers.
 *
 * A floor says what the precision does in the reference's arithmetic, which computes an operation as one and
 * rounds once. Others write it as several, which is no fault and leaves more than that:
 *
 *   attention    scores kept in the storage format, rounded as products and again when they are scaled, and probabilities
 *                rounded before they meet the values (transformers' eager attention; in float32 too, where scores are large)
 *   rope         cos, sin and both products rounded (transformers, 16 bits); angles rounded otherwise: in double, of a frequency in
 *                double rounded once, or as a product from pair to pair (vn_angles): the difference grows with the position
 *   rms_norm     what is normed rounded before it meets the weight (transformers' Llama, Mistral, Qwen2, Qwen3)
 *   gated_norm   that, and what has met the weight rounded before it meets the gate (transformers' Qwen3.5)
 *   l2_norm      squares, their sum, the factor rounded (transformers' l2norm on 16 bits)
 *   gated        the activation rounded before it meets up (act_fn(gate) * up); or its formula as well
 *   causal_conv  the convolution rounded before silu (conv1d, then silu); or silu's formula as well
 *   act          every operation of the formula rounded (gelu_new of transformers' GPT-2)
 *   linear       of a precision that rounds what goes in to blocks of 8 bits: the scale's inverse as ARM has it (vn_ggml_scale)
 *   delta rule   chunks of 64 tokens in float32, by cumulated decays and a triangular system (transformers, FLA), where the
 *                reference follows the recurrence in double; and in 16 bits, of inputs that are kept in float32 within a kernel,
 *                and recorded rounded
 *
 * So where an operation comes out beyond its floor, it is computed in these ways as well, on the same inputs, in the same
 * precision, and how far the farthest is from the reference's joins the floor: exactly these numbers are then within two floors,
 * also where all tokens are alike and few roundings, which may be small by luck, are all that the floor was taken from. A formula
 * of an activation is farther off than some mistakes: there the candidate is held against that formula's numbers instead.
 *
 * Which numbers were rounded to the recorded queries and keys of the delta rule nobody knows: they are drawn again within
 * their rounding, and rows within that of the factor that normed them, eight times, and the worst counts.
 *
 * Measured (tests/parity_healthy.py): transformers 5.17 in float32, float16 and bfloat16, six trained fixtures, 15 prompts, 13455
 * checkpoints. Without: 104 accused in 180 runs of 16 bits, by 4 to 10 floors. With it none; half of what is allowed at most
 * is used where it is taken into account everywhere.
 */
#ifndef VN_COMPARE_REFERENCE_VARIANTS_H
#define VN_COMPARE_REFERENCE_VARIANTS_H

#include "libref/plan/plan.h"
#include "libref/plan/policy.h"

/* How many other implementations there are of a node in that precision. */
int  vn_variants_count(const vn_node *n, vn_policy policy);
/* Makes a plan's node that of other implementation i. */
void vn_variant_put(vn_node *n, vn_policy policy, int i);
/* Does i round so much that mistakes leave no more? Then only what is i's own number but for a floor is healthy; of others
 * whatever is no farther from the reference's. */
bool vn_variant_judges_alone(const vn_node *n, int i);

#endif
