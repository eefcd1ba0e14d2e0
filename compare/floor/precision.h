/* precision.h: the number format that a recording was computed in: what it declares, and what its
 * numbers show.
 *
 * Reads   request.options, opened.ref, opened.cand, and the numbers of a recording
 * Fills   opened.policy; lines of notes, warnings and refusals
 */
#pragma once

#include "compare/comparison/comparison.h"
#include "libref/base/shell.h"

/* Do r's numbers have the precision that r declares? If most of the numbers examined are coarser,
 * it adds a warning; if finer, a refusal, and still returns VN_OK. who: the role of r in
 * messages. */
vn_status vn_floor_check_precision(const vn_opened *o, vn_remarks *remarks, const char *who, vn_recording *r,
                                   vn_error *err);

/* Warns if the reference ran in 16 bits and the candidate did not: they may be swapped. */
bool vn_warn_swapped(const vn_opened *o, vn_lines *warnings);

/* Writes the command with both sides exchanged, or "" if it cannot be typed. */
void vn_swapped_line(const vn_opened *o, char line[VN_SHELL_LINE]);

/* Sets opened.policy: the precision that was asked for, else what the candidate declares, else the
 * format of most of its tensors. */
void vn_assume_policy(vn_opened *o, vn_lines *notes);

/* Sets *policy to the precision that a recording declares and returns true; else to the format of
 * most of its tensors, and returns false. */
bool vn_policy_of_recording(const vn_recording *r, vn_policy *policy);

/* Does a keep more digits than b? */
bool vn_policy_finer(vn_policy a, vn_policy b);

/* Returns the recording's words for its precision, or "unknown". Owned by the recording. */
const char *vn_precision_of(const vn_recording *r);
/* Same, of the candidate: what options->precision says instead, or what was inferred. */
const char *vn_precision_of_candidate(const vn_opened *o);
