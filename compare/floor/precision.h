/* precision.h: the number format that a recording was computed in: what it declares, and what its numbers show.
 *
 * Reads   request.options, opened.cand, and the numbers of a recording
 * Fills   opened.policy; lines of result.notes, warnings and refusals
 */
#ifndef VN_COMPARE_PRECISION_H
#define VN_COMPARE_PRECISION_H

#include "compare/comparison/comparison.h"

/* Are r's numbers of the precision that it says it ran in? Where most of what is looked at is coarser, a warning; where finer, a
 * refusal, and it is not an error yet. */
vn_status vn_check_precision(vn_comparison *c, const char *who, vn_recording *r, vn_error *err);

/* Warns of a reference that ran in 16 bits while the candidate did not: they may be swapped. */
void      vn_warn_swapped(vn_comparison *c);

/* opened.policy: what was asked for, else what the candidate declares, else the format that most of its tensors are in. */
void      vn_assume_policy(vn_comparison *c);

/* What a recording says it ran in, or else (false) the format that most of its tensors are in. */
bool      vn_policy_of_recording(const vn_recording *r, vn_policy *policy);

/* Does a keep more digits than b? */
bool      vn_policy_finer(vn_policy a, vn_policy b);

/* What the recording says of its precision, "unknown" where it says nothing; the recording's. */
const char *vn_precision_of(const vn_recording *r);

#endif
