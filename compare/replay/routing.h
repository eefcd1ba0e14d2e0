/* routing.h: judges which experts a candidate chose.
 *
 * Ids of experts are sets: their order is no part of a choice, and of two scores that are equal
 * within the rounding of the candidate's format either may win. Such ties are counted, and are no
 * error; another choice is a fault, however few there are. The scores are the candidate's own.
 *
 * Reads   the candidate's scores, which both engines have in place of their own
 * Fills   replay.other_ids, replay.flips; notes
 */
#ifndef VN_COMPARE_ROUTING_H
#define VN_COMPARE_ROUTING_H

#include "compare/replay/replay_state.h"

/* Counts the choices in cand that are not those of `own`, and not those of the reference's
 * recording. */
vn_status vn_routing_judge(vn_replay *r, const vn_node *node, const vn_tensor *own, const vn_tensor *cand,
                           const vn_tensor *ref, vn_replayed *l, vn_error *err);
/* Notes how many choices differ from the reference's. */
void      vn_routing_note(const vn_opened *o, const vn_checkpoints *points, vn_lines *notes);

#endif
