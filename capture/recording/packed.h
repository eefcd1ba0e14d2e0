/* packed.h: finds the prompts in a recording that holds several in one row, as engines with
 * continuous batching record them.
 *
 * A prompt begins where a position of the first step (/run/positions) is not the previous one plus
 * one. Every later step has tokens of every prompt, in the same order: one token each, or a run of
 * consecutive positions each, as in the first step.
 */
#pragma once

#include "capture/recording/recording.h"

/* Returns the number of prompts; 0: one prompt, or the rows of a batch (batched.h). */
int64_t   vn_packed_count(const vn_recording *r);
/* Fills of (tokens): which prompt each token belongs to. Fails if a step does not continue all
 * prompts. */
vn_status vn_packed_prompts(const vn_recording *r, int64_t *of, vn_error *err);
