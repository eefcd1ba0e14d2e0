/* average.c: see average.h. */
#include "compare/metrics/average.h"

#include <math.h>
#include <string.h>

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

int64_t vn_quantile_index(int64_t n, double share)
{
	const int64_t i = (int64_t)ceil(share * (double)n) - 1;
	return i < 0 ? 0 : i;
}

/* Up to this count, sorting is faster than the counting passes of `median`. */
enum { SORTED_AT_ONCE = 64 };

/* The number of the given rank among a few integers stored as doubles. */
static uint64_t value_at_rank(const double *x, int n, int rank)
{
	uint64_t sorted[SORTED_AT_ONCE], u;
	for (int i = 0; i < n; i++) {
		int at = i;
		memcpy(&u, &x[i], sizeof u);
		for (; at > 0 && sorted[at - 1] > u; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = u;
	}
	return sorted[rank];
}

/* By radix selection on their bits, so its speed does not depend on their order. */
double vn_median_of(double *x, int64_t n)
{
	enum { BITS = 11 };
	int64_t  rank = vn_quantile_index(n, 0.5);
	uint64_t found = 0, u;
	for (int64_t i = 0; i < n; i++) { /* map to integers in the same order */
		memcpy(&u, &x[i], sizeof u);
		u = u >> 63 ? ~u : u | (uint64_t)1 << 63;
		memcpy(&x[i], &u, sizeof u);
	}
	if (n <= SORTED_AT_ONCE) {
		found = value_at_rank(x, (int)n, (int)rank);
		n = 0;
	}
	for (int shift = 64 - BITS; n > 0; shift = shift > BITS ? shift - BITS : 0) {
		uint32_t count[1 << BITS] = { 0 };
		int64_t  m = 0;
		uint64_t digit = 0;
		for (int64_t i = 0; i < n; i++) {
			memcpy(&u, &x[i], sizeof u);
			count[u >> shift & ((1 << BITS) - 1)]++;
		}
		while (rank >= (int64_t)count[digit])
			rank -= count[digit++];
		for (int64_t i = 0; i < n; i++) {
			memcpy(&u, &x[i], sizeof u);
			if ((u >> shift & ((1 << BITS) - 1)) == digit) {
				memcpy(&x[m++], &u, sizeof u);
				found = u;
			}
		}
		n = shift > 0 && m > 1 ? m : 0;
	}
	found = found >> 63 ? found ^ (uint64_t)1 << 63 : ~found;
	double value;
	memcpy(&value, &found, sizeof value);
	return value;
}
