/* routing.h: judges which experts a candidate chose.
 *
 * Ids of experts are sets: their order is no part of a choice, and of two scores that are equal
 * within the rounding of the candidate's format either may win. Such ties are counted, and are no
 * error; another choice is a fault, however few there are. The scores are the candidate's own.
 *
 * Reads   the candidate's scores, which both engines have in place of their own
 * Fills   replay.other_ids, replay.flips; notes
 */
#pragma once

#include "compare/replay/replay_state.h"

/* Counts the choices in cand that are not those of `own`, and not those of the reference's
 * recording. */
vn_status vn_routing_judge(vn_replay *r, const vn_node *node, const vn_tensor *own, const vn_tensor *cand,
                           const vn_tensor *ref, vn_replayed *l, vn_error *err);
/* Notes how many choices differ from the reference's. */
void      vn_routing_note(const vn_opened *o, const vn_checkpoints *points, vn_lines *notes);

/* Splits an error into what another choice of experts does, and arithmetic.
 *
 * The reference runs once more, in the precision of its recording. In place of its own it takes the
 * candidate's router_ids and router_weights, so also the order of the slots. How far this run is
 * from the reference is routing; how far the candidate is from this run is arithmetic. Both are
 * measured at the last checkpoint that the plan makes, in all steps together: the logits, if they
 * were recorded.
 *
 * Reads   the request (options), ref, cand and model of what was opened; the checkpoints
 * Fills   the parts; a line of notes
 */

/* Does nothing unless options->replay_routing. Call after the checkpoints were replayed, because
 * the order of a candidate's columns is known then. */
vn_status vn_replay_routing(const vn_opened *o, const vn_checkpoints *all, vn_routing_parts *parts, vn_lines *notes,
                            vn_error *err);
