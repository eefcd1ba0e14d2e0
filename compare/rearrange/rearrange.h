/* rearrange.h: tries rearrangements of the operation's result: multiplied by a factor, plus a
 * number, capped; rows, heads or axes in another order; another checkpoint instead. */
#ifndef VN_COMPARE_REARRANGE_H
#define VN_COMPARE_REARRANGE_H

#include "compare/hypothesis/trial.h"

vn_status vn_rearrange(vn_explain_trial *t, vn_error *err);

#endif
