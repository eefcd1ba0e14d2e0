/* sampling.h: compares two tensors at a few sampled positions, before all numbers are read. */
#ifndef VN_COMPARE_DRAW_H
#define VN_COMPARE_DRAW_H

#include <math.h>
#include <stdint.h>

enum { VN_DRAWN = 512, VN_DRAWN_FEWEST = 16, VN_DRAWN_SAMPLED = 1 << 18 };

/* Chooses positions among n elements: all of a small tensor, else multiples of the golden ratio,
 * which are the same for every tensor of that size. Returns how many. */
static inline int vn_draw(int64_t n, int64_t at[VN_DRAWN])
{
	const int drawn = n < VN_DRAWN ? (int)n : VN_DRAWN;
	for (int i = 0; i < drawn; i++)
		at[i] = n <= VN_DRAWN ? i : (int64_t)fmod((double)i * 0.6180339887498949 * (double)n, (double)n);
	return drawn;
}

typedef struct vn_drawn {
	double  rr, dd; /* r.r and d.d, where d = c - r */
	int64_t n;
} vn_drawn;

static inline void vn_drawn_add(vn_drawn *x, double r, double c)
{
	const double d = c - r;
	x->rr += r * r;
	x->dd += isfinite(d) ? d * d : (double)INFINITY;
	x->n++;
}

/* Returns the nmse of the samples, or infinity if they are too few or r is zero. */
static inline double vn_drawn_nmse(const vn_drawn *x)
{
	return x->n < VN_DRAWN_FEWEST || !(x->rr > 0) ? (double)INFINITY : x->dd / x->rr;
}

#endif
