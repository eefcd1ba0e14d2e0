/* sampling.h: compares two tensors at a few sampled positions, before all numbers are read. */
#pragma once

#include <math.h>
#include <stdint.h>

enum { VN_SAMPLED = 512, VN_SAMPLED_FEWEST = 16, VN_SAMPLED_MOST = 1 << 18 };

/* Chooses positions among n elements: all of a small tensor, else multiples of the golden ratio,
 * which are the same for every tensor of that size. Returns how many. */
static inline int vn_sampled_positions(int64_t n, int64_t at[VN_SAMPLED])
{
	const int sampled = n < VN_SAMPLED ? (int)n : VN_SAMPLED;
	for (int i = 0; i < sampled; i++)
		at[i] = n <= VN_SAMPLED ? i : (int64_t)fmod((double)i * 0.6180339887498949 * (double)n, (double)n);
	return sampled;
}

typedef struct vn_sampled {
	double  rr, dd; /* r.r and d.d, where d = c - r */
	int64_t n;
} vn_sampled;

static inline void vn_sampled_add(vn_sampled *x, double r, double c)
{
	const double d = c - r;
	x->rr += r * r;
	x->dd += isfinite(d) ? d * d : (double)INFINITY;
	x->n++;
}

/* Returns the nmse of the samples, or infinity if they are too few or r is zero. */
static inline double vn_sampled_nmse(const vn_sampled *x)
{
	return x->n < VN_SAMPLED_FEWEST || !(x->rr > 0) ? (double)INFINITY : x->dd / x->rr;
}
