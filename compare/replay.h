/* replay.h: how much of an error each operation added itself.
 *
 * Every node is computed again by the reference on the candidate's own captured
 * inputs: as the candidate declares its precision, and once more precisely (f32,
 * of an f32 candidate f64). With A and B the two, C the candidate, R the
 * reference's recording:
 *
 *   local       C - A                what the candidate did otherwise with the same inputs
 *   its floor   A - B                what its precision alone does there; at least one rounding of its format
 *   inherited   B - R                what came with the inputs
 *   gain        |inherited| / |error of the inputs|, both relative: what the operation magnifies by
 *
 * Where an input was not captured the span that starts at captured tensors is
 * computed as a whole, and `span` says of how many nodes it is.
 */
#ifndef VN_COMPARE_REPLAY_H
#define VN_COMPARE_REPLAY_H

#include "compare/compare.h"

/* A local error beyond so many of its floors is the operation's own. Measured on healthy engines
 * (tests/parity_replay.py). */
#define VN_LOCAL_LIMIT 4.0
/* A node that is cleared by name magnifies what it was given by so much. */
#define VN_GAIN_NAMED 2.0

/* replay of every measured checkpoint that the model's plan has, and from it origins. Needs c->model;
 * nothing where there is none, or where the steps of the recording do not follow each other. */
vn_status vn_replay_run(vn_comparison *c, vn_error *err);

/* Local error in multiples of its floor; NaN: not replayed. */
double vn_local_over_floor(const vn_checkpoint *p);
/* Is the error of this one its operation's own? */
bool   vn_local_beyond(const vn_checkpoint *p);

#endif
