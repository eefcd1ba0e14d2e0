/* tile.h: the inner loops of the matrix product y = x w^T in float32: x (tokens, inputs), w
 * (outputs, inputs).
 *
 * Before it is multiplied, w is copied into strips. A strip holds `strip` rows of w, interleaved:
 * first input 0 of each row, then input 1 of each row, and so on. One vector load then reads the
 * same input of several rows. The caller passes a few hundred inputs at a time, so that a strip
 * stays in the second-level cache while it is multiplied with all tokens.
 *
 * The order of additions is fixed: each VN_TILE_CHAIN consecutive inputs are summed with fused
 * multiply-adds (a chain), and the chains are added in order. So the bits of y depend neither on
 * block sizes nor on the width of vectors (except on x86-64 without FMA, where each product is
 * rounded).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct vn_tile_product {
	const float *x;
	int64_t      N; /* rows of x are so many numbers apart */
	const float *w; /* strips (n,strip), one after the other; the last one is whole */
	int64_t      T, m, n;
	bool         add;
} vn_tile_product;

typedef struct vn_tile_kernel {
	int strip; /* rows of weights in a strip: at most VN_MOST_STRIP */

	/* Makes a strip. rows: `strip` rows of n words of 4 bytes, which begin `apart` bytes apart.
	 * to: (n,strip). pairs: each word holds two bfloat16, and to is (2n,strip) in float32. */
	void (*interleave)(float *to, const void *rows, size_t apart, int64_t n, bool pairs);
	/* Computes y[t,i] = sum_k x[t,k] w[i,k] for t < T, i < m, k < n; with add, += instead of =.
	 * Rows of y are M numbers apart. */
	void (*multiply)(float *y, int64_t M, const vn_tile_product *p);
} vn_tile_kernel;

enum {
	VN_MOST_STRIP = 32,
	VN_TILE_CHAIN = 256, /* inputs per chain */
};

/* Returns the i-th best kernel for this processor, from 0; NULL after the last. */
const vn_tile_kernel *vn_tile_kernel_get(int i);

extern const vn_tile_kernel vn_tile_avx512, vn_tile_avx2, vn_tile_plain;
