/* pool_steps.h: judges the local errors of single-token steps together.
 *
 * The numbers of one token may be so few that their floor is small by chance: below
 * VN_SMALL_SAMPLE numbers the limits are 4 times wider (vn_local_slack), and a fault of some floors
 * passes in every step. In consecutive steps that have twice VN_SMALL_SAMPLE numbers together, the
 * sum of the local errors over the sum of the floors is judged by VN_LOCAL_LIMIT itself, like a
 * tensor of as many numbers. If it is beyond, the limits of the steps that cause it are no longer
 * widened.
 *
 * Reads   the checkpoints and its replay
 * Fills   replay.not_widened
 */
#pragma once

#include "compare/comparison/comparison.h"

/* Is p a step of one token that may be judged together with others, and alone beyond the limit that
 * is not widened? */
bool vn_replay_pools_step(const vn_opened *o, const vn_checkpoint *p);

/* Call after all steps were replayed. */
void vn_replay_pool_steps(const vn_opened *o, vn_checkpoints *all);
