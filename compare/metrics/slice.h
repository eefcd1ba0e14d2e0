/* slice.h: measures one slice of a pair of tensors. */
#ifndef VN_COMPARE_SLICE_H
#define VN_COMPARE_SLICE_H

#include "compare/metrics/ahead.h"
#include "compare/metrics/scores.h"
#include "compare/metrics/sums.h"

/* Measures one slice, n <= VN_SLICE elements from `at`: fills *s, and adds ULP distances to spread
 * (zeroed before the first slice). ahead: what to fetch meanwhile, or NULL. scores: the row of
 * scores that contains the slice, which is swept as well; or NULL. */
void vn_slice_narrow(const vn_metric_kernel *k, const vn_pair *p, int64_t at, size_t n, vn_sums *s, vn_spread *spread,
                     vn_ahead *ahead, vn_scores_sweep *scores);
/* The same in double, if either side is f64 or i32. */
void vn_slice_wide(const vn_metric_kernel *k, const vn_pair *p, int64_t at, size_t n, vn_sums *s, vn_spread *spread);

/* Adds to differing and differs_at. */
void vn_slice_differing(const vn_pair *p, int64_t at, size_t n, vn_sums *s);

#endif
