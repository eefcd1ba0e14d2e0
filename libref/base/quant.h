/* quant.h: converts the quantised blocks in which GGUF stores weights to floats.
 *
 * A block holds 32 or 256 weights with one or more scales. Results equal ggml's to the bit:
 * products and sums are in float32 in its order, never fused. Layouts: quant.c.
 */
#pragma once

#include "libref/base/dtype.h"

/* Writes the floats of whole blocks to dst (elements). src may be unaligned. */
void vn_dequantise(float *dst, const void *src, vn_dtype from, size_t elements);
