/* narrow_help.h: a sum that the llama's engine made in 16 bits, as a suite computes it itself. */
#ifndef VN_TESTS_NARROW_HELP_H
#define VN_TESTS_NARROW_HELP_H

#include "tests/explain_help.h"

#include <math.h>

enum { T = 5, D = 48, N = T * D };

static float a[N], b[N], sum[N];

/* To so many bits, the first of which is not stored: 8 of bfloat16, 11 of float16. */
static inline double in_bits(double x, int bits)
{
	int          e;
	const double m = frexp(x, &e);
	return ldexp(rint(ldexp(m, bits)), e - bits);
}

/* The next number of that format away from 0. */
static inline double next_in_bits(double x, int bits)
{
	int e;
	frexp(x, &e);
	return x + copysign(ldexp(1, e - bits), x);
}

/* bits: of the sum; whole: of what is added, too. */
static inline void add_numbers(int bits, bool whole)
{
	for (int i = 0; i < N; i++) {
		a[i] = given_number(i, 1);
		b[i] = given_number(i, 2);
		const double x = (double)a[i], y = (double)b[i];
		sum[i] = (float)in_bits(whole ? in_bits(x, bits) + in_bits(y, bits) : x + y, bits);
	}
}

/* A trial at the sum. */
static inline void stand_at_sum(explained *e)
{
	const given of[] = { { "layer1.input", a }, { "layer1.attn_out", b }, { "layer1.attn_residual", sum } };

	compare_given(e, T, 0, of, 3);
	stand_at(e, "layer1.attn_residual", 0);
}

#endif
