/* by_itself.h: checks each recording without the other: identities within a file, logits that echo
 * their input, text that is garbage.
 *
 * Reads    request.options, opened, the checkpoints, localised.first, localised.origins
 * Fills    lines of remarks; overwritten of a checkpoint
 */
#pragma once

#include "compare/comparison/comparison.h"

/* Marks second recordings of the candidate that do not hold the numbers of the first. */
vn_status vn_chapter_find_overwritten(const vn_opened *o, vn_checkpoints *all, vn_error *err);
/* Checks the identities of each file, with all threads of the comparison. If there is a divergence:
 * only in its layer and in those of the first origins. A broken identity there shows that a tensor
 * is mislabelled or was recorded at the wrong place. Without a divergence: in all layers, because
 * two recordings by one recorder share its mistakes. */
vn_status vn_chapter_check_alone(const vn_opened *o, const vn_checkpoints *all, const vn_localised *localised,
                                 vn_lines *warnings, vn_error *err);
/* If the logits fail: does the candidate's output head see the embedding of its input? */
vn_status vn_chapter_check_echo(const vn_opened *o, const vn_checkpoints *all, vn_lines *warnings, vn_error *err);
/* If the logits fail or the texts differ: is the candidate's text garbage? Notes decoded tokens
 * that its logits do not choose. */
vn_status vn_chapter_check_garbage(const vn_opened *o, const vn_checkpoints *all, vn_remarks *remarks, vn_error *err);
