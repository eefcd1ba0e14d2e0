/* replay_words.h: what a replay found of one checkpoint, in words. */
#ifndef VN_COMPARE_REPLAY_WORDS_H
#define VN_COMPARE_REPLAY_WORDS_H

#include "compare/comparison/checkpoint.h"

/* "its columns lie as (freq 2), and what reads it is right so", with the axes of a name map that says so: of one whose replay.columns is set. */
const char *vn_say_lying(const vn_comparison *c, const vn_checkpoint *p, char text[VN_WORDS]);

/* "itself nmse 0.5 (1e+07 x floor), inherited 3e-07, ...": of one that was replayed; else "". */
const char *vn_say_replay(const vn_comparison *c, const vn_checkpoint *p, char text[VN_WORDS]);

#endif
