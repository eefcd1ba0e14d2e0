/* replay_routing.h: splits an error into what another choice of experts does, and arithmetic.
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
#ifndef VN_COMPARE_REPLAY_ROUTING_H
#define VN_COMPARE_REPLAY_ROUTING_H

#include "compare/comparison/comparison.h"

/* Does nothing unless options->replay_routing. Call after the checkpoints were replayed, because
 * the order of a candidate's columns is known then. */
vn_status vn_replay_routing(const vn_opened *o, const vn_checkpoints *all, vn_routing_parts *parts, vn_lines *notes,
                            vn_error *err);

#endif
