/* rounding.h: rounds numbers to the formats that engines compute and store in. */
#pragma once

#include <stdint.h>

/* VN_FORMAT_NONE: no rounding. VN_FORMAT_TF32_AWAY: TF32 whose ties are rounded away from 0, as
 * graphics processors do; VN_FORMAT_TF32_CUT: TF32 rounded towards 0. VN_FORMAT_INT8_128 and _HALF:
 * int8 scaled by the largest number / 128 and / 127.5, not / 127. */
typedef enum vn_rounding_format {
	VN_FORMAT_LEAST = -1, /* none: makes the type signed for every compiler, as constants of nodes are (plan.h) */
	VN_FORMAT_NONE,
	VN_FORMAT_BF16,
	VN_FORMAT_F16,
	VN_FORMAT_TF32,
	VN_FORMAT_TF32_AWAY,
	VN_FORMAT_TF32_CUT,
	VN_FORMAT_E4M3,
	VN_FORMAT_E5M2,
	VN_FORMAT_INT8,
	VN_FORMAT_INT8_128,
	VN_FORMAT_INT8_HALF,
	VN_FORMAT_F32,
	VN_N_FORMATS
} vn_rounding_format;

double vn_round_to(double x, vn_rounding_format format);

/* Returns x after a round trip through a format; int8: the nearest integer. Inline, so that the
 * loops of operations have no call where they round to nothing or to float32. */
static inline double vn_in_format(double x, vn_rounding_format format)
{
	return format == VN_FORMAT_NONE ? x : format == VN_FORMAT_F32 ? (double)(float)x : vn_round_to(x, format);
}

/* Rounds n numbers that share a scale: the number `most` becomes the format's largest; 0: no scale.
 * Scaled numbers are multiplied by 1 + nudge before they are rounded. */
void   vn_in_format_by(double *x, int64_t n, vn_rounding_format format, double most, double nudge);
/* Same, with the largest of the n numbers as `most`. */
void   vn_in_format_scaled(double *x, int64_t n, vn_rounding_format format);
/* Same, and then reads them by the scale largest / full; 0: by the format's own. */
void   vn_in_format_read_by(double *x, int64_t n, vn_rounding_format format, double full);
/* Returns the largest |x[i]|; 0: there are no numbers. */
double vn_largest(const double *x, int64_t n);
