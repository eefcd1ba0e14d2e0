/* batched.h: one prompt of a recording of several at once.
 *
 * In a batched recording /run/token_ids and /run/positions have a row a prompt, where a
 * position of -1 marks padding (on either side), and tensors have an axis `batch`
 * (specs/checkpoint.md). Seen as one of its rows it is a recording like any other.
 */
#ifndef VN_CAPTURE_BATCHED_H
#define VN_CAPTURE_BATCHED_H

#include "capture/recording.h"

/* *r becomes the derived recording of that prompt: its tokens without padding, its rows and its
 * keys. Also on failure *r is the caller's to close. Errors: no such row, padding in the middle. */
vn_status vn_batched_row(vn_recording **r, int64_t row, vn_error *err);

#endif
