/* test_gpu_products.c: x w^T + bias by every kernel, each asked for by name,
 * against sums in double.
 *
 * Inputs are halves of 12 bits at most, of one scale: every product and every sum of them fits a
 * float exactly, in any order. So a result is right to the bit, whatever the tile and the shares,
 * or it is wrong. */
#include "tests/support/test_gpu_help.h"

#include "libgpu/product.h"

static const shape_of tiny = { .layers = 1, .D = 8, .H = 1, .G = 1, .K = 8, .F = 8, .V = 8, .context = 8 };

static const vn_kernel coops[] = { VN_K_COOP_8X8, VN_K_COOP_8X4, VN_K_COOP_4X4,
	                               VN_K_COOP_2X4, VN_K_COOP_2X2, VN_K_COOP_1X2 };

typedef struct bench_ {
	vn_plan   *plan;
	vn_device  d;
	vn_kernels k;
	vn_encoder e;
	size_t     element;
	vn_dtype   dtype;
	bool       good;
} bench;

static void bench_start(bench *b, int device, vn_policy policy)
{
	vn_error err = { "" };

	*b = (bench) { .plan = block_plan(tiny), .element = vn_dtype_size(policy.storage), .dtype = policy.storage };
	b->good = vn_device_open(&b->d, devices_[device].index, policy.sums == VN_F16, true, &err) == VN_OK &&
	          vn_kernels_create(&b->d, &b->k, b->plan, policy, false, &err) == VN_OK &&
	          vn_encoder_create(&b->d, &b->k, 1, &b->e, &err) == VN_OK;
	if (!b->good)
		printf("\n  %s\n", err.text);
}

static void bench_stop(bench *b)
{
	vn_error err = { "" };

	CU_ASSERT_EQUAL(vn_device_complaint(&b->d, &err), VN_OK);
	if (err.text[0])
		printf("\n  %s\n", err.text);
	vn_encoder_destroy(&b->e);
	if (b->d.device)
		vn_kernels_destroy(&b->k);
	vn_device_close(&b->d);
	vn_plan_destroy(b->plan);
}

/* ---- one product ----------------------------------------------------------------------------- */

typedef struct product {
	int64_t T, M, N, stride; /* of y */
	bool    bias;
	float  *x, *w, *b; /* what the device gets, and what it should give: */
	double *y;
} product;

/* Numbers of 5 bits times 2^scale: a product has 10, and 8192 of them need 23. */
static float few_bits(int scale)
{
	return (float)ldexp((double)((int)floor(16.0 * uniform())), scale);
}

static product make_product(int64_t T, int64_t M, int64_t N, int64_t stride, bool bias, int scale)
{
	product p = { .T = T, .M = M, .N = N, .stride = stride, .bias = bias };

	p.x = malloc((size_t)(T * N) * sizeof *p.x);
	p.w = malloc((size_t)(M * N) * sizeof *p.w);
	p.b = malloc((size_t)M * sizeof *p.b);
	p.y = malloc((size_t)(T * M) * sizeof *p.y);
	for (int64_t i = 0; i < T * N; i++)
		p.x[i] = few_bits(scale);
	for (int64_t i = 0; i < M * N; i++)
		p.w[i] = few_bits(-2);
	for (int64_t m = 0; m < M; m++)
		p.b[m] = few_bits(scale);
	for (int64_t t = 0; t < T; t++)
		for (int64_t m = 0; m < M; m++) {
			double sum = bias ? (double)p.b[m] : 0.0;
			for (int64_t n = 0; n < N; n++)
				sum += (double)p.x[t * N + n] * (double)p.w[m * N + n];
			p.y[t * M + m] = sum;
		}
	return p;
}

static void drop(product *p)
{
	free(p->x);
	free(p->w);
	free(p->b);
	free(p->y);
}

static void fill(bench *b, vn_buffer *to, const float *x, int64_t n)
{
	vn_from_f32(to->map, b->dtype, x, (size_t)n);
}

/* Counts numbers that are not the exact sum rounded once, and numbers between the rows of y that
 * were written. -1: the product did not run. */
static int64_t wrong_of(bench *b, vn_product_choice choice, const product *p)
{
	enum { X, W, B, Y, SUMS, N_BUFFERS };
	static const char *const name[] = { "x", "w", "b", "y", "sums" };
	const int64_t            size[] = { p->T * p->N, p->M * p->N, p->M, p->T * p->stride };
	vn_buffer                buf[N_BUFFERS] = { 0 };
	vn_error                 err = { "" };
	vn_status                st = VN_OK;
	int64_t                  bad = -1;

	for (int i = 0; i < N_BUFFERS && !st; i++)
		st = vn_buffer_create(
			&b->d, &buf[i],
			&(vn_buffer_need) { i == SUMS ? VN_ON_DEVICE
		                        : i == Y  ? VN_FOR_READBACK
		                                  : VN_FOR_UPLOAD,
		                        i == SUMS ? vn_product_sums(choice, p->T, p->M) : (VkDeviceSize)size[i] * b->element,
		                        i != SUMS, name[i] },
			&err);
	if (!st) {
		for (int i = X; i <= Y; i++)
			memset((char *)buf[i].map - VN_ZONE, 0xFF, buf[i].total);
		fill(b, &buf[X], p->x, size[X]);
		fill(b, &buf[W], p->w, size[W]);
		fill(b, &buf[B], p->b, size[B]);
		vn_encode_begin(&b->e);
	}
	if (!st) {
		const int i = b->e.cur;
		vn_product_encode(&b->e, choice,
		                  &(vn_product) { .x = &buf[X],
		                                  .w = &buf[W],
		                                  .b = p->bias ? &buf[B] : NULL,
		                                  .y = &buf[Y],
		                                  .sums = &buf[SUMS],
		                                  .element = b->element,
		                                  .at = { .x = buf[X].address,
		                                          .w = buf[W].address,
		                                          .b = p->bias ? buf[B].address : 0,
		                                          .y = buf[Y].address,
		                                          .T = (uint32_t)p->T,
		                                          .M = (uint32_t)p->M,
		                                          .N = (uint32_t)p->N,
		                                          .y_stride = (uint32_t)p->stride } });
		if (!(st = vn_encode_submit(&b->e, &err)))
			st = vn_encode_wait(&b->e, i, &err);
	}
	if (!st) {
		float *got = malloc((size_t)(size[Y] + 2 * VN_ZONE) * sizeof *got), *want = malloc((size_t)p->M * sizeof *want);
		bad = 0;
		vn_to_f32(got, buf[Y].map, b->dtype, (size_t)size[Y]);
		for (int64_t t = 0; t < p->T; t++) {
			vn_from_f64((char *)want, b->dtype, &p->y[t * p->M], (size_t)p->M);
			bad += memcmp((char *)buf[Y].map + (size_t)(t * p->stride) * b->element, want, (size_t)p->M * b->element) !=
			       0;
			for (int64_t m = p->M; m < p->stride; m++)
				bad += !isnan(got[t * p->stride + m]); /* the poison */
		}
		for (const unsigned char *z = (unsigned char *)buf[Y].map + buf[Y].size;
		     z < (unsigned char *)buf[Y].map - VN_ZONE + buf[Y].total; z++)
			bad += *z != 0xFF;
		free(want);
		free(got);
	}
	if (st)
		printf("\n  %s\n", err.text);
	for (int i = 0; i < N_BUFFERS; i++)
		vn_buffer_destroy(&b->d, &buf[i]);
	return bad;
}

static void expect_right(bench *b, vn_product_choice choice, const product *p)
{
	const int64_t bad = wrong_of(b, choice, p);

	CU_ASSERT_EQUAL(bad, 0);
	if (bad)
		printf("\n  %s, %d shares: %lld x %lld x %lld, rows %lld apart%s: %lld rows or numbers are wrong\n",
		       vn_kernel_name(choice.kernel), choice.shares, (long long)p->T, (long long)p->M, (long long)p->N,
		       (long long)p->stride, p->bias ? ", bias" : "", (long long)bad);
}

/* ---- the cases ------------------------------------------------------------------------------- */

/* Tokens and columns around the sizes of tiles, inputs around the sizes of panels (64 and 128), and
 * rows that are no multiple of 16 bytes. */
static const struct {
	int64_t T, M, N, pad;
} odd_sizes[] = {
	{ 2, 1, 8, 0 },       { 15, 31, 64, 0 },   { 16, 32, 128, 0 },  { 17, 33, 136, 0 },
	{ 31, 40, 72, 3 },    { 33, 64, 256, 8 },  { 64, 65, 120, 0 },  { 65, 127, 200, 1 },
	{ 127, 128, 384, 0 }, { 129, 136, 64, 8 }, { 130, 257, 88, 0 }, { 200, 130, 1016, 6 },
};

static void every_tile_and_share_is_exact(void)
{
	for (int d = 0; d < n_devices_; d++) {
		bench b;
		bench_start(&b, d, F16);
		CU_ASSERT_TRUE(b.good);
		if (b.good && !b.k.side)
			printf("skipped: device %d has no cooperative matrices ", devices_[d].index);
		for (size_t i = 0; b.good && b.k.side && i < COUNT(odd_sizes); i++) {
			product p = make_product(odd_sizes[i].T, odd_sizes[i].M, odd_sizes[i].N, odd_sizes[i].M + odd_sizes[i].pad,
			                         i % 2, -2);
			for (size_t k = 0; k < COUNT(coops); k++)
				for (int shares = 1; shares <= 5; shares += 1 + shares / 2) /* 1, 2, 4; the last of 5 may be empty */
					expect_right(&b, (vn_product_choice) { coops[k], shares }, &p);
			drop(&p);
		}
		bench_stop(&b);
	}
}

/* Shares of which some have no panel at all. */
static void more_shares_than_panels_are_exact(void)
{
	for (int d = 0; d < n_devices_; d++) {
		bench b;
		bench_start(&b, d, F16);
		if (b.good && !b.k.side)
			printf("skipped: device %d has no cooperative matrices ", devices_[d].index);
		product p = make_product(20, 44, 136, 44, true, 0);
		for (size_t k = 0; b.good && b.k.side && k < COUNT(coops); k++)
			expect_right(&b, (vn_product_choice) { coops[k], 7 }, &p);
		drop(&p);
		bench_stop(&b);
	}
}

/* 2^-24, the smallest half, times a few: a unit that flushes them gives 0. */
static void subnormal_halves_count(void)
{
	for (int d = 0; d < n_devices_; d++) {
		bench b;
		bench_start(&b, d, F16);
		product p = make_product(33, 72, 128, 72, false, -20), one = make_product(1, 72, 128, 72, false, -20);
		for (size_t k = 0; b.good && b.k.side && k < COUNT(coops); k++)
			expect_right(&b, (vn_product_choice) { coops[k], 1 }, &p);
		if (b.good && !b.k.side)
			printf("skipped: device %d has no cooperative matrices ", devices_[d].index);
		if (b.good) {
			expect_right(&b, (vn_product_choice) { VN_K_LINEAR_32X32, 1 }, &p);
			expect_right(&b, (vn_product_choice) { VN_K_LINEAR_VEC, 16 }, &one);
		}
		drop(&one);
		drop(&p);
		bench_stop(&b);
	}
}

/* Rows that can be read 16 bytes at a time, and rows that cannot. */
static void the_plain_kernels_are_exact(void)
{
	static const struct {
		int64_t M, N;
	} of[] = { { 1, 1 }, { 3, 7 }, { 8, 64 }, { 33, 100 }, { 70, 132 }, { 129, 520 }, { 9, 4868 } };
	static const vn_kernel plain[] = { VN_K_LINEAR_64X128, VN_K_LINEAR_64X64, VN_K_LINEAR_32X32, VN_K_LINEAR_16X64 };

	for (int d = 0; d < n_devices_; d++)
		for (int half = 0; half < 2; half++) {
			bench b;
			bench_start(&b, d, half ? F16 : F32);
			CU_ASSERT_TRUE(b.good);
			for (size_t i = 0; b.good && i < COUNT(of); i++)
				for (int64_t T = 1; T < 200; T = 3 * T + 2) {
					product p = make_product(T, of[i].M, of[i].N, of[i].M + (T == 5), i % 2, -2);
					for (size_t k = 0; k < COUNT(plain); k++)
						for (int shares = 1; shares <= 4; shares += 3)
							expect_right(&b, (vn_product_choice) { plain[k], shares }, &p);
					for (int lanes = 1; T == 1 && lanes <= 128; lanes *= 2)
						expect_right(&b, (vn_product_choice) { VN_K_LINEAR_VEC, lanes }, &p);
					drop(&p);
				}
			bench_stop(&b);
		}
}

/* The engine never chooses a kernel that it lacks, does not divide where a share would be empty,
 * and chooses alike for every part of a product. */
static void the_chosen_shader_is_one_that_the_device_has(void)
{
	static const int64_t T[] = { 1, 2, 16, 17, 64, 128, 129, 512, 2048, 100000 }, M[] = { 1, 128, 896, 4864, 151936 },
						 N[] = { 1, 64, 100, 896, 4864, 14336 };

	for (int side = 0; side <= 16; side += 8)
		for (size_t t = 0; t < COUNT(T); t++)
			for (size_t m = 0; m < COUNT(M); m++)
				for (size_t n = 0; n < COUNT(N); n++) {
					const vn_product_choice choice = vn_product_choose(
						&(vn_kernels) { .side = side, .float_sums = side != 0 }, T[t], M[m], N[n]);
					const bool coop = choice.kernel >= VN_K_COOP_8X8 && choice.kernel <= VN_K_COOP_1X2;
					CU_ASSERT_EQUAL(coop, side > 0 && T[t] > 1 && N[n] % 8 == 0);
					CU_ASSERT_EQUAL(choice.kernel == VN_K_LINEAR_VEC, T[t] == 1);
					CU_ASSERT_TRUE(choice.kernel == VN_K_LINEAR_VEC || choice.shares <= 1 ||
					               choice.shares * 32 <= N[n]);
					CU_ASSERT_TRUE(vn_product_sums(choice, T[t], M[m]) < ((VkDeviceSize)1 << 31));
				}
}

int main(void)
{
	CU_TestInfo tests[] = {
		{ "every tile and share is exact", every_tile_and_share_is_exact },
		{ "more shares than panels are exact", more_shares_than_panels_are_exact },
		{ "subnormal halves count", subnormal_halves_count },
		{ "the plain kernels are exact", the_plain_kernels_are_exact },
		{ "the chosen shader is one that the device has", the_chosen_shader_is_one_that_the_device_has },
		CU_TEST_INFO_NULL,
	};
	return run_gpu_suite("gpu products", tests);
}
