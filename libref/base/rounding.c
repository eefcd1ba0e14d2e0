/* rounding.c: see rounding.h. */
#include "libref/base/rounding.h"

#include "libref/base/dtype.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* TF32: ten bits after the leading one, and float32's exponent. whole: how the rest is rounded. */
static double as_tf32(double x, double (*whole)(double x))
{
	int e;
	if (!isfinite(x) || x == 0)
		return x;
	x = frexp(x, &e);
	return ldexp(whole(ldexp(x, 11)), e - 11);
}

/* The same to the nearest, ties to even: the last 42 of a double's 52 bits, and the carry. */
static double to_tf32(double x)
{
	const uint64_t below = (UINT64_C(1) << 42) - 1;
	uint64_t       bits;

	if (!isnormal(x))
		return as_tf32(x, nearbyint);
	memcpy(&bits, &x, sizeof bits);
	bits = (bits + (below >> 1) + (bits >> 42 & 1)) & ~below;
	memcpy(&x, &bits, sizeof bits);
	return x;
}

double vn_round_to(double x, vn_rounding_format format)
{
	const float f = (float)x;

	switch (format) {
	case VN_FORMAT_BF16: return (double)vn_bf16_to_f32(vn_f32_to_bf16(f));
	case VN_FORMAT_F16: return (double)vn_f16_to_f32(vn_f32_to_f16(f));
	case VN_FORMAT_TF32: return to_tf32(x);
	case VN_FORMAT_TF32_AWAY: return as_tf32(x, round);
	case VN_FORMAT_TF32_CUT: return as_tf32(x, trunc);
	case VN_FORMAT_E4M3: return (double)vn_f8_e4m3_to_f32(vn_f32_to_f8_e4m3(f));
	case VN_FORMAT_E5M2: return (double)vn_f8_e5m2_to_f32(vn_f32_to_f8_e5m2(f));
	case VN_FORMAT_INT8: return nearbyint(x);
	case VN_FORMAT_INT8_128: return fmin(nearbyint(x), 127);
	/* the largest number is a tie, which division may put on either side */
	case VN_FORMAT_INT8_HALF: return fmax(fmin(nearbyint(x), 127), -127);
	case VN_FORMAT_F32: return (double)f;
	case VN_FORMAT_NONE:
	case VN_FORMAT_LEAST:
	case VN_N_FORMATS: break;
	}
	return x;
}

/* What the largest number of a scaled group becomes. */
static double full_scale(vn_rounding_format format)
{
	return format == VN_FORMAT_INT8        ? 127
	       : format == VN_FORMAT_INT8_128  ? 128
	       : format == VN_FORMAT_INT8_HALF ? 127.5
	                                       : vn_dtype_max(format == VN_FORMAT_E4M3 ? VN_F8_E4M3 : VN_F8_E5M2);
}

void vn_in_format_by(double *x, int64_t n, vn_rounding_format format, double most, double nudge)
{
	const double scale = most > 0 ? most / full_scale(format) : 1;

	for (int64_t i = 0; i < n; i++)
		x[i] = vn_in_format(x[i] / scale * (1 + nudge), format) * scale;
}

double vn_largest(const double *x, int64_t n)
{
	double most = 0;

	for (int64_t i = 0; i < n; i++)
		most = fmax(most, fabs(x[i]));
	return most;
}

void vn_in_format_scaled(double *x, int64_t n, vn_rounding_format format)
{
	vn_in_format_by(x, n, format, vn_largest(x, n), 0);
}

void vn_in_format_read_by(double *x, int64_t n, vn_rounding_format format, double full)
{
	vn_in_format_scaled(x, n, format);
	for (int64_t i = 0; full > 0 && i < n; i++)
		x[i] *= full_scale(format) / full;
}
