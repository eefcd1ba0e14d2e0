/* trusted.h: checkpoints that are equal by their digests, and not read (--trust-digests).
 *
 * A comparison reads every number and checks its digest, so that "within" means that these are the
 * numbers that were written. With options->trust it believes the digests: a checkpoint whose
 * digest, format and shape are the same on both sides is VN_EQUAL. Its numbers are not read, and no
 * metric is known. These tensors are read nevertheless: those that are compared in another layout
 * than they are stored in, those without statistics, with a single value or with NaN or infinities,
 * and, with a model, all, because operations are recomputed from the numbers.
 *
 * Reads    request.options, opened.ref, opened.cand
 * Changes  status and detail of checkpoints
 * Fills    a line of notes or, with --strict, of warnings
 */
#pragma once

#include "compare/comparison/comparison.h"

/* Are digests believed in this comparison? */
bool vn_trusts(const vn_opened *o);
/* Sets the status of these checkpoints, if digests are believed. Call after vn_match, before
 * anything is measured. */
void vn_trust_digests(const vn_opened *o, vn_checkpoints *all, vn_remarks *remarks);
