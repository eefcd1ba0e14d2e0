/* average.h: numbers of single tokens or rows taken together: mean and its error, order, rank.
 *
 * Errors are as if the numbers were independent; neighbours are a little alike,
 * so the truth is a little wider.
 */
#ifndef VN_COMPARE_AVERAGE_H
#define VN_COMPARE_AVERAGE_H

#include <stdint.h>

/* 95 % of a normal distribution are within so many standard deviations of its mean. */
#define VN_Z95 1.959963984540054

typedef struct vn_mean {
	double mean, error; /* the standard error, s / sqrt(n); NaN for a single number */
} vn_mean;

/* x (n), n > 0. A NaN makes both NaN. */
vn_mean vn_mean_of(const double *x, int64_t n);

/* qsort's order of doubles; NaN is the worst, and last. */
int vn_ascending(const void *a, const void *b);
/* Nearest rank: the index, of n sorted numbers, of the smallest that a share of all does not exceed. */
int64_t vn_rank(int64_t n, double share);

#endif
