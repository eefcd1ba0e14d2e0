/* steps.h: checks that the steps of a run follow each other and that none is missing.
 *
 * /run lists every token of the run, and each step states which of them it processed. So a single
 * file can show that a step was lost, copied, or stored under another number. A comparison does not
 * show this if both recorders make the same mistake. A step that kept nothing is a group without
 * tensors.
 */
#pragma once

#include "capture/recording/recording.h"

enum { VN_STEPS_WORDS = 160 };

/* Does a step begin before one with a lower number ends? words: half a line about the first that
 * does. */
bool vn_steps_disorder(const vn_recording *r, char words[VN_STEPS_WORDS]);

/* Does a call after the first begin with the token before it, at the same position? Then it is run
 * again. Or where the tokens begin to differ from those of `other` (NULL: none)? Then it may be.
 * words: half a line. */
bool vn_steps_again(const vn_recording *r, const vn_recording *other, char words[VN_STEPS_WORDS]);

/* Returns how many tokens are in no step of any of these n recordings of one run. words: which
 * ("token 19 (after step.2)"). Tokens after the last step of an interrupted run do not count.
 * Without any step nothing is missing. */
int64_t vn_steps_gap(const vn_recording *const *r, int n, char words[VN_STEPS_WORDS]);
