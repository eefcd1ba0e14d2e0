/* batched.h: one prompt of a recording of several at once.
 *
 * In a batched recording /run/token_ids and /run/positions have a row a prompt, where a
 * position of -1 marks padding (on either side), and tensors have an axis `batch`
 * (specs/checkpoint.md). Or the prompts are one behind the other in one row (packed.h), and
 * so are the tokens and keys of tensors. Seen as one of them it is a recording like any other.
 */
#ifndef VN_CAPTURE_BATCHED_H
#define VN_CAPTURE_BATCHED_H

#include "capture/recording/recording.h"

/* How many prompts there are to choose from, in rows or one behind the other; 0: it is of one. */
int64_t   vn_batched_count(const vn_recording *r);

/* *r becomes the derived recording of that prompt: its tokens without padding, its rows and its
 * keys. Also on failure *r is the caller's to close. Errors: no such row, padding in the middle, steps that do not go on
 * with every prompt. */
vn_status vn_batched_row(vn_recording **r, int64_t row, vn_error *err);

#endif
