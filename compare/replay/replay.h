/* replay.h: how much of an error each operation added itself.
 *
 * Every node is computed again by the reference on the candidate's own captured
 * inputs: as the candidate declares its precision, and once more precisely (f32,
 * of an f32 candidate f64). With A and B the two, C the candidate, R the
 * reference's recording:
 *
 *   local       C - A                what the candidate did otherwise with the same inputs
 *   its floor   A - B                what its precision alone does there; at least one rounding of its format
 *   inherited   B - R                what came with the inputs; less the floor where R is no finer than C
 *   gain        |inherited| / |error of the inputs|, both relative: what the operation magnifies by
 *
 * Where an input was not captured the span that starts at captured tensors is
 * computed as a whole, and `span` says of how many nodes it is. Its error may be
 * any one's of them; once it is charged to a checkpoint, no other whose span has
 * one of those nodes in it is charged too: `behind` names the first. Of a
 * recording that has some tokens alone, the others' rows are such a span.
 *
 * A node that reads a wrong checkpoint is computed a second time, on the reference's
 * numbers in its place. If the node then agrees, the candidate did not continue with
 * the numbers that it recorded: a wrong capture (`captured`). If the node reads several
 * wrong checkpoints, every subset of them is tried. Where what is between was not captured,
 * a reader that is within its limits, and far nearer to the reference than to what the wrong
 * checkpoint gives, says the same.
 *
 * Reads   request.options, opened.cand, opened.ref, opened.model, opened.policy, the judged checkpoints
 * Fills   replay and replayed of checkpoints; result.origins (in place of localise's), result.replayed; lines of notes, warnings
 */
#ifndef VN_COMPARE_REPLAY_H
#define VN_COMPARE_REPLAY_H

#include "compare/replay/local.h"

/* A cleared node is named in the report if its gain is at least this. */
#define VN_GAIN_NAMED 1.25

/* replay of every measured checkpoint that the model's plan has. Needs c->opened.model; nothing where there is none. What cannot be
 * replayed (steps that do not follow each other, a model that does not fit) is a note or a warning. */
vn_status vn_replay_run(vn_comparison *c, vn_error *err);

/* origins are the checkpoints whose own error is beyond its floor; of those that were not replayed, what localise said.
 * After vn_localise; nothing without a replay. */
vn_status vn_replay_origins(vn_comparison *c, vn_error *err);

/* The floor by running options->model: measures the run in the candidate's precision against the reference, and fills floor
 * and has_floor. Opens opened.model and sets opened.policy. */
vn_status vn_floor_run(vn_comparison *c, vn_error *err);

#endif
