/* rope_table.c: cosine and sine of a rotary angle, as HuggingFace's tables have them. */
#include "libref/ops/rope_table.h"

#include "libref/base/clones.h"

#include <math.h>
#include <string.h>

/* sin r for |r| <= pi/2 is r + S3 r^3 + S5 r^5 + S7 r^7 + S9 r^9, in double, rounded once. The form
 * follows from torch's errors: they average 5e-9, far above rounding, as a smooth odd function of r
 * with four alternations. The coefficients are our fit to torch's values. Each value near a
 * rounding tie gives a linear inequality in the four; a linear program over the 1674 tightest of
 * all floats below 10000 leaves them a range of about 2e-9 ulp. */
static const double S3 = -0x1.55554bc83660ep-3;
static const double S5 = 0x1.110ed3804e4f6p-7;
static const double S7 = -0x1.9f6ffeeabd3afp-13;
static const double S9 = 0x1.5dbdf0e87c504p-19;

/* Pi in two parts. The first has 40 bits. k, up to 10000/pi and a half, has 13. So k * PI_HI is
 * exact, and so is its difference from the angle. */
static const double PI_HI = 0x1.921fb54442p1;
static const double PI_LO = 0x1.a308d313198a3p-40;
static const double ONE_OVER_PI = 0x1.45f306dc9c883p-2;

/* From here on torch reduces the angle differently, which we do not follow. */
static const float FAR = 10000.0f;

/* (-1)^n sin(angle - (n - shift) pi) for the nearest n: sin for shift 0, cos for 1/2. */
static inline float near_zero(float angle, double shift)
{
	/* adding 1.5 * 2^52 leaves the nearest integer in the low bits */
	const double t = ((double)angle * ONE_OVER_PI + shift) + 0x1.8p52, k = (t - 0x1.8p52) - shift;
	const double r = ((double)angle - k * PI_HI) - k * PI_LO;
	const double s = r * r;
	const double y = r + r * s * (S3 + s * (S5 + s * (S7 + s * S9)));
	uint64_t     n;

	memcpy(&n, &t, sizeof n);
	return (float)(n & 1 ? -y : y);
}

float vn_rope_cos(float angle)
{
	return fabsf(angle) < FAR ? near_zero(angle, 0.5) : (float)cos((double)angle);
}

float vn_rope_sin(float angle)
{
	return fabsf(angle) < FAR ? near_zero(angle, 0.0) : (float)sin((double)angle);
}

VN_CLONES
static void all_near(float *c, float *s, const float *angle, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		c[i] = near_zero(angle[i], 0.5);
		s[i] = near_zero(angle[i], 0.0);
	}
}

void vn_rope_row(float *c, float *s, const float *angle, int64_t n)
{
	all_near(c, s, angle, n);
	for (int64_t i = 0; i < n; i++)
		if (!(fabsf(angle[i]) < FAR)) {
			c[i] = vn_rope_cos(angle[i]);
			s[i] = vn_rope_sin(angle[i]);
		}
}
