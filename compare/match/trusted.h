/* trusted.h: checkpoints that are equal by their digests, and not read (--trust-digests).
 *
 * A comparison reads every number and checks its digest, so that "within" means that these are the
 * numbers that were written. With options->trust it believes the digests: a checkpoint whose
 * digest, format and shape are the same on both sides is VN_EQUAL. Nothing of it is read, and no
 * metric is known. Still read are tensors that the files hold in another layout than they are
 * compared in, without statistics, of one number alone, or with NaN or infinities; and everything
 * with a model, since operations are recomputed from the numbers.
 *
 * Reads    request.options, opened.ref, opened.cand
 * Changes  status and detail of checkpoints
 * Fills    a line of notes or, with --strict, of warnings
 */
#ifndef VN_COMPARE_TRUSTED_H
#define VN_COMPARE_TRUSTED_H

#include "compare/comparison/comparison.h"

/* Are digests believed in this comparison? */
bool vn_trusts(const vn_comparison *c);
/* After vn_match, before anything is measured. */
void vn_trust_digests(vn_comparison *c);

#endif
