/* explain_point.h: one checkpoint explained, into t->x, which is empty but for its point. */
#ifndef VN_COMPARE_EXPLAIN_POINT_H
#define VN_COMPARE_EXPLAIN_POINT_H

#include "compare/explain/trial.h"

/* By every strategy, or (like is not NULL) by the answers of another checkpoint and the next best alone. */
vn_status vn_explain_point(vn_explain_trial *t, const vn_explanation *like, vn_error *err);
/* By one hypothesis. */
vn_status vn_explain_with(vn_explain_trial *t, const vn_hypothesis *h, vn_error *err);
/* t->x has been filled in, and other steps refuted its answer: by the strategies that come behind the catalogue. fitted: what was
 * fitted was refuted, and would be found again. */
vn_status vn_explain_further(vn_explain_trial *t, bool fitted, vn_error *err);

#endif
