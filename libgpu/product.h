/* product.h: x w^T + bias: which shader computes it, and into the command buffer with it.
 *
 * Inside libgpu only. The way is chosen from the tokens of the call and the shape of the weight, never from a part of either,
 * so that the bits of a product do not depend on how it was cut.
 */
#ifndef VN_LIBGPU_PRODUCT_H
#define VN_LIBGPU_PRODUCT_H

#include "libgpu/encode.h"

typedef struct vn_way {
	vn_kernel kernel;
	int       shares; /* VN_K_LINEAR_VEC: lanes to an output; of others: parts of the inputs, each summed by itself, then joined in order */
} vn_way;

/* x (T,N), w (M,N). Kernels that the device lacks are not chosen. */
vn_way vn_product_way(const vn_kernels *k, int64_t T, int64_t M, int64_t N);

/* Bytes of the sums that are joined behind it; 0: there is nothing to join. */
VkDeviceSize vn_product_sums(vn_way way, int64_t T, int64_t M);

typedef struct vn_product {
	vn_buffer     *x, *w, *b, *y; /* b: NULL for none */
	vn_buffer     *sums;          /* of vn_product_sums bytes at least */
	vn_push_linear at;            /* addresses, T, M, N, y_stride; the rest follows from them */
} vn_product;

/* One dispatch, or two. element: bytes of a number. The start of x and w: a multiple of N elements from an address that is
 * one of 256. */
void vn_product_encode(vn_encoder *e, vn_way way, const vn_product *p, size_t element);

#endif
