/* weights_same.c: whether two rows of weight tables are the same weight; see weights.h. */
#include "compare/weights/weights.h"

#include <math.h>
#include <string.h>

/* Does rounding to the coarser format explain the difference of two statistics? */
static bool is_near_or_both_nan(double x, double y, double room)
{
	return fabs(x - y) <= room || (isnan(x) && isnan(y));
}

bool vn_weights_same(const vn_weight_row *x, const vn_weight_row *y)
{
	if (x->dtype == y->dtype && *x->digest.hex && *y->digest.hex)
		return strcmp(x->digest.hex, y->digest.hex) == 0;
	/* Quantising does not round to a grid, so quantised numbers differ however close they are. */
	if (vn_dtype_block(x->dtype) > 1 || vn_dtype_block(y->dtype) > 1)
		return x->dtype == y->dtype && memcmp(&x->stats, &y->stats, sizeof x->stats) == 0;
	const vn_dtype  grid = vn_dtype_digits(x->dtype) < vn_dtype_digits(y->dtype) ? x->dtype : y->dtype;
	const vn_stats *a = &x->stats, *b = &y->stats;
	const double    tiny = vn_dtype_ulp(grid, 0.0), unit = ldexp(1.0, -vn_dtype_digits(grid));
	const double    room = unit * fmax(fabs(a->min), fabs(a->max)) + tiny;
	return a->nan == b->nan && a->inf == b->inf && is_near_or_both_nan(a->min, b->min, room) &&
	       is_near_or_both_nan(a->max, b->max, room) && is_near_or_both_nan(a->mean, b->mean, unit * a->rms + tiny) &&
	       is_near_or_both_nan(a->rms, b->rms, unit * a->rms + tiny);
}
