/* replay_made.h: stores the outputs of the node that an engine of the replay ran last. */
#ifndef VN_COMPARE_REPLAY_MADE_H
#define VN_COMPARE_REPLAY_MADE_H

#include "compare/replay/replay_state.h"

/* Returns the sink that stores the outputs of engine e. */
vn_sink               vn_replay_sink(vn_replay_engine *e);
/* Returns what e made of a value in the node that it ran last, or NULL. */
const vn_node_output *vn_replay_made(const vn_replay_engine *e, int value);
void                  vn_node_output_free(vn_node_output *m);

#endif
