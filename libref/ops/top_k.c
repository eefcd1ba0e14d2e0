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

/* Fills first (m) with the first m of n columns in the order of the choice. */
static void first_columns(const real *x, int64_t n, int64_t m, int64_t *first)
{
	for (int64_t i = 0, have = 0; i < n; i++) {
		if (have == m && !is_before(x, i, first[m - 1]))
			continue;
		int64_t at = have < m ? have++ : m - 1;
		for (; at > 0 && is_before(x, i, first[at - 1]); at--)
			first[at] = first[at - 1];
		first[at] = i;
	}
}

/* Sets the numbers (E) of all but the best groups to minus infinity. sums, first: room for one of
 * each column. */
static void leave_groups(real *x, int64_t E, const vn_consts *c, real *sums, int64_t *first)
{
	const int64_t groups = c->top_k.groups, n = E / groups;

	for (int64_t g = 0; g < groups; g++) {
		first_columns(x + g * n, n, c->top_k.best, first);
		sums[g] = 0;
		for (int i = 0; i < c->top_k.best; i++)
			sums[g] += x[g * n + first[i]];
	}
	first_columns(sums, groups, groups, first);
	for (int64_t i = c->top_k.groups_used; i < groups; i++)
		for (int64_t e = 0; e < n; e++)
			x[first[i] * n + e] = -(real)INFINITY;
}

/* What is compared of a row x (E), into y; the sums of groups lie behind. first: room for E. */
static void score_row(real *y, const real *x, const real *bias, int64_t E, const vn_consts *c, int64_t *first)
{
	for (int64_t i = 0; i < E; i++)
		y[i] = (c->top_k.sigmoid ? (real)(1 / (1 + exp(-(double)x[i]))) : x[i]) + (bias ? bias[i] : 0);
	if (c->top_k.groups)
		leave_groups(y, E, c, y + E, first);
}

bool REAL(vn_top_k)(real *y, const real *const in[2], int64_t T, const vn_consts *c, const vn_experiment *e,
                    int threads)
{
	const int64_t E = c->top_k.columns, k = c->top_k.k, skip = e ? e->top_k.skip : 0;
	const bool    scored = c->top_k.sigmoid || c->top_k.groups;
	real         *scores = scored ? malloc((size_t)(T * 2 * E) * sizeof *scores) : NULL; /* (T,2,E) */
	bool          good = !scored || scores;

#pragma omp parallel num_threads(threads) reduction(&& : good)
	{
		int64_t *first = malloc((size_t)E * sizeof *first);

		good = good && first;
#pragma omp for schedule(static)
		for (int64_t t = 0; t < T; t++) {
			const real *x = scored ? scores + t * 2 * E : in[0] + t * E;
			if (!first || (scored && !scores))
				continue;
			if (scored)
				score_row(scores + t * 2 * E, in[0] + t * E, in[1], E, c, first);
			first_columns(x, E, skip + k, first);
			for (int64_t s = 0; s < k; s++)
				y[t * k + s] = (real)first[skip + s];
		}
		free(first);
	}
	free(scores);
	return good;
}
