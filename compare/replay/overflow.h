/* overflow.h: finds where numbers first left the range of their format.
 *
 * A replay in the candidate's precision overflows as the candidate did, so it finds that the
 * operation agrees, although the infinities start there. Operations that read infinities only pass
 * them on, in ways that differ between engines (0 x infinity is NaN, unless the product is
 * skipped).
 *
 * A checkpoint where an overflow starts has NaN or infinity where the reference has finite numbers,
 * and its inputs are finite. At each of these places, either the reference's number exceeds the
 * format's largest number, or a partial sum of the product does, computed in float64 from the
 * candidate's input and the weights.
 *
 * Reads   opened.ref, opened.cand, opened.model, opened.policy, localised.graph, and the judged and
 *         replayed checkpoints
 * Fills   overflow of checkpoints; replay.charged_to of some
 */
#pragma once

#include "compare/comparison/comparison.h"

/* Fills overflow of checkpoints; and replay.charged_to of those that exceed their floor only by NaN
 * and infinities that an input also has. Call after vn_localise. Fails if memory runs out, or if a
 * recording cannot be read. */
vn_status vn_replay_find_overflows(const vn_opened *o, vn_checkpoints *all, const vn_localised *localised,
                                   vn_error *err);

/* "it passed 65504, the largest f16: ..."; text of VN_WORDS bytes. */
const char *vn_replay_say_overflow(const vn_checkpoint *p, char *text);

/* Returns true if p overflowed and the replay found no other fault there: nothing else needs an
 * explanation. */
bool vn_overflow_is_all(const vn_checkpoint *p);
