/* exp.h: the exponential function in double, for loops that are vectorised.
 *
 * The one in libm takes one number at a time, and a layer needs millions. The argument is split
 * into k ln 2 + r with |r| <= ln 2 / 2, and exp(r) is its Taylor polynomial of degree 13, whose
 * remainder is below 5e-18. The result is within 2 ulp of the true value from -708 to 709
 * (test_ops.c); below it is 0 and above infinity, which makes no difference to its users. NaN gives
 * NaN.
 */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline double vn_exp(double x)
{
	/* adding 1.5 * 2^52 leaves the nearest integer in the low bits */
	const double shift = 0x1.8p52, inside = x < -708.0 ? -708.0 : x > 709.0 ? 709.0 : x;
	const double t = inside * 0x1.71547652b82fep0 + shift, k = t - shift;
	/* ln 2 in two parts, the first with 32 bits so that k times it is exact */
	const double r = (inside - k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33;
	double       p = 1.0 / 6227020800.0;
	uint64_t     bits, scale;

	p = p * r + 1.0 / 479001600.0;
	p = p * r + 1.0 / 39916800.0;
	p = p * r + 1.0 / 3628800.0;
	p = p * r + 1.0 / 362880.0;
	p = p * r + 1.0 / 40320.0;
	p = p * r + 1.0 / 5040.0;
	p = p * r + 1.0 / 720.0;
	p = p * r + 1.0 / 120.0;
	p = p * r + 1.0 / 24.0;
	p = p * r + 1.0 / 6.0;
	p = p * r + 0.5;
	p = p * r * r + r; /* the small part first; 1 is added last */
	p = 1.0 + p;

	memcpy(&bits, &t, sizeof bits);
	memcpy(&scale, &p, sizeof scale);
	scale += bits << 52; /* times 2^k */
	memcpy(&p, &scale, sizeof p);
	return x < -708.0 ? 0.0 : x > 709.0 ? (double)INFINITY : p; /* a NaN has passed through r */
}
