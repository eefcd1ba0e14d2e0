/* replay_node.h: replays one node: runs it in both engines and judges it. */
#ifndef VN_COMPARE_REPLAY_NODE_H
#define VN_COMPARE_REPLAY_NODE_H

#include "compare/replay/replay_state.h"

/* Handles node k of the step: runs it in both engines, judges it, and replaces its outputs by the
 * candidate's numbers. */
vn_status vn_replay_node(vn_replay *r, int k, vn_error *err);

#endif
