/* vocab_view.h: a recording of some tokens of the vocabulary (libref/plan/vocab_part.h). */
#pragma once

#include "capture/recording/recording.h"

/* Replaces *r by the derived recording in which each axis `vocab` of that length holds the sample.
 * The caller closes *r, also after a failure. */
vn_status vn_vocab_view(vn_recording **r, int64_t vocab, vn_error *err);
