/* misshapen.h: what the numbers of a misshapen checkpoint are: the reference's in another order, or another checkpoint's.
 *
 * Reads   request.limits and options, opened.ref, opened.cand, result.point
 * Fills   holds of misshapen checkpoints
 */
#ifndef VN_COMPARE_MISSHAPEN_H
#define VN_COMPARE_MISSHAPEN_H

#include "compare/comparison/comparison.h"

/* Errors: memory. */
vn_status vn_tell_misshapen(vn_comparison *c, vn_error *err);

#endif
