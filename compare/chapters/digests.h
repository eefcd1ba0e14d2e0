/* digests.h: checks the digests of the tensors that a comparison read.
 *
 * A tensor whose numbers do not match its digest was changed after it was written. The comparison
 * is refused, unless the user allows it (--allow digest): then the report warns.
 *
 * Reads   request.options, opened.ref, opened.cand, opened.floor
 * Fills   result.digests; lines of remarks.refusals or warnings
 */
#ifndef VN_COMPARE_DIGESTS_H
#define VN_COMPARE_DIGESTS_H

#include "compare/comparison/comparison.h"

/* Checks everything read so far of the first n of reference, candidate and floor, and counts the
 * digests in result.digests. Fails with VN_ERR_MISMATCH if some are wrong and not allowed. */
vn_status vn_digests_check(const vn_opened *o, vn_verified *digests, vn_lines *refusals, int n, vn_error *err);
/* Adds a refusal for each wrong digest found so far (at most 8, then their number), and fails with
 * VN_ERR_MISMATCH. VN_OK if there is none. */
vn_status vn_digests_refuse(const vn_opened *o, vn_lines *refusals, vn_error *err);
/* Adds the same lines to remarks.warnings instead, because the user allowed them. */
void      vn_digests_warn(const vn_opened *o, vn_lines *warnings);

#endif
