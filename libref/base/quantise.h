/* quantise.h: quantises floats to the block formats that have one right answer.
 *
 * Q8_0, Q4_0, Q4_1, Q5_0 and Q5_1 as ggml's plain quantisers make them, to the bit: what a
 * converter writes without an importance matrix. Scales of the 256-weight blocks are found by
 * search, and programs differ, so these are not supported. The formats: quant.c.
 */
#pragma once

#include "libref/base/dtype.h"

#include <stdbool.h>

/* Is there a plain quantiser for this format? */
bool vn_quantises(vn_dtype to);
/* Quantises whole blocks, to a format that has a quantiser. dst: vn_dtype_bytes(to, elements)
 * bytes. */
void vn_quantise(void *dst, vn_dtype to, const float *src, size_t elements);
