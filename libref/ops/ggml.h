/* ggml.h: how ggml's CPU backend rounds the inputs of a product.
 *
 * In a product with a stored weight, the other factor is converted to the format that belongs to
 * the weight's format (ggml's vec_dot_type), one token at a time; sums are float32. x is a block of
 * inputs, d and q are its scale and integers:
 *
 *   weight F32                  x, not rounded
 *   F16, BF16                   x rounded to that format
 *   Q4_0 Q4_1 Q5_0 Q5_1 Q8_0    blocks of 32:  m = max |x|             q = round(127/m x)
 *                                              x becomes f16(m/127) q
 *   Q4_K Q5_K Q6_K              blocks of 256: m = x of the largest |x|  q = round(-127/m x)
 *                                              x becomes 1/(-127/m) q
 *
 * round: to nearest, ties to even. For Q4_1 and Q5_1, the sum of a block's x, which is multiplied
 * by their minimum, is f16((m/127) sum q). Other processors differ as vn_ggml_scale says. (Read in
 * ggml 0.25, late 2026, and measured against it: specs/models.md 3.1.)
 */
#pragma once

#include "libref/base/dtype.h"

#include <stdbool.h>

typedef enum vn_ggml_scale {
	VN_GGML_DIVIDED, /* 127/m, as on x86 */
	VN_GGML_INVERTED /* 1/(m/127), as on ARM and in the plain C code */
} vn_ggml_scale;

/* Does a product with such a weight round its inputs? */
bool vn_ggml_rounds(vn_dtype weight);
/* Does the format have a minimum besides the scale of a block, so that sums of blocks are rounded
 * as well? */
bool vn_ggml_has_sums(vn_dtype weight);

/* Rounds a row of N numbers in place. sums (N/32), for weights with minimums (else NULL): by how
 * much f16((m/127) sum q) exceeds the sum of the rounded block. If N is not a multiple of the
 * weight's block, nothing is rounded. */
void vn_ggml_round(float *x, float *sums, vn_dtype weight, vn_ggml_scale scale, int64_t N);

/* gelu by tanh as ggml looks it up in a table of halves: y = f16(gelu_tanh(f16(x))), 0 for x <=
 * -10, x for x >= 10; the formula in float32. x, y (n), may be equal. */
void vn_ggml_gelu(float *y, const float *x, int64_t n);
