/* recompute_run.h: computes a value by a plan. */
#ifndef VN_COMPARE_RECOMPUTE_RUN_H
#define VN_COMPARE_RECOMPUTE_RUN_H

#include "compare/replay/recompute_internal.h"

/* Call vn_recompute_end in any case. */
vn_status vn_recompute_begin(vn_recompute_plan *r, vn_recompute *p, const vn_plan *plan, const vn_tensor *weight,
                             vn_recompute_width *w, vn_error *err);
void      vn_recompute_end(vn_recompute_plan *r);
/* Returns a value for all tokens: captured, made for an earlier plan, or made now. Owned by r or
 * p. */
vn_status vn_recompute_value(vn_recompute_plan *r, int value, const void **data, vn_error *err);
/* What a node reads besides tensors. */
vn_args   vn_recompute_args(const vn_recompute_plan *r, const vn_node *n);

#endif
