/* rope_table.h: cosine and sine of a rotary angle, with the bits of HuggingFace's tables.
 *
 * The reference is transformers in float64, but its rotary tables are float32: the angle is a float
 * product, and its cos and sin are float results, which are widened afterwards. So those float
 * results are part of the model's definition. The usual torch build takes them from a vendor
 * library that is accurate to 0.6 ulp, not to 0.5. The correctly rounded cosine therefore differs
 * from the table in about one element of twenty, by up to 6e-8: a thousand times more than a
 * float64 comparison tolerates.
 *
 * These functions return the table's bits instead of the more accurate ones. For the CPU reference
 * only: an engine under test makes its own tables.
 *
 *   |angle| <  10000   equal to torch 2.13 (x86-64, oneMKL 2024.2) on every float but 14
 *                      of 2 x 1176256512 (cos 11, sin 3, all above 6900 and near +-1)
 *   |angle| >= 10000   correctly rounded; torch is one ulp away in about 1 %
 *
 * The 14 and the 1 % are not reproduced. Above 10000 torch is not a single function: its library
 * has kernels with and without fused multiply-add, which differ there in 0.02 % of the elements
 * (below, in less than one in a million), and chooses by CPU. Measured on an AVX-512 machine by
 * AMD, where it uses those without.
 *
 * Threads    safe, no state. Assumes round to nearest.
 * Errors     none; an infinite or NaN angle gives NaN.
 */
#pragma once

#include <stdint.h>

/* angle in radians: the float product position * inv_freq. */
float vn_rope_cos(float angle);
float vn_rope_sin(float angle);
/* Both of n angles; c and s do not overlap angle. */
void  vn_rope_row(float *c, float *s, const float *angle, int64_t n);
