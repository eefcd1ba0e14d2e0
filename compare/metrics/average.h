/* average.h: mean and standard error, order, and rank of the numbers of single tokens or rows.
 *
 * Standard errors assume independent numbers. Neighbouring tokens are slightly alike, so the true
 * error is slightly larger.
 */
#pragma once

#include <stdint.h>

/* 95 % of a normal distribution are within this many standard deviations of its mean. */
#define VN_Z95 1.959963984540054

typedef struct vn_mean {
	double mean, error; /* the standard error, s / sqrt(n); NaN for a single number */
} vn_mean;

/* Returns mean and standard error of x (n), n > 0. A NaN makes both NaN. */
vn_mean vn_mean_of(const double *x, int64_t n);

/* Compares doubles for qsort; NaN comes last. */
int     vn_ascending(const void *a, const void *b);
/* Returns the index, in n sorted numbers, of the quantile `share` by nearest rank: the smallest
 * number that at least that share of all does not exceed. */
int64_t vn_quantile_index(int64_t n, double share);

/* Returns the median of n > 0 numbers without NaN: the one at vn_quantile_index(n, 0.5). Overwrites
 * x. */
double vn_median_of(double *x, int64_t n);
