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
 * computed as a whole, and `span` says of how many nodes it is. Its error may be
 * any one's of them; once it is charged to a checkpoint, no other whose span has
 * one of those nodes in it is charged too: `behind` names the first. Of a
 * recording that has some tokens alone, the others' rows are such a span.
 *
 * What reads a checkpoint that came out otherwise is computed a second time on
 * what the reference has in its place. If it comes out right then, the candidate
 * went on with other numbers than it recorded: `captured`, a wrong capture.
 */
#ifndef VN_COMPARE_REPLAY_H
#define VN_COMPARE_REPLAY_H

#include "compare/compare.h"

/* A local error beyond so many of its floors is the operation's own: nmse; and that of the worst token, or the square of the
 * worst element's error, where nmse does not see what is wrong with one token of thousands, or with one channel. Healthy
 * engines come to 3.0 and 5.3 at most (tests/parity_replay.py). */
#define VN_LOCAL_LIMIT 4.0
#define VN_PEAK_LIMIT 16.0
/* A node that is cleared by name magnifies what it was given by so much. */
#define VN_GAIN_NAMED 1.25

/* replay of every measured checkpoint that the model's plan has, and from it origins. Needs c->model; nothing where there is
 * none. What cannot be replayed (steps that do not follow each other, a model that does not fit) is a note or a warning. */
vn_status vn_replay_run(vn_comparison *c, vn_error *err);

/* Local error in multiples of its floor; NaN: not replayed. */
double vn_local_over_floor(const vn_checkpoint *p);
/* The worst token's nmse, or the square of the worst element's error, in multiples of its floor: the larger. */
double vn_local_peak(const vn_checkpoint *p);
/* The larger of both: one number for a column. */
double vn_local_shown(const vn_checkpoint *p);
/* Is the error of this one its operation's own? */
bool   vn_local_beyond(const vn_checkpoint *p);

#endif
