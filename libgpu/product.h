/* product.h: computes x w^T + bias: selects the shader, and records it into the command buffer.
 * Inside libgpu only.
 *
 * The selection depends on the number of tokens of the whole call and the shape of the whole
 * weight, even if the product is split into several dispatches. So the split changes no bit.
 */
#pragma once

#include "libgpu/encode.h"

/* How a product is computed: by which shader, and split into how many parts. */
typedef struct vn_product_choice {
	vn_kernel kernel;
	/* VN_K_LINEAR_VEC: lanes per output; others: parts of the inputs, summed separately and then
	 * joined in order */
	int       shares;
} vn_product_choice;

/* Selects the shader for x (T,N), w (M,N), among those that the device has. */
vn_product_choice vn_product_choose(const vn_kernels *k, int64_t T, int64_t M, int64_t N);

/* The same of a product whose sums are joined, which can leave them in float32. */
vn_product_choice vn_product_choose_joined(const vn_kernels *k, int64_t T, int64_t M, int64_t N);

/* Selects the shader that computes two such products, gate and up, and their gated product in one
 * command. Returns false if there is none. The bits are those of separate commands. */
bool vn_product_choose_gated(const vn_kernels *k, int64_t T, int64_t M, int64_t N, vn_product_choice *choice);

/* Does this choice leave partial sums, which a second dispatch must join? */
bool         vn_product_is_joined(vn_product_choice choice);
/* Returns the bytes of those partial sums; 0: none. */
VkDeviceSize vn_product_sums(vn_product_choice choice, int64_t T, int64_t M);

typedef struct vn_product {
	vn_buffer     *x, *w, *b, *y; /* b: NULL for none */
	vn_buffer     *sums;          /* at least vn_product_sums bytes */
	size_t         element;       /* bytes per number */
	bool           wide;          /* y is in float32; the choice is joined */
	vn_push_linear at;            /* addresses, T, M, N, y_stride; the rest follows from them */
} vn_product;

/* Records one or two dispatches. x and w must start at a multiple of N
 * elements from an address aligned to 256. */
void vn_product_encode(vn_encoder *e, vn_product_choice choice, const vn_product *p);

/* Same, without the dispatch that joins the sums. */
void vn_product_encode_parts(vn_encoder *e, vn_product_choice choice, const vn_product *p);
/* Two products of one shape, by the choice of vn_product_choose_gated; y: the activated first times
 * the second. All three results are stored. */
void vn_product_encode_gated(vn_encoder *e, vn_product_choice choice, const vn_product *gate, const vn_product *up,
                             vn_act act, vn_buffer *y);

/* ---- experts: products with a matrix for each pair of a token and a slot ---------------- */

/* Selects the shader for the pairs of a call of so many tokens. at: M, N, E, k. gated: of two
 * products and their gated product. */
vn_product_choice vn_product_choose_experts(const vn_kernels *k, int64_t tokens, const vn_push_linear *at, bool gated);
/* Records one dispatch; its uses are declared already. Of p, at and element are read: the operands
 * of shaders/experts.glsl. limits: of gate and up, the limit and the shift (libref/plan/op.def). */
void              vn_product_encode_experts(vn_encoder *e, vn_product_choice choice, const vn_product *p, bool gated,
                                            const float limits[2]);
/* Does this choice need the pairs by expert (shaders/expert_rows.comp)? Else it takes the ids. */
bool              vn_product_is_sorted(vn_product_choice choice);
/* Does its gated product leave the two products, too? */
bool              vn_product_keeps_both(vn_product_choice choice);
