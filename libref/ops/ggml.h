/* ggml.h: what ggml's CPU backend makes of the numbers that go into a product.
 *
 * A product with a stored weight takes its other factor in the format that goes with the weight's (vec_dot_type there), one token
 * at a time; sums are float32. With x a block of that format, d and q its scale and whole numbers:
 *
 *   weight F32                  x as it is
 *   F16, BF16                   x rounded to that format
 *   Q4_0 Q4_1 Q5_0 Q5_1 Q8_0    32 numbers: m = max |x|   q = round(127/m x)    x becomes f16(m/127) q
 *   Q4_K Q5_K Q6_K              256:        m = x of the largest |x|   q = round(-127/m x)   x becomes 1/(-127/m) q
 *
 * round: to the nearest, ties to even. Q4_1 and Q5_1 take the sum of a block's x, which meets their minimum, as f16((m/127) sum q).
 * What other processors do otherwise: vn_ggml_scale. (Read in ggml 0.25, late 2026, and measured against it: specs/models.md 3.1.)
 */
#ifndef VN_LIBREF_OPS_GGML_H
#define VN_LIBREF_OPS_GGML_H

#include "libref/base/dtype.h"

#include <stdbool.h>

typedef enum vn_ggml_scale {
	VN_GGML_DIVIDED, /* 127/m, as x86 has it */
	VN_GGML_INVERTED /* 1/(m/127), as ARM does and the plain C code */
} vn_ggml_scale;

/* Does a product with such a weight round what goes in? */
bool vn_ggml_rounds(vn_dtype weight);
/* Has it a minimum beside the scale of a block, so that sums of blocks are rounded as well? */
bool vn_ggml_has_sums(vn_dtype weight);

/* In place, a row of N numbers. sums (N/32), of a weight that has them: by how much f16((m/127) sum q) is more than the sum of what
 * the block becomes; else NULL. N is of whole blocks, as the weight's rows are: else nothing is rounded. */
void vn_ggml_round(float *x, float *sums, vn_dtype weight, vn_ggml_scale scale, int64_t N);

/* gelu by tanh as ggml looks it up, by the half that x is nearest to:   y = f16(gelu_tanh(f16(x)))
 * 0 for x <= -10, x for x >= 10; the formula in float32. x, y (n), may be the same. */
void vn_ggml_gelu(float *y, const float *x, int64_t n);

#endif
