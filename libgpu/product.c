/* product.c: x w^T + bias: selects the shader, and records the commands. */
#include "libgpu/product.h"

enum { VEC_LANES = 128 }; /* linear_vec.comp */

/* Sizes of tiles: tokens by columns; with cooperative matrices, matrices by matrices. */
static const struct tile {
	int tokens, columns;
} plain[VN_N_KERNELS] = {
	[VN_K_LINEAR_64X128] = { 64, 128 },
	[VN_K_LINEAR_64X64]  = { 64, 64 },
	[VN_K_LINEAR_32X32]  = { 32, 32 },
	[VN_K_LINEAR_16X64]  = { 16, 64 },
}, coop[VN_N_KERNELS] = {
	[VN_K_COOP_8X8] = { 8, 8 },
	[VN_K_COOP_8X4] = { 8, 4 },
	[VN_K_COOP_4X4] = { 4, 4 },
	[VN_K_COOP_2X4] = { 2, 4 },
	[VN_K_COOP_2X2] = { 2, 2 },
	[VN_K_COOP_1X2] = { 1, 2 },
};

/* For each tile, the shader that computes two products and gates them (fuse.h). The two largest
 * tiles of cooperative matrices have none: in the largest, a processor has few workgroups, which
 * wait for their activations, and a pass takes longer (specs/performance.md). */
static const vn_kernel gated[VN_N_KERNELS] = {
	[VN_K_LINEAR_64X128] = VN_K_LINEAR_64X128_GATED, [VN_K_LINEAR_64X64] = VN_K_LINEAR_64X64_GATED,
	[VN_K_COOP_4X4] = VN_K_COOP_4X4_GATED,           [VN_K_COOP_2X4] = VN_K_COOP_2X4_GATED,
	[VN_K_COOP_2X2] = VN_K_COOP_2X2_GATED,
};

static int64_t cut(int64_t n, int64_t each)
{
	return (n + each - 1) / each;
}

static int64_t tiles(const vn_kernels *k, vn_kernel kernel, int64_t T, int64_t M)
{
	if (coop[kernel].tokens)
		return cut(T, coop[kernel].tokens * k->side) * cut(M, coop[kernel].columns * k->side);
	return cut(T, plain[kernel].tokens) * cut(M, plain[kernel].columns);
}

/* Returns the number of shares into which the inputs of long rows are divided, for at most this many workgroups. */
static int shares_of(int64_t n, int64_t workgroups)
{
	enum { MOST = 16 };
	int shares = 1;

	while (shares < MOST && n * shares * 2 <= workgroups)
		shares *= 2;
	return shares;
}

/* Large tiles read the least, and small ones fill the device. The numbers are those of an H200,
 * which has 132 processors: for each shape and number of tokens of tests/bench_products.c the way
 * that took the least time, or nearly so. */
static vn_way coop_way(const vn_kernels *k, int64_t T, int64_t M, int64_t N)
{
	enum { LONG = 2048, VERY_LONG = 8192, ONE_EACH = 140, FOUR_EACH = 512 };
	const bool is_long = N >= LONG;
	vn_kernel  kernel = VN_K_COOP_2X2;

	if (T > 4 * k->side && tiles(k, VN_K_COOP_8X8, T, M) >= (is_long ? ONE_EACH / 20 : ONE_EACH))
		return (vn_way) { VN_K_COOP_8X8, !is_long ? 1
			                                      : shares_of(tiles(k, VN_K_COOP_8X8, T, M),
			                                                  N < VERY_LONG ? ONE_EACH : 2 * ONE_EACH) };
	if (T <= k->side)
		kernel = VN_K_COOP_1X2;
	else if (!is_long && T > 4 * k->side && tiles(k, VN_K_COOP_8X4, T, M) >= 200)
		kernel = VN_K_COOP_8X4;
	else if (T > 2 * k->side && (is_long || tiles(k, VN_K_COOP_4X4, T, M) >= 300))
		kernel = VN_K_COOP_4X4;
	else if (tiles(k, VN_K_COOP_2X4, T, M) >= 400)
		kernel = VN_K_COOP_2X4;
	return (vn_way) { kernel, is_long ? shares_of(tiles(k, kernel, T, M), FOUR_EACH) : 1 };
}

/* Same for the kernels without cooperative matrices, on an H100. Inputs are not divided if sums are
 * in half: every addition rounds, so their order must stay. */
static vn_way plain_way(const vn_kernels *k, int64_t T, int64_t M, int64_t N)
{
	enum { LONG = 512, VERY_LONG = 2048 };
	const int64_t large = tiles(k, VN_K_LINEAR_64X128, T, M), middle = tiles(k, VN_K_LINEAR_64X64, T, M);
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
	return (vn_way) { kernel, k->float_sums && N >= LONG ? shares_of(tiles(k, kernel, T, M), workgroups) : 1 };
}

/* Uses as few lanes per output as keep the device busy: with too few, each reads a long chain of
 * loads; with too many, lanes wait for each other. */
static vn_way vector_way(int64_t M, int64_t N)
{
	const int64_t busy = N > 1024 ? 100000 : 65536;
	int           lanes = 8;

	while (lanes < VEC_LANES && M * lanes < busy && lanes * 16 <= N) /* each has 16 bytes to read */
		lanes *= 2;
	return (vn_way) { VN_K_LINEAR_VEC, lanes };
}

vn_way vn_product_way(const vn_kernels *k, int64_t T, int64_t M, int64_t N)
{
	if (T == 1)
		return vector_way(M, N);
	return k->side && N % 8 == 0 ? coop_way(k, T, M, N) : plain_way(k, T, M, N);
}

bool vn_product_gated_way(const vn_kernels *k, int64_t T, int64_t M, int64_t N, vn_way *way)
{
	*way = vn_product_way(k, T, M, N);
	return !vn_product_is_joined(*way) && (way->kernel == VN_K_LINEAR_VEC || gated[way->kernel] != 0);
}

bool vn_product_is_joined(vn_way way)
{
	return way.kernel != VN_K_LINEAR_VEC && way.shares > 1;
}

VkDeviceSize vn_product_sums(vn_way way, int64_t T, int64_t M)
{
	return vn_product_is_joined(way) ? (VkDeviceSize)(way.shares * T * cut(M, 8) * 8) * sizeof(float) : 0;
}

static void uses(vn_encoder *e, const vn_product *p, vn_buffer *in, vn_buffer *out)
{
	vn_encode_reads(e, in);
	if (in == p->x)
		vn_encode_reads(e, p->w);
	if (p->b)
		vn_encode_reads(e, p->b);
	vn_encode_writes(e, out);
}

static vn_push_linear push_of(vn_way way, const vn_product *p, size_t element)
{
	vn_push_linear push = p->at;

	push.has_bias = p->b != NULL;
	push.width = push.N % 8 == 0 ? 8 : push.N % 4 == 0 ? 4 : 1;
	push.sums = vn_product_is_joined(way) ? p->sums->address : 0;
	push.shares = (uint32_t)way.shares;
	push.y_wide = push.y % 16 == 0 && push.y_stride * element % 16 == 0;
	return push;
}

void vn_product_encode_parts(vn_encoder *e, vn_way way, const vn_product *p, size_t element)
{
	const vn_push_linear push = push_of(way, p, element);

	uses(e, p, p->x, vn_product_is_joined(way) ? p->sums : p->y);
	if (way.kernel == VN_K_LINEAR_VEC)
		vn_encode_dispatch(e, p->y->of ? VN_K_LINEAR_VEC_KEPT : VN_K_LINEAR_VEC, &push,
		                   cut(push.M, VEC_LANES / way.shares), 1);
	else if (coop[way.kernel].tokens)
		vn_encode_dispatch(e, way.kernel, &push, tiles(e->k, way.kernel, push.T, push.M) * way.shares, 1);
	else
		vn_encode_dispatch(e, way.kernel, &push, cut(push.T, plain[way.kernel].tokens) * way.shares,
		                   cut(push.M, plain[way.kernel].columns));
}

void vn_product_encode(vn_encoder *e, vn_way way, const vn_product *p, size_t element)
{
	const vn_push_linear push = push_of(way, p, element);

	vn_product_encode_parts(e, way, p, element);
	if (!vn_product_is_joined(way))
		return;
	const bool omit = e->omit;
	e->omit = false; /* an experiment leaves out what stands before the product, not what stands inside */
	uses(e, p, p->sums, p->y);
	vn_encode_dispatch(e, VN_K_LINEAR_JOIN, &push, cut((int64_t)push.T * cut(push.M, 8) * 8, 128), 1);
	e->omit = omit;
}

void vn_product_encode_gated(vn_encoder *e, vn_way way, const vn_product *gate, const vn_product *up, vn_act act,
                             vn_buffer *y, size_t element)
{
	vn_push_linear_gated push = {
		.gate = push_of(way, gate, element),
		.w = up->at.w,
		.b = up->at.b,
		.up = up->at.y,
		.y = y->address,
		.up_has_bias = up->b != NULL,
		.act = act,
	};
	const int64_t T = push.gate.T, M = push.gate.M;

	push.gate.y_wide &= (push.up | push.y) % 16 == 0;
	vn_encode_reads(e, up->w);
	if (up->b)
		vn_encode_reads(e, up->b);
	vn_encode_writes(e, up->y);
	vn_encode_writes(e, y);
	uses(e, gate, gate->x, gate->y);
	if (way.kernel == VN_K_LINEAR_VEC)
		vn_encode_dispatch(e, VN_K_LINEAR_GATED, &push, cut(M, VEC_LANES / way.shares), 1);
	else if (coop[way.kernel].tokens)
		vn_encode_dispatch(e, gated[way.kernel], &push, tiles(e->k, way.kernel, T, 2 * M), 1);
	else
		vn_encode_dispatch(e, gated[way.kernel], &push, cut(T, plain[way.kernel].tokens),
		                   cut(M, plain[way.kernel].columns / 2));
}
