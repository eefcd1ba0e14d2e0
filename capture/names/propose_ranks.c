/* propose_ranks.c: have two tensors the same numbers in another order? See propose_internal.h. */
#include "capture/names/propose_internal.h"

#include "capture/recording/numbers.h"
#include "libref/base/alloc.h"
#include "libref/base/order.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_NUMBERS = 4 << 20 };

VN_ORDER_BY(by_value, float, VN_ORDER(*x, *y))

vn_status vn_ranks_of(vn_recording *r, int entry, vn_ranks *to, vn_error *err)
{
	const int64_t n = vn_shape_count(&vn_recording_entry(r, entry)->shape);
	double        squares = 0;
	vn_status     st = VN_OK;

	*to = (vn_ranks) { .n = n };
	if (n < 4 * VN_RANK_ENDS || n > MOST_NUMBERS)
		return VN_OK;
	vn_numbers *numbers = vn_numbers_open(r, entry, err);
	float      *x = vn_alloc((size_t)n, sizeof *x);
	bool        finite = true;
	for (int64_t at = 0; !st && at < n; at += VN_NUMBERS) {
		const size_t m = vn_numbers_left(n, at);
		st = vn_numbers_read(numbers, at, m, err);
		for (size_t i = 0; !st && i < m; i++) {
			x[at + (int64_t)i] = (float)numbers->x[i];
			finite = finite && isfinite(numbers->x[i]);
			squares += numbers->x[i] * numbers->x[i];
		}
	}
	vn_numbers_close(numbers);
	if (!st && finite && squares > 0) {
		qsort(x, (size_t)n, sizeof *x, by_value);
		for (int i = 0; i < VN_RANK_ENDS; i++) {
			to->low[i] = x[i];
			to->high[i] = x[n - 1 - i];
			to->middle[i] = x[n * (i + 1) / (VN_RANK_ENDS + 1)];
		}
		to->rms = sqrt(squares / (double)n);
	}
	free(x);
	return st;
}

/* Of n normal numbers the 16 at the ends are some percent apart, so two other tensors do not agree
 * in all of them to one. */
bool vn_ranks_same(const vn_ranks *a, const vn_ranks *b)
{
	bool same = a->n == b->n && a->rms > 0 && b->rms > 0 && fabs(a->rms - b->rms) <= 0.01 * b->rms;
	for (int i = 0; same && i < VN_RANK_ENDS; i++)
		same = fabsf(a->low[i] - b->low[i]) <= 0.01f * fabsf(b->low[i]) &&
		       fabsf(a->high[i] - b->high[i]) <= 0.01f * fabsf(b->high[i]) &&
		       fabs((double)a->middle[i] - (double)b->middle[i]) <= 0.02 * b->rms;
	return same;
}
