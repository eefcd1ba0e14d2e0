/* by_operation.h: judges each operation by the error that it added itself.
 *
 * A checkpoint's error is what its own operation added plus what came with its inputs. Limits of
 * checkpoints see the sum. The replay (replay.h) separates the two, and two verdicts follow from
 * it:
 *
 * An operation whose local error is beyond its floor is outside, even if the sum is within the
 * checkpoint's limits. The checkpoint gets one more check, of the form VN_OF_OPERATION, which does
 * not hold. A rule with `operation: allowed` lifts it.
 *
 * A checkpoint that is outside although its operation, and every operation before it, was replayed
 * and cleared has only accumulated rounding: its status becomes VN_ACCUMULATED, which does not
 * fail. It stays outside if a rule says `accumulated: fail`; if it breaks a limit that a person
 * wrote; if it breaks a limit that does not measure an error (nonfinite, headroom, a vacuous
 * tensor, an invalid floor); and if any operation on the way was not replayed. At the end of a span
 * of more than VN_SPAN_CLEARED operations, only these are forgiven: the size of the error, a common
 * factor that it has by chance, and the error of one channel that correct runs of the span, rounded
 * at random, have in their worst channel, too (replay/draws.h). A wrong channel that is no larger
 * than that is not found: of bf16 logits, 10 % in one of 512 channels.
 *
 * If a limit on several steps together is broken, the step named for it may be cleared. Then a step
 * that is not cleared fails in its place.
 *
 * Reads   request.limits, opened.plan, result.weights, result.replayed, pooled_small,
 *         pools.channel_pool, and the judged and replayed checkpoints
 * Fills   check, n_checks, worst, status and fails of checkpoints
 */
#pragma once

#include "compare/comparison/comparison.h"

/* Applies both verdicts. Call after judging and replaying. Does nothing without a replay, or if the
 * candidate's weights are known to differ from the model's (--allow weights). */
void vn_replay_judge_operations(const vn_opened *o, const struct vn_weights *weights, vn_checkpoints *all,
                                vn_pools *pools, bool replayed);
