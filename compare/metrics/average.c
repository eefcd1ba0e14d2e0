/* average.c: see average.h. */
#include "compare/metrics/average.h"

#include <math.h>

/* Two passes, because the deviations may be far smaller than the mean. */
vn_mean vn_mean_of(const double *x, int64_t n)
{
	double sum = 0.0, squares = 0.0;
	for (int64_t i = 0; i < n; i++)
		sum += x[i];
	const double mean = sum / (double)n;
	for (int64_t i = 0; i < n; i++)
		squares += (x[i] - mean) * (x[i] - mean);
	return (vn_mean) { mean, n > 1 ? sqrt(squares / (double)(n - 1) / (double)n) : (double)NAN };
}

int vn_ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return isnan(x) - isnan(y) ? isnan(x) - isnan(y) : (x > y) - (x < y);
}

int64_t vn_rank(int64_t n, double share)
{
	const int64_t i = (int64_t)ceil(share * (double)n) - 1;
	return i < 0 ? 0 : i;
}
