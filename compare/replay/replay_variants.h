/* replay_variants.h: in a replay, widens the floor of a value by what other correct implementations
 * of its operation (reference_variants.h) differ by.
 *
 * Reads    the replay's engine VN_REPLAY_OWN
 * Changes  nothing in the end: the unmodified node is run again
 */
#ifndef VN_COMPARE_REPLAY_VARIANTS_H
#define VN_COMPARE_REPLAY_VARIANTS_H

#include "compare/replay/replay_state.h"

/* Judges a value that is beyond its floor by those implementations. own: what the node made; cand:
 * the candidate's numbers. Runs the node again, and afterwards restores its outputs. */
vn_status vn_replay_judge_variants(vn_replay *r, const vn_node *node, const vn_node_output *own, const vn_tensor *cand,
                                   const char *axes, vn_replayed *l, vn_error *err);

#endif
