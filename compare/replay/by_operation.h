/* by_operation.h: the verdict asks every operation.
 *
 * A checkpoint's error is what its own operation added plus what came with its inputs. Limits of checkpoints see
 * the sum. The replay (replay.h) separates the two, and two verdicts follow from it:
 *
 *   An operation whose own error is beyond its floor is outside, also where the sum is within its limits: such a
 *   checkpoint gets one more check, of the form VN_OF_OPERATION, which does not hold. A rule with
 *   `operation: allowed` lifts it.
 *
 *   A checkpoint that is outside although its operation, and every operation before it, was replayed and cleared
 *   has only accumulated rounding: its status becomes VN_ACCUMULATED, which does not fail. It stays outside where
 *   a rule says `accumulated: fail`; where it breaks a limit that a person wrote; where it breaks a limit that is
 *   no measure of an error (nonfinite, headroom, a vacuous tensor, an invalid floor); and where any operation on
 *   the way was not replayed, or only as one of a chain of more than VN_CHAIN_CLEARED operations.
 */
#ifndef VN_COMPARE_BY_OPERATION_H
#define VN_COMPARE_BY_OPERATION_H

#include "compare/comparison/comparison.h"

/* A span (replay.h) of more operations than this clears none of them: its floor is that of their sum. */
#define VN_CHAIN_CLEARED 4

/* After judging and replaying. Nothing without a replay, nor where the candidate's weights are known to be others than the model's
 * (--allow weights). */
vn_status vn_judge_operations(vn_comparison *c, vn_error *err);

#endif
