/* replay.h: measures how much error each operation added itself.
 *
 * The reference computes every node again from the candidate's own captured inputs: once in the
 * precision that the candidate declares, and once more precisely (f32; for an f32 candidate f64).
 * With A and B the two results, C the candidate's numbers, R the reference's recording:
 *
 *   local       C - A   what the candidate did differently with the same inputs
 *   its floor   A - B   the error that its precision alone causes there; at least one rounding
 *   inherited   B - R   what came with the inputs; minus the floor if R is no finer than C
 *   gain                |inherited| / |error of the inputs|, both relative: how much the operation
 *                       magnifies
 *
 * If an input was not captured, the span that starts at captured tensors is computed as a whole,
 * and `span` says how many nodes it has. The error of a span may come from any of its nodes. Once
 * it is charged to a checkpoint, no other checkpoint whose span shares a node is charged as well:
 * its `charged_to` names the first. In a recording that holds only some tokens, the rows of the
 * other tokens are such a span.
 *
 * A node that reads a wrong checkpoint is computed a second time, with the reference's numbers in
 * its place. If the node then agrees, the candidate did not continue with the numbers that it
 * recorded: a wrong capture (`recorder_fault`). If the node reads several wrong checkpoints, every
 * subset of them is tried. If the operations in between were not captured, a reader that is within
 * its limits, and far nearer to the reference than to what the wrong checkpoint gives, shows the
 * same.
 *
 * Reads   request.options, opened.cand, opened.ref, opened.model, opened.policy, result.weights,
 *         the judged checkpoints; for the floor, request.limits
 * Fills   replay, replayed and overflow (overflow.h) of checkpoints; localised.origins and `origin`
 *         of checkpoints (instead of localise's), result.replayed; lines of notes and warnings.
 *         vn_replay_floor_run: opened.model, and what floor.h fills
 */
#pragma once

#include "compare/replay/local.h"

/* A cleared node is named in the report if its gain is at least this. */
#define VN_GAIN_NAMED 1.25

/* Replays every measured checkpoint that is in the model's plan. Does nothing without opened.model.
 * What cannot be replayed (steps that do not follow each other, a model that does not fit) becomes
 * a note or a warning. */
vn_status vn_replay_run(const vn_opened *o, const struct vn_weights *weights, vn_checkpoints *all, bool *replayed,
                        vn_remarks *remarks, vn_error *err);

/* Sets the origins to the checkpoints whose local error is beyond its floor; for those that were
 * not replayed, keeps the result of vn_localise. Call after vn_localise. Does nothing without a
 * replay. */
vn_status vn_replay_origins(const vn_opened *o, vn_checkpoints *all, bool replayed, vn_localised *localised,
                            vn_error *err);

/* Measures the floor by running options->model in the candidate's precision, against the reference,
 * and fills floor and has_floor. Opens opened.model and sets opened.policy. */
vn_status vn_replay_floor_run(vn_opened *o, vn_checkpoints *all, vn_pools *pools, vn_floor_result *found,
                              vn_remarks *remarks, vn_error *err);
