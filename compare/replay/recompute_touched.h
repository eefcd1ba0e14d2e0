/* recompute_touched.h: finds which values a changed plan computes differently from the unmodified
 * plan. */
#ifndef VN_COMPARE_RECOMPUTE_TOUCHED_H
#define VN_COMPARE_RECOMPUTE_TOUCHED_H

#include "compare/replay/recompute_internal.h"

/* Does the plan compute this value differently from the unmodified plan? False if the value is
 * taken from the recording. */
bool vn_recompute_is_touched(vn_recompute_plan *r, int value);
/* Is this value the checkpoint as the unmodified plan makes it? Many plans only continue from
 * there (one that caps the logits, for instance). Then the product that makes it, perhaps the
 * longest of the model, is computed once for all of them. */
bool vn_recompute_makes_target(vn_recompute_plan *r, int root);

#endif
