/* slice.h: measures one slice of a pair of tensors. */
#pragma once

#include "compare/metrics/ahead.h"
#include "compare/metrics/scores.h"
#include "compare/metrics/sums.h"

/* What a thread does with a slice besides the sums. All zero before the first slice. */
typedef struct vn_slicing {
	vn_spread        spread; /* ULP distances are added to it */
	vn_ahead         ahead;  /* what to fetch meanwhile */
	vn_scores_sweep *scores; /* the row of scores that contains the slice, which is swept as well; NULL: none */
} vn_slicing;

/* Measures one slice, n <= VN_SLICE elements from `at`: fills *s. */
void vn_slice_narrow(const vn_pair *p, int64_t at, size_t n, vn_sums *s, vn_slicing *with);
/* The same in double, if either side is f64 or i32; only the spread of `with` is used. */
void vn_slice_wide(const vn_pair *p, int64_t at, size_t n, vn_sums *s, vn_slicing *with);

/* Adds to differing and differs_at. */
void vn_slice_differing(const vn_pair *p, int64_t at, size_t n, vn_sums *s);
