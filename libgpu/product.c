/* product.c: x w^T + bias: selects the shader, and records the commands. */
#include "libgpu/product.h"

#include <string.h>

enum { VEC_LANES = 128 }; /* linear_vec.comp */

/* Tiles: tokens by columns, of outputs or (coop) of cooperative matrices; gated: the shader that
 * computes two products and gates them (fuse.h). The two largest tiles of cooperative matrices have
 * none: in the largest, a processor has few workgroups, which wait for their activations, and a
 * pass takes longer (specs/performance.md). */
static const struct tile {
	int       tokens, columns;
	bool      coop;
	vn_kernel gated;
} tile[VN_N_KERNELS] = {
	[VN_K_LINEAR_VEC] = { .gated = VN_K_LINEAR_GATED },
	[VN_K_LINEAR_64X128] = { 64, 128, false, VN_K_LINEAR_64X128_GATED },
	[VN_K_LINEAR_64X64] = { 64, 64, false, VN_K_LINEAR_64X64_GATED },
	[VN_K_LINEAR_32X32] = { 32, 32, false, 0 },
	[VN_K_LINEAR_16X64] = { 16, 64, false, 0 },
	[VN_K_COOP_8X8] = { 8, 8, true, 0 },
	[VN_K_COOP_8X4] = { 8, 4, true, 0 },
	[VN_K_COOP_4X4] = { 4, 4, true, VN_K_COOP_4X4_GATED },
	[VN_K_COOP_2X4] = { 2, 4, true, VN_K_COOP_2X4_GATED },
	[VN_K_COOP_2X2] = { 2, 2, true, VN_K_COOP_2X2_GATED },
	[VN_K_COOP_1X2] = { 1, 2, true, 0 },
	[VN_K_EXPERTS_64X64] = { 64, 64, false, 0 },
	[VN_K_EXPERTS_64X64_GATED] = { 64, 64, false, 0 },
	[VN_K_EXPERTS_16X64] = { 16, 64, false, 0 },
	[VN_K_EXPERTS_16X128_GATED] = { 16, 128, false, 0 },
	[VN_K_EXPERTS_COOP_4X4] = { 4, 4, true, 0 },
	[VN_K_EXPERTS_COOP_4X4_GATED] = { 4, 4, true, 0 },
	[VN_K_EXPERTS_COOP_2X4] = { 2, 4, true, 0 },
	[VN_K_EXPERTS_COOP_2X4_GATED] = { 2, 4, true, 0 },
	[VN_K_EXPERTS_COOP_1X4] = { 1, 4, true, 0 },
	[VN_K_EXPERTS_COOP_1X4_GATED] = { 1, 4, true, 0 },
};

static int64_t count_tiles(const vn_kernels *k, vn_kernel kernel, int64_t T, int64_t M)
{
	const int side = tile[kernel].coop ? k->side : 1;

	return count_groups(T, tile[kernel].tokens * side) * count_groups(M, tile[kernel].columns * side);
}

/* Returns the number of shares into which the inputs of long rows are divided, for at most this
 * many workgroups. */
static int shares_of(int64_t n, int64_t workgroups)
{
	enum { MOST = 16 };
	int shares = 1;

	while (shares < MOST && n * shares * 2 <= workgroups)
		shares *= 2;
	return shares;
}

/* Large tiles read the least, and small ones fill the device. The numbers are those of an H200,
 * which has 132 processors: for each shape and number of tokens of tests/bench/bench_products.c the
 * one that took the least time, or nearly so. */
static vn_product_choice choose_coop(const vn_kernels *k, int64_t T, int64_t M, int64_t N)
{
	enum { LONG = 2048, VERY_LONG = 8192, ONE_EACH = 140, FOUR_EACH = 512 };
	const bool is_long = N >= LONG;
	vn_kernel  kernel = VN_K_COOP_2X2;

	if (T > 4 * k->side && count_tiles(k, VN_K_COOP_8X8, T, M) >= (is_long ? ONE_EACH / 20 : ONE_EACH))
		return (vn_product_choice) { VN_K_COOP_8X8, !is_long ? 1
			                                                 : shares_of(count_tiles(k, VN_K_COOP_8X8, T, M),
			                                                             N < VERY_LONG ? ONE_EACH : 2 * ONE_EACH) };
	if (T <= k->side)
		kernel = VN_K_COOP_1X2;
	else if (!is_long && T > 4 * k->side && count_tiles(k, VN_K_COOP_8X4, T, M) >= 200)
		kernel = VN_K_COOP_8X4;
	else if (T > 2 * k->side && (is_long || count_tiles(k, VN_K_COOP_4X4, T, M) >= 300))
		kernel = VN_K_COOP_4X4;
	else if (count_tiles(k, VN_K_COOP_2X4, T, M) >= 400)
		kernel = VN_K_COOP_2X4;
	return (vn_product_choice) { kernel, is_long ? shares_of(count_tiles(k, kernel, T, M), FOUR_EACH) : 1 };
}

/* Same for the kernels without cooperative matrices, on an H100. Inputs are not divided if sums are
 * in half: every addition rounds, so their order must stay. */
static vn_product_choice choose_plain(const vn_kernels *k, int64_t T, int64_t M, int64_t N)
{
	enum { LONG = 512, VERY_LONG = 2048 };
	const int64_t large = count_tiles(k, VN_K_LINEAR_64X128, T, M), middle = count_tiles(k, VN_K_LINEAR_64X64, T, M);
	const bool    is_long = k->float_sums && N >= VERY_LONG;
	vn_kernel     kernel = VN_K_LINEAR_32X32;
	int64_t       workgroups = is_long ? 1024 : 800; /* at most, in shares */

	if (T <= 16) {
		kernel = VN_K_LINEAR_16X64;
		workgroups = 512;
	} else if (is_long && T > 32 && (T > 128 || large >= 32)) {
		kernel = VN_K_LINEAR_64X128;
		workgroups = 512;
	} else if (large >= 240) {
		kernel = VN_K_LINEAR_64X128;
		workgroups = 0;
	} else if (T > 32 && (is_long || middle >= (k->float_sums ? 16 : 240))) {
		kernel = VN_K_LINEAR_64X64;
		workgroups = 640;
	}
	return (vn_product_choice) { kernel,
		                         k->float_sums && N >= LONG ? shares_of(count_tiles(k, kernel, T, M), workgroups) : 1 };
}

/* Uses as few lanes per output as keep the device busy: with too few, each reads a long chain of
 * loads; with too many, lanes wait for each other. */
static vn_product_choice choose_vector(int64_t M, int64_t N)
{
	const int64_t busy = N > 1024 ? 100000 : 65536;
	int           lanes = 8;

	while (lanes < VEC_LANES && M * lanes < busy && lanes * 16 <= N) /* each has 16 bytes to read */
		lanes *= 2;
	return (vn_product_choice) { VN_K_LINEAR_VEC, lanes };
}

vn_product_choice vn_product_choose(const vn_kernels *k, int64_t T, int64_t M, int64_t N)
{
	if (T == 1)
		return choose_vector(M, N);
	return k->side && N % 8 == 0 ? choose_coop(k, T, M, N) : choose_plain(k, T, M, N);
}

/* Numbers of float32 as sums in half make do without: their parts are joined in float32, in another
 * order than choose_plain's. */
vn_product_choice vn_product_choose_joined(const vn_kernels *k, int64_t T, int64_t M, int64_t N)
{
	vn_product_choice c = T > 1 ? vn_product_choose(k, T, M, N) : choose_plain(k, T, M, N);

	c.shares = c.shares > 1 ? c.shares : 2;
	return c;
}

bool vn_product_choose_gated(const vn_kernels *k, int64_t T, int64_t M, int64_t N, vn_product_choice *choice)
{
	*choice = vn_product_choose(k, T, M, N);
	return !vn_product_is_joined(*choice) && tile[choice->kernel].gated != 0;
}

bool vn_product_is_joined(vn_product_choice choice)
{
	return tile[choice.kernel].tokens && choice.shares > 1;
}

VkDeviceSize vn_product_sums(vn_product_choice choice, int64_t T, int64_t M)
{
	return vn_product_is_joined(choice) ? (VkDeviceSize)(choice.shares * T * count_groups(M, 8) * 8) * sizeof(float)
	                                    : 0;
}

static void encode_uses(vn_encoder *e, const vn_product *p, vn_buffer *in, vn_buffer *out)
{
	vn_encode_reads(e, in);
	if (in == p->x)
		vn_encode_reads(e, p->w);
	if (p->b)
		vn_encode_reads(e, p->b);
	vn_encode_writes(e, out);
}

static vn_push_linear push_of(vn_product_choice choice, const vn_product *p)
{
	vn_push_linear push = p->at;

	push.has_bias = p->b != NULL;
	push.width = push.N % 8 == 0 ? 8 : push.N % 4 == 0 ? 4 : 1;
	push.sums = vn_product_is_joined(choice) ? p->sums->address : 0;
	push.shares = (uint32_t)choice.shares;
	push.y_wide = push.y % 16 == 0 && push.y_stride * p->element % 16 == 0;
	return push;
}

/* M: of all products that the kernel computes. */
static void dispatch_tiles(vn_encoder *e, vn_kernel kernel, vn_product_choice choice, const vn_push_linear *push,
                           int64_t M)
{
	const struct tile *t = &tile[choice.kernel];

	if (choice.kernel == VN_K_LINEAR_VEC)
		vn_encode_dispatch(e, kernel, push, count_groups(push->M, VEC_LANES / choice.shares), 1);
	else if (t->coop)
		vn_encode_dispatch(e, kernel, push, count_tiles(e->k, choice.kernel, push->T, M) * choice.shares, 1);
	else
		vn_encode_dispatch(e, kernel, push, count_groups(push->T, t->tokens) * choice.shares,
		                   count_groups(M, t->columns));
}

void vn_product_encode_parts(vn_encoder *e, vn_product_choice choice, const vn_product *p)
{
	const vn_push_linear push = push_of(choice, p);
	const bool           kept = choice.kernel == VN_K_LINEAR_VEC && p->y->of;

	encode_uses(e, p, p->x, vn_product_is_joined(choice) ? p->sums : p->y);
	dispatch_tiles(e, kept ? VN_K_LINEAR_VEC_KEPT : choice.kernel, choice, &push, push.M);
}

void vn_product_encode(vn_encoder *e, vn_product_choice choice, const vn_product *p)
{
	const vn_push_linear push = push_of(choice, p);

	vn_product_encode_parts(e, choice, p);
	if (!vn_product_is_joined(choice))
		return;
	const bool omit = e->omit;
	e->omit = false; /* an experiment leaves out what stands before the product, not what stands inside */
	encode_uses(e, p, p->sums, p->y);
	vn_encode_dispatch(e, p->wide ? VN_K_LINEAR_JOIN_WIDE : VN_K_LINEAR_JOIN, &push,
	                   count_groups((int64_t)push.T * count_groups(push.M, 8) * 8, 128), 1);
	e->omit = omit;
}

void vn_product_encode_gated(vn_encoder *e, vn_product_choice choice, const vn_product *gate, const vn_product *up,
                             vn_act act, vn_buffer *y)
{
	vn_push_linear push = push_of(choice, gate);

	push.w_up = up->at.w;
	push.b_up = up->at.b;
	push.up = up->at.y;
	push.gated = y->address;
	push.up_has_bias = up->b != NULL;
	push.act = act;
	push.y_wide &= (push.up | push.gated) % 16 == 0;
	vn_encode_reads(e, up->w);
	if (up->b)
		vn_encode_reads(e, up->b);
	vn_encode_writes(e, up->y);
	vn_encode_writes(e, y);
	encode_uses(e, gate, gate->x, gate->y);
	dispatch_tiles(e, tile[choice.kernel].gated, choice, &push, 2 * (int64_t)push.M);
}

/* ---- experts ------------------------------------------------------------------------ */

/* The lowest tile that takes the rows that an expert has on average: a higher one multiplies rows
 * that are not there, a lower one reads each matrix more often. */
vn_product_choice vn_product_choose_experts(const vn_kernels *k, int64_t tokens, const vn_push_linear *at, bool gated)
{
	const int64_t pairs = tokens * at->k, rows = count_groups(pairs, pairs < at->E ? pairs : at->E);
	vn_kernel     kernel = gated ? VN_K_EXPERTS_64X64_GATED : VN_K_EXPERTS_64X64;

	if (tokens == 1)
		return (vn_product_choice) { gated ? VN_K_EXPERTS_VEC_GATED : VN_K_EXPERTS_VEC,
			                         choose_vector(pairs * at->M, at->N).shares };
	if (k->side && at->N % 8 == 0 && rows <= k->side)
		kernel = gated ? VN_K_EXPERTS_COOP_1X4_GATED : VN_K_EXPERTS_COOP_1X4;
	else if (k->side && at->N % 8 == 0 && rows <= 2 * k->side)
		kernel = gated ? VN_K_EXPERTS_COOP_2X4_GATED : VN_K_EXPERTS_COOP_2X4;
	else if (k->side && at->N % 8 == 0)
		kernel = gated ? VN_K_EXPERTS_COOP_4X4_GATED : VN_K_EXPERTS_COOP_4X4;
	else if (rows <= 16)
		kernel = gated ? VN_K_EXPERTS_16X128_GATED : VN_K_EXPERTS_16X64;
	return (vn_product_choice) { kernel, 1 };
}

bool vn_product_is_sorted(vn_product_choice choice)
{
	return tile[choice.kernel].tokens > 0;
}

bool vn_product_keeps_both(vn_product_choice choice)
{
	return !tile[choice.kernel].coop;
}

void vn_product_encode_experts(vn_encoder *e, vn_product_choice choice, const vn_product *p, bool gated,
                               const float limits[2])
{
	const struct tile *t = &tile[choice.kernel];
	const int          side = t->coop ? e->k->side : 1;
	vn_push_linear     push = push_of(choice, p);

	push.has_bias = push.b != 0;
	push.up_has_bias = push.b_up != 0;
	memcpy(&push.sums, limits, sizeof push.sums);       /* a choice of experts has no shares */
	push.y_wide = push.y_stride * p->element % 16 == 0; /* results begin at rows of buffers */
	if (!t->tokens) {
		vn_encode_dispatch(e, choice.kernel, &push, count_groups(push.M, VEC_LANES / choice.shares), push.T);
		return;
	}
	const int64_t tiles = (int64_t)push.T / (t->tokens * side) + push.E; /* experts.glsl */
	const int64_t across = count_groups((gated ? 2 : 1) * (int64_t)push.M, t->columns * side);
	vn_encode_dispatch(e, choice.kernel, &push, t->coop ? tiles * across : tiles, t->coop ? 1 : across);
}
