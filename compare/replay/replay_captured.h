/* replay_captured.h: finds tensors that were captured wrongly, although the run used the right
 * numbers. */
#ifndef VN_COMPARE_REPLAY_CAPTURED_H
#define VN_COMPARE_REPLAY_CAPTURED_H

#include "compare/replay/replay_state.h"

/* Keeps the correct content of a value that is wrong in the candidate and that node k has just
 * made. */
vn_status vn_replay_save(vn_replay *r, int k, int value, vn_error *err);
void      vn_replay_forget(vn_replay *r);
/* Called if node k is wrong: is it right if some of its wrong inputs have their correct content?
 * Then the captures of those inputs are wrong, the node is cleared, and the correct content stays
 * in place. */
vn_status vn_replay_captured(vn_replay *r, int k, vn_error *err);
/* Called if node k is wrong: is it right on the numbers that an input held when it was recorded
 * again (a checkpoint that is overwritten)? Then that checkpoint is charged. */
vn_status vn_replay_overwritten(vn_replay *r, int k, vn_error *err);

#endif
