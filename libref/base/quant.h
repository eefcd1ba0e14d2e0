/* quant.h: the blocks in which GGUF stores weights, and the floats they stand for.
 *
 * A block holds 32 or 256 weights with one or more scales; numbers are those of
 * ggml to the bit: products and sums in float32 in its order, never fused.
 * Layouts and formulas: specs/models.md, "ggml types and blocks".
 */
#ifndef VN_LIBREF_BASE_QUANT_H
#define VN_LIBREF_BASE_QUANT_H

#include "libref/base/dtype.h"

/* dst (elements): the floats of whole blocks of one of the formats only weights
 * have. src need not be aligned. */
void vn_dequantise(float *dst, const void *src, vn_dtype from, size_t elements);

#endif
