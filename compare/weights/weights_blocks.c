/* weights_blocks.c: whether blocks of a quantised format hold the numbers that they were made of,
 * as far as the format can. */
#include "compare/weights/weights_numbers.h"

#include <math.h>

enum { SMALLEST = 32, LARGEST = 256 }; /* blocks */

/* Steps from 0 to the largest magnitude of a block. */
static double steps_of(vn_dtype d)
{
	switch (d) {
	case VN_Q4_0:
	case VN_Q4_1:
	case VN_Q4_K: return 8.0;
	case VN_Q5_0:
	case VN_Q5_1:
	case VN_Q5_K: return 16.0;
	case VN_Q6_K: return 32.0;
	case VN_Q8_0: return 127.0;
	default: return INFINITY;
	}
}

double vn_weight_block_step(vn_dtype a, vn_dtype b)
{
	return 1.0 / steps_of(a) + 1.0 / steps_of(b);
}

/* Sums over numbers x of one side and y of the other. */
typedef struct quantised_sums {
	double xx, yy, xy, largest; /* largest: magnitude of x */
} quantised_sums;

static void add_block(quantised_sums *s, const double *x, const double *y, size_t n)
{
	*s = (quantised_sums) { 0 };
	for (size_t i = 0; i < n; i++) {
		s->xx += x[i] * x[i];
		s->yy += y[i] * y[i];
		s->xy += x[i] * y[i];
		s->largest = fmax(s->largest, fabs(x[i]));
	}
}

/* What remains of y without its share of x, relative to x. */
static double rest_of(const quantised_sums *s)
{
	return sqrt(fmax(0.0, s->yy - s->xy * s->xy / s->xx) / s->xx);
}

/* A rounding leaves 0.29 steps; quantisers that weigh numbers by importance leave more. The factor
 * of a block is off by the mean of its roundings: by at most 1.1 times what remains of 32 numbers,
 * and 0.73 times of 256, measured on normal, uniform, sparse and heavy-tailed numbers and on files
 * of llama.cpp. */
static bool block_fits(const quantised_sums *s, size_t n, double step)
{
	if (s->xx == 0.0)
		return s->yy == 0.0;
	const double rest = rest_of(s);
	return rest <= 0.6 * step * s->largest / sqrt(s->xx / (double)n) &&
	       fabs(s->xy / s->xx - 1.0) <= (n > SMALLEST ? 1.0 : 1.4) * rest + 2e-3;
}

vn_weight_block_fit vn_weight_block_fit_of(const vn_tensor *a, const vn_tensor *b)
{
	const size_t n = (size_t)vn_shape_count(&a->shape), block = vn_dtype_block(a->dtype),
				 other = vn_dtype_block(b->dtype), size = block > other ? block : other;
	const double        step = vn_weight_block_step(a->dtype, b->dtype);
	vn_weight_block_fit f = { 0 };
	quantised_sums      good = { 0 };

	for (size_t i = 0; i < n; i += size) {
		const size_t   k = n - i < size ? n - i : size;
		double         x[LARGEST], y[LARGEST];
		quantised_sums s;
		vn_to_f64(x, (const unsigned char *)a->data + vn_dtype_bytes(a->dtype, i), a->dtype, k);
		vn_to_f64(y, (const unsigned char *)b->data + vn_dtype_bytes(b->dtype, i), b->dtype, k);
		add_block(&s, x, y, k);
		f.blocks++;
		if (!block_fits(&s, k, step)) {
			f.wrong++;
			continue;
		}
		good.xx += s.xx;
		good.yy += s.yy;
		good.xy += s.xy;
	}
	/* Of all blocks together, the factor is much nearer to 1. */
	if (good.xx > 0.0 && !(fabs(good.xy / good.xx - 1.0) <= 0.2 * rest_of(&good) + 5e-4))
		f.wrong = f.blocks;
	return f;
}
