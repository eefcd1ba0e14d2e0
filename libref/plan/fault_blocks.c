/* fault_blocks.c: faults of weights in blocks of a few bits (specs/faults.md, chapter W). */
#include "libref/plan/fault_internal.h"

#include "libref/base/dtype.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GGML_BLOCK = 32 };

/* ---- unquantised weights, rounded as blocks would -------------------------------------------- */

static double as_half(double x)
{
	return (double)vn_f16_to_f32(vn_f32_to_f16((float)x));
}

/* Quantises x (n <= 32) to Q8_0 (bits 8) or Q4_0 (4) and back. */
static void quantise_block(double *y, const double *x, int64_t n, int bits)
{
	double most = 0.0;

	for (int64_t i = 0; i < n; i++)
		most = fabs(x[i]) > fabs(most) ? x[i] : most;
	const float d = (float)(bits == 8 ? fabs(most) / 127.0 : most / -8.0);
	for (int64_t i = 0; i < n; i++) {
		const double r = d != 0.0f ? x[i] / (double)d : 0.0;
		const double q = bits == 8 ? round(r) : fmin(15.0, floor(r + 8.5)) - 8.0;
		y[i] = q * as_half((double)d);
	}
}

static void quantise_row(const vn_fault_run *run, double bits)
{
	for (int64_t i = 0; i < run->n; i += GGML_BLOCK)
		quantise_block(run->y + i, run->x + i, run->n - i < GGML_BLOCK ? run->n - i : GGML_BLOCK, (int)bits);
}

vn_status vn_make_quantise(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change(f, node, 0, quantise_row, r->x, err);
}

/* ---- blocks read otherwise ------------------------------------------------------------------- */

static vn_status other_format(const vn_faulty *f, int w, vn_error *err)
{
	return vn_fail(err, VN_ERR_USAGE, "weight %s is %s; this fault is for other block formats", f->plan->weight[w].name,
	               vn_dtype_name(f->weight[w].dtype));
}

/* Byte i of a block holds elements i and i + 16; this puts them at 2i and 2i + 1. */
vn_status vn_make_nibbles_in_turn(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_arrange in_turn = { VN_ARRANGE_TRANSPOSED, .a = 2, .b = GGML_BLOCK / 2, .period = GGML_BLOCK };
	const int        w = f->plan->node[node].w[0];

	(void)r;
	return f->weight[w].dtype == VN_Q4_0 || f->weight[w].dtype == VN_Q4_1
	           ? vn_fault_arrange(f, node, 0, -1, &in_turn, err)
	           : other_format(f, w, err);
}

/* Layout of a format's block: its bytes, the offset of its nibbles, and their bytes; 0: none. */
typedef struct block_layout {
	size_t bytes, nibbles, n;
} block_layout;

static block_layout layout_of(vn_dtype d)
{
	return d == VN_Q4_0   ? (block_layout) { 18, 2, 16 }
	       : d == VN_Q4_1 ? (block_layout) { 20, 4, 16 }
	       : d == VN_Q4_K ? (block_layout) { 144, 16, 128 }
	                      : (block_layout) { 0, 0, 0 };
}

/* The bytes of a block whose scales are packed in 6 bits; 0: of another format. */
static size_t k_block_bytes(vn_dtype d)
{
	if (d == VN_Q4_K)
		return 144;
	return d == VN_Q5_K ? 176 : 0;
}

/* The bytes of a block that begins with its scale in float16, and with a minimum after it (min);
 * 0: of another format. */
static size_t block_bytes(vn_dtype d, bool min)
{
	if (min)
		return d == VN_Q4_1 ? 20 : k_block_bytes(d);
	return d == VN_Q4_0 ? 18 : d == VN_Q5_0 ? 22 : d == VN_Q8_0 ? 34 : 0;
}

/* x: rows of a tile in which scales are stored column by column; below 0: read so; 0: of the next
 * block. */
vn_status vn_make_scales_moved(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const int       w = f->plan->node[node].w[0];
	const vn_tensor is = f->weight[w];
	const size_t    each = block_bytes(is.dtype, false);

	if (!each)
		return other_format(f, w, err);
	const int64_t all = (int64_t)(vn_dtype_bytes(is.dtype, (size_t)vn_shape_count(&is.shape)) / each),
				  M = is.shape.dim[0], G = all / M, tile = (int64_t)fabs(r->x), rows = tile < M ? tile : M;
	const vn_arrange by = r->x == 0  ? (vn_arrange) { VN_ARRANGE_ROUND, .a = 1 }
	                      : r->x > 0 ? (vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = rows, .b = G, .period = rows * G }
	                                 : (vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = G, .b = rows, .period = rows * G };
	unsigned char   *b = malloc((size_t)all * each);
	for (int64_t i = 0; b && i < all; i++) {
		const unsigned char *from = is.data;
		memcpy(b + (size_t)i * each, from + (size_t)i * each, each);
		memcpy(b + (size_t)i * each, from + (size_t)vn_arranged(&by, i, all) * each, 2);
	}
	return vn_fault_replace(f, node, 0, (vn_tensor) { is.dtype, is.shape, b }, err);
}

/* x: the change to the bytes of every block. */
vn_status vn_make_change_blocks(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const int          w = f->plan->node[node].w[0];
	const vn_dtype     d = f->weight[w].dtype;
	const block_layout l = layout_of(d);
	const bool         packed = r->x > BLOCK_SWAPPED && r->x <= BLOCK_NO_SUBSCALES;
	const size_t       scaled = r->x == BLOCK_NO_SCALE ? block_bytes(d, false) : 0;
	const size_t       each = r->x == BLOCK_SWAPPED ? l.bytes : scaled ? scaled : block_bytes(d, true);

	if (!each || (packed && !k_block_bytes(d)))
		return other_format(f, w, err);
	const size_t   all = vn_dtype_bytes(d, (size_t)vn_shape_count(&f->weight[w].shape));
	unsigned char *b = malloc(all);
	if (b)
		memcpy(b, f->weight[w].data, all);
	for (size_t at = 0; b && at < all; at += each)
		if (r->x == BLOCK_SWAPPED)
			for (size_t i = 0; i < l.n; i++)
				b[at + l.nibbles + i] = (unsigned char)(b[at + l.nibbles + i] << 4 | b[at + l.nibbles + i] >> 4);
		else if (r->x == BLOCK_LOW_SCALES) /* their upper bits are stored above those of the first four */
			for (size_t i = 0; i < 8; i++)
				b[at + 4 + i] &= 63;
		else if (r->x == BLOCK_NO_SUBSCALES)
			for (size_t i = 0; i < 4; i++) {
				b[at + 4 + i] = 1;
				b[at + 12 + i] = (unsigned char)((b[at + 12 + i] & 0xf0) | 1);
			}
		else if (r->x == BLOCK_NO_SCALE) { /* 1 in float16 */
			b[at] = 0;
			b[at + 1] = 0x3c;
		} else if (r->x == BLOCK_NO_MIN)
			b[at + 2] = b[at + 3] = 0;
		else
			b[at + 3] ^= 0x80; /* the sign of dmin */
	return vn_fault_replace(f, node, 0, (vn_tensor) { d, f->weight[w].shape, b }, err);
}
