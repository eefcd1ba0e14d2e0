/* notes.h: tells the user what a comparison cannot show: what was ignored, left out or not covered.
 *
 * Reads   request.options, request.limits, opened.ref, opened.cand, opened.plan, the checkpoints
 * Fills   lines of remarks.notes and warnings
 */
#pragma once

#include "compare/comparison/comparison.h"

/* Warns of content of a file that the reader ignored, because its author may expect it to be
 * judged. who: "reference", "candidate", "floor". */
void vn_warn_unread(vn_lines *warnings, const char *who, const vn_recording *r);
/* Warns of rules of the user's limits file that match no checkpoint: most likely a misspelt
 * name. */
void vn_warn_unused_rules(const vn_opened *o, vn_lines *warnings);

/* Notes a run of few tokens, or of few different ones: some faults are invisible there. */
void vn_note_few_tokens(const vn_opened *o, vn_lines *notes);
/* Notes how many attention scores were left out because they are minus infinity on both sides (a
 * mask). */
void vn_note_masks(const vn_checkpoints *all, vn_lines *notes);
/* Notes that the recordings cover part of a longer run or a deeper model: a fault elsewhere is not
 * found. */
void vn_note_part(const vn_opened *o, const vn_checkpoints *points, vn_lines *notes);
