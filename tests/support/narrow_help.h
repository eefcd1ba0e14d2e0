/* narrow_help.h: a residual sum of the llama rounded to 16 bits, computed by the suite. */
#pragma once

#include "tests/support/explain_help.h"

#include <math.h>

enum { T = 5, D = 48, N = T * D };

static float a[N], b[N], sum[N];

/* Rounds to this many significant bits, including the leading one: 8 for bfloat16, 11 for
 * float16. */
static inline double in_bits(double x, int bits)
{
	int          e;
	const double m = frexp(x, &e);
	return ldexp(rint(ldexp(m, bits)), e - bits);
}

/* bits: of the sum; whole: the addends are rounded, too. */
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
