/* convert.h: converts tensors between formats, and rounds them, on several threads.
 *
 * The result does not depend on the number of threads. Small tensors are converted on the calling
 * thread.
 */
#pragma once

#include "libref/base/dtype.h"

/* Converts n numbers of `from` to `to`, rounded once. src may be unaligned, and does not overlap
 * dst. Blocks of quantised formats must be whole. */
void vn_convert(void *dst, vn_dtype to, const void *src, vn_dtype from, size_t n, int threads);
/* vn_round_f32, on several threads. */
void vn_round_shared(float *x, vn_dtype as, size_t n, int threads);

/* Copies by the same threads. threads: 0: one per processor. */
void vn_copy(void *dst, const void *src, size_t bytes, int threads);
