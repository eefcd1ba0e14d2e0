/* top_k.c: which columns of each row have the largest numbers. */
#include "libref/ops/ops.h"

#include <math.h>
#include <stdlib.h>

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

/* The first of the n columns behind `last` (-1: of all) in the order of the choice; -1: none. */
static int64_t next_column(const real *x, int64_t n, int64_t last)
{
	int64_t next = -1;

	for (int64_t i = 0; i < n; i++)
		if (i != last && (last < 0 || is_before(x, last, i)) && (next < 0 || is_before(x, i, next)))
			next = i;
	return next;
}

/* Sets the numbers (E) of all but the best groups to minus infinity. sums: room for one of each. */
static void leave_groups(real *x, int64_t E, const vn_consts *c, real *sums)
{
	const int64_t groups = c->top_k.groups, n = E / groups;
	int64_t       last = -1;

	for (int64_t g = 0; g < groups; g++) {
		sums[g] = 0;
		last = -1;
		for (int i = 0; i < c->top_k.best; i++)
			sums[g] += x[g * n + (last = next_column(x + g * n, n, last))];
	}
	last = -1;
	for (int64_t i = 0; i < groups; i++) {
		last = next_column(sums, groups, last);
		for (int64_t e = 0; i >= c->top_k.groups_used && e < n; e++)
			x[last * n + e] = -(real)INFINITY;
	}
}

/* What is compared of a row x (E), into y; the sums of groups lie behind. */
static void score_row(real *y, const real *x, const real *bias, int64_t E, const vn_consts *c)
{
	for (int64_t i = 0; i < E; i++)
		y[i] = (c->top_k.sigmoid ? (real)(1 / (1 + exp(-(double)x[i]))) : x[i]) + (bias ? bias[i] : 0);
	if (c->top_k.groups)
		leave_groups(y, E, c, y + E);
}

bool REAL(vn_top_k)(real *y, const real *const in[2], int64_t T, const vn_consts *c, const vn_experiment *e,
                    int threads)
{
	const int64_t E = c->top_k.columns, k = c->top_k.k, skip = e ? e->top_k.skip : 0;
	const bool    scored = c->top_k.sigmoid || c->top_k.groups;
	real         *scores = scored ? malloc((size_t)(T * 2 * E) * sizeof *scores) : NULL; /* (T,2,E) */

	if (scored && !scores)
		return false;
#pragma omp parallel for num_threads(threads) schedule(static)
	for (int64_t t = 0; t < T; t++) {
		const real *x = scored ? scores + t * 2 * E : in[0] + t * E;
		int64_t     last = -1;
		if (scored)
			score_row(scores + t * 2 * E, in[0] + t * E, in[1], E, c);
		for (int64_t s = 0; s < skip + k; s++) {
			last = next_column(x, E, last);
			if (s >= skip)
				y[t * k + s - skip] = (real)last;
		}
	}
	free(scores);
	return true;
}
