/* batched.h: selects one prompt of a recording that holds several.
 *
 * Two layouts are known (specs/checkpoint.md):
 *
 *   batch    /run/token_ids and /run/positions have a row per prompt, where position -1 marks
 *            padding on either side, and tensors have an axis `batch`
 *   packed   the prompts follow each other in one row, as do their tokens and keys in the tensors
 *            (packed.h)
 *
 * The result is a derived recording (derive.h) of that prompt alone.
 */
#pragma once

#include "capture/recording/recording.h"

/* Returns how many prompts there are to choose from; 0: the recording holds a single prompt. */
int64_t vn_batched_count(const vn_recording *r);

/* Replaces *r by the derived recording of one prompt: its tokens without padding, its rows and its
 * keys. The caller closes *r, also after a failure. Errors: no such row, padding in the middle, a
 * step that does not continue every prompt. */
vn_status vn_batched_row(vn_recording **r, int64_t row, vn_error *err);

/* Same for the prompt that an option selects, by default (row -1) the only one. A batch of several
 * rows without the option is refused. *several: packed prompts that stay together, as no option was
 * given; 0: one prompt. option: its name, for messages. */
vn_status vn_batched_take(vn_recording **r, int64_t row, const char *option, int64_t *several, vn_error *err);

/* Is the tensor a state after the last token (of Gated DeltaNet) that this recording lacks? Several
 * prompts in one row leave one such state, the last prompt's, unless it has an axis `batch`. */
bool vn_batched_lacks(const vn_recording *r, const vn_entry *e);

/* Is it one of several packed prompts? */
bool      vn_batched_is_packed(const vn_recording *r);
/* For a recording from vn_batched_row: reads the rows of tensor `name` that are not this prompt's
 * and precede its tokens in that step: of a batch, padding, for later steps with that after the
 * prompt; of packed prompts, tokens of the others. *x: (*n, row), in the order of the file. The
 * caller frees *x. *n is 0 and *x NULL if there are none, or if the tensor's axes are not
 * (batch, token, ...). */
vn_status vn_batched_padding(const vn_recording *r, const char *name, int step, double **x, int64_t *n, vn_error *err);
