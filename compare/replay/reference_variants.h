/* reference_variants.h: how other correct implementations of an operation round.
 *
 * The floor is the error that the precision causes in the reference, which computes an operation as
 * one step and rounds once. Other implementations split the operation into several steps and
 * round more often. That is not a fault, but leaves a larger error:
 *
 *   attention    scores kept in the storage format, rounded as products, after scaling, in each
 *                step of a cap, and less their maximum beside a sink, and probabilities rounded
 *                before they are multiplied by the values (transformers' eager attention; in
 *                float32 too, if scores are large); with a cache in a format of its own, a call's
 *                own keys and values read as they are (a prompt that is attended to before it is
 *                cached)
 *   rope         cos, sin and both products rounded (transformers, 16 bits); angles rounded in
 *                other ways: in double, from a frequency in double rounded once, or as a product
 *                from pair to pair (vn_angles). The difference grows with the position
 *   rms_norm     the normalised input rounded before the weight is applied (transformers' Llama,
 *                Mistral, Qwen2, Qwen3)
 *   gated_norm   as rms_norm, and the weighted result rounded before the gate is applied
 *                (transformers' Qwen3.5)
 *                these norms and layer_norm: the weight kept in float32 (transformers' gpt-oss in
 *                float16, ggml), which is more exact than the reference
 *   l2_norm      squares, their sum and the factor rounded (transformers' l2norm on 16 bits)
 *   gated        the activation rounded before it is multiplied by up (act_fn(gate) * up); or its
 *                formula as well
 *   causal_conv  the convolution rounded before silu (conv1d, then silu); or silu's formula as well
 *   scale        with a soft cap: the quotient by the cap and its tanh rounded (transformers'
 *                Gemma 2)
 *   experts      as gated; combine: each product with a weight rounded, and each sum
 *   act          every operation of the formula rounded (gelu_new of transformers' GPT-2)
 *   linear       in a precision that rounds inputs to blocks of 8 bits: the inverse of the scale as
 *                on ARM (vn_ggml_scale)
 *                in 16 bits, divided between ranks: the part of each rank rounded, and added up
 *                in the storage format. The error grows as the number of ranks
 *   delta rule   chunks of 64 tokens in float32, by cumulated decays and a triangular system
 *                (transformers, FLA), where the reference follows the recurrence in double; and in
 *                16 bits, from inputs that a kernel keeps in float32 but that are recorded rounded
 *
 * So if an operation is beyond its floor, it is also computed in these ways, from the same inputs
 * and in the same precision. The largest distance from the reference is added to the floor. So
 * each variant's own numbers are within two floors, even if all tokens are alike and the floor is
 * small by chance. The formula of an activation is farther off than some mistakes, so there the
 * candidate is compared with that formula's numbers instead.
 *
 * The numbers from which the delta rule's queries and keys were rounded are not known. They are
 * drawn eight times at random within their rounding, and rows within the rounding of the factor
 * that normed them; the worst draw counts.
 *
 * Measured (tests/parity/parity_variants.py): transformers 5.17 in float32, float16 and bfloat16,
 * six trained fixtures, 15 prompts, 13455 checkpoints. Without them, 104 checkpoints in 180 runs of
 * 16 bits were wrongly accused, by 4 to 10 floors. With them, none were, and if they are applied
 * everywhere, at most half of the allowed error is used.
 */
#pragma once

#include "libref/plan/plan.h"
#include "libref/plan/policy.h"

/* Returns how many other implementations of a node exist in that precision. */
int  vn_reference_variants_count(const vn_node *n, vn_policy policy);
/* Changes a node to implementation i. */
void vn_reference_variant_put(vn_node *n, vn_policy policy, int i);
/* Is implementation i as far from the reference as some mistakes? Then it does not widen the floor;
 * the candidate is compared with its numbers instead. */
bool vn_reference_variant_judges_alone(const vn_node *n, int i);
