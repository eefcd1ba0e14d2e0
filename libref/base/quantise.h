/* quantise.h: floats into the blocks of weights that have one right answer.
 *
 * Q8_0, Q4_0, Q4_1, Q5_0 and Q5_1 as ggml's plain quantisers make them, to the bit: what
 * a converter writes without an importance matrix. Of the blocks of 256 the scales are
 * searched for, and two programs find different ones: those are refused.
 * Formulas: specs/models.md, "ggml types and blocks".
 */
#ifndef VN_LIBREF_BASE_QUANTISE_H
#define VN_LIBREF_BASE_QUANTISE_H

#include "libref/base/dtype.h"

#include <stdbool.h>

/* Is there a plain quantiser for this format? */
bool vn_quantises(vn_dtype to);
/* dst: vn_dtype_bytes(to, elements) bytes. Whole blocks, of a format that has a quantiser. */
void vn_quantise(void *dst, vn_dtype to, const float *src, size_t elements);

#endif
