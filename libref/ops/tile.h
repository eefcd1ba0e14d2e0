/* tile.h: blocks of a product in float32, y = x w^T, from weights that are interleaved.
 *
 * STRIP rows of weights lie in a strip number by number, so that one vector holds the same input of
 * several rows. A strip of a few hundred inputs stays in the second cache while it meets all
 * tokens.
 *
 * Each element of y is a sum of chains, in their order: a chain adds the products of VN_TILE_CHAIN
 * inputs in their order, with fused multiply-adds. So bits depend neither on the sizes of a block
 * nor on the width of vectors (except on x86-64 without FMA, where products are rounded).
 */
#ifndef VN_LIBREF_OPS_TILE_H
#define VN_LIBREF_OPS_TILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct vn_tile_kernel {
	int strip; /* rows of weights in a strip: at most VN_MOST_STRIP */

	/* Interleaves n words of 4 bytes of `strip` rows, which are `apart` bytes apart: to (n,strip).
	 * pairs: a word is two bfloat16, to (2n,strip) in float32. */
	void (*interleave)(float *to, const void *rows, size_t apart, int64_t n, bool pairs);
	/* y[t,m] = sum_k x[t,k] w[m,k] for k < n, or += if add.   x (T,n) in rows of N   y (T,M'), M' = m,
	 * in rows of M   w: strips of (n,strip), one after the other, the last one whole */
	void (*multiply)(float *y, int64_t M, const float *x, int64_t N, const float *w, int64_t T, int64_t m, int64_t n,
	                 bool add);
} vn_tile_kernel;

enum {
	VN_MOST_STRIP = 32,
	VN_TILE_CHAIN = 256, /* inputs of a chain */
};

/* The best for this processor is 0; worse ones follow; NULL after the last. */
const vn_tile_kernel *vn_tile_kernel_get(int i);

extern const vn_tile_kernel vn_tile_avx512, vn_tile_avx2, vn_tile_plain;

#endif
