/* top_k.c: which columns of each row have the largest numbers. */
#include "libref/ops/ops.h"

#include <math.h>

/* Is a larger than b? A NaN is larger than any number. */
static bool is_larger(real a, real b)
{
	return a > b || (isnan(a) && !isnan(b));
}

/* Is column e of row x before column `by` in the order of the choice? */
static bool is_before(const real *x, int64_t e, int64_t by)
{
	return is_larger(x[e], x[by]) || (e < by && !is_larger(x[by], x[e]));
}

void REAL(vn_top_k)(real *y, const real *x, int64_t T, const vn_consts *c, const vn_experiment *e, int threads)
{
	const int64_t E = c->top_k.columns, k = c->top_k.k, skip = e ? e->top_k.skip : 0;

#pragma omp parallel for num_threads(threads) schedule(static)
	for (int64_t t = 0; t < T; t++) {
		int64_t last = -1;
		for (int64_t s = 0; s < skip + k; s++) {
			int64_t next = -1; /* the first of those behind the last one */
			for (int64_t i = 0; i < E; i++)
				if (i != last && (last < 0 || is_before(x + t * E, last, i)) &&
				    (next < 0 || is_before(x + t * E, i, next)))
					next = i;
			last = next;
			if (s >= skip)
				y[t * k + s - skip] = (real)last;
		}
	}
}
