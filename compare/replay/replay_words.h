/* replay_words.h: what a replay found for one checkpoint, in words. */
#ifndef VN_COMPARE_REPLAY_WORDS_H
#define VN_COMPARE_REPLAY_WORDS_H

#include "compare/comparison/checkpoint.h"

/* For a checkpoint with replay.columns: "its columns lie as (freq 2), and what reads it is right
 * so", with the axes for a name map. Returns text. */
const char *vn_say_lying(const vn_comparison *c, const vn_checkpoint *p, char text[VN_WORDS]);

/* For a replayed checkpoint: "itself nmse 0.5 (1e+07 x floor), inherited 3e-07, ..."; else "".
 * Returns text. */
const char *vn_say_replay(const vn_comparison *c, const vn_checkpoint *p, char text[VN_WORDS]);

#endif
