/* product.h: computes x w^T + bias: selects the shader, and records it into the command buffer.
 * Inside libgpu only.
 *
 * The selection depends on the number of tokens of the whole call and the shape of the whole
 * weight, even if the product is split. So its bits do not depend on how it was split.
 */
#ifndef VN_LIBGPU_PRODUCT_H
#define VN_LIBGPU_PRODUCT_H

#include "libgpu/encode.h"

typedef struct vn_way {
	vn_kernel kernel;
	/* VN_K_LINEAR_VEC: lanes per output; others: parts of the inputs, summed separately and then
	 * joined in order */
	int       shares;
} vn_way;

/* Selects the shader for x (T,N), w (M,N), among those that the device has. */
vn_way vn_product_way(const vn_kernels *k, int64_t T, int64_t M, int64_t N);

/* Sets *way to the one of two such products that are gated. Returns false if one command cannot
 * make them. Their bits are those of vn_product_way. */
bool vn_product_gated_way(const vn_kernels *k, int64_t T, int64_t M, int64_t N, vn_way *way);

/* Are there sums to be joined afterwards? */
bool         vn_product_is_joined(vn_way way);
/* Returns the bytes of the sums to be joined afterwards; 0: none. */
VkDeviceSize vn_product_sums(vn_way way, int64_t T, int64_t M);

typedef struct vn_product {
	vn_buffer     *x, *w, *b, *y; /* b: NULL for none */
	vn_buffer     *sums;          /* at least vn_product_sums bytes */
	vn_push_linear at;            /* addresses, T, M, N, y_stride; the rest follows from them */
} vn_product;

/* Records one or two dispatches. element: bytes per number. x and w must start at a multiple of N
 * elements from an address aligned to 256. */
void vn_product_encode(vn_encoder *e, vn_way way, const vn_product *p, size_t element);

/* The same without joining the sums. */
void vn_product_encode_parts(vn_encoder *e, vn_way way, const vn_product *p, size_t element);
/* Two products of one shape, by a way for two of them; y: the activated first times the second. All
 * three are stored. */
void vn_product_encode_gated(vn_encoder *e, vn_way way, const vn_product *gate, const vn_product *up, vn_act act,
                             vn_buffer *y, size_t element);

#endif
