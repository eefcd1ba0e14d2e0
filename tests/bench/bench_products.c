/* bench_products.c: microseconds of one product on a Vulkan device, by every kernel and share.
 *
 *   bench_products [--json] [PRECISION [best|all [TOKENS...]]]
 *
 * Default: f16 best, calls of 1 to 2048 tokens.
 *
 * For each shape of a weight and number of tokens: the kernel and share that the engine chooses
 * and, with `all`, every other one. A barrier is before each product, and the weights take turns in
 * more memory than the device caches. Prints the device's own time, the least of some rounds.
 * --json: an object of each product on a line of its own, after one of the device. */
#include "libgpu/engine.h"
#include "libref/base/progress.h"
#include "libref/plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 3, TIMES = 24 };
static const VkDeviceSize WEIGHTS = (VkDeviceSize)320 << 20;

static const struct {
	int64_t M, N;
} shapes[] = {
	{ 896, 896 },   { 128, 896 },   { 4864, 896 },   { 896, 4864 },   { 151936, 896 },
	{ 4096, 4096 }, { 1024, 4096 }, { 14336, 4096 }, { 4096, 14336 },
};
static const int64_t tokens[] = { 1, 8, 16, 32, 64, 128, 256, 512, 2048 };

static vn_device  device;
static vn_kernels kernels;
static vn_encoder encoder;
static vn_buffer  x, w, y, sums;
static size_t     element;
static bool       json;

static void must(vn_status st, const vn_error *err)
{
	if (!st)
		return;
	fprintf(stderr, "bench_products: %s\n", err->text);
	exit(2);
}

static vn_plan *small_plan(void)
{
	vn_builder *b = vn_plan_begin(0, 8, 8);
	vn_plan    *p = NULL;
	vn_error    err = { "" };

	vn_plan_embed(b, vn_plan_weight(b, "w", 2, (int64_t[]) { 8, 8 }), VN_POINT_EMBED);
	must(vn_plan_finish(b, &p, &err), &err);
	return p;
}

/* Microseconds of one product, of the best round. */
static double time_of(vn_product_choice choice, int64_t T, int64_t M, int64_t N)
{
	const int64_t all = (int64_t)(WEIGHTS / element) / (M * N); /* weights of this shape that fit in memory */
	double        best = 1e30;
	vn_error      err = { "" };

	for (int r = 0; r < ROUNDS + 1; r++) {
		const int i = encoder.cur;
		uint64_t  stamp[2];
		vn_encode_begin(&encoder);
		vn_encode_reset_stamps(&encoder);
		vn_encode_stamp(&encoder, 0);
		for (int64_t k = 0; k < TIMES; k++)
			vn_product_encode(
				&encoder, choice,
				&(vn_product) { .x = &x,
			                    .w = &w,
			                    .y = &y,
			                    .sums = &sums,
			                    .element = element,
			                    .at = { .x = x.address,
			                            .w = w.address + (uint64_t)(k % (all ? all : 1) * M * N) * element,
			                            .y = y.address,
			                            .T = (uint32_t)T,
			                            .M = (uint32_t)M,
			                            .N = (uint32_t)N,
			                            .y_stride = (uint32_t)M } });
		vn_encode_stamp(&encoder, 1);
		must(vn_encode_submit(&encoder, &err), &err);
		must(vn_encode_wait(&encoder, i, &err), &err);
		if (vn_vk.GetQueryPoolResults(device.device, encoder.queries, 0, 2, sizeof stamp, stamp, sizeof *stamp,
		                              VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT) != VK_SUCCESS)
			exit(2);
		const double us = (double)((stamp[1] - stamp[0]) & device.tick_mask) * device.ns_per_tick * 1e-3 / TIMES;
		best = r && us < best ? us : best;
	}
	return best;
}

static void print_product(vn_product_choice choice, int64_t T, int64_t M, int64_t N, bool chosen)
{
	if (vn_product_sums(choice, T, M) > sums.size)
		return;
	const double us = time_of(choice, T, M, N), flops = 2 * (double)T * (double)M * (double)N,
				 bytes = (double)element * ((double)M * (double)N + (double)T * (double)(M + N));

	if (json)
		printf(
			"{\"tokens\": %lld, \"outputs\": %lld, \"inputs\": %lld, \"kernel\": \"%s\", \"shares\": %d, \"us\": %.3f, "
			"\"flops\": %.0f, "
			"\"bytes\": %.0f}\n",
			(long long)T, (long long)M, (long long)N, vn_kernel_name(choice.kernel), choice.shares, us, flops, bytes);
	else
		printf("%6lld x %6lld x %5lld  %c %-16s %3d %9.1f us %7.1f TFLOP/s %6.0f GB/s\n", (long long)T, (long long)M,
		       (long long)N, chosen ? '*' : ' ', vn_kernel_name(choice.kernel), choice.shares, us, 1e-6 * flops / us,
		       1e-3 * bytes / us);
	fflush(stdout);
}

static void every_way(int64_t T, int64_t M, int64_t N)
{
	if (T == 1) {
		for (int lanes = 8; lanes <= 128; lanes *= 2)
			print_product((vn_product_choice) { VN_K_LINEAR_VEC, lanes }, T, M, N, false);
		return;
	}
	for (int k = VN_K_COOP_8X8; k <= VN_K_COOP_1X2; k++)
		for (int shares = 1; kernels.side && shares <= (N > 2048 ? 16 : 4); shares *= 2)
			if (shares == 1 || T * M <= 512 * 4096)
				print_product((vn_product_choice) { (vn_kernel)k, shares }, T, M, N, false);
	for (int k = VN_K_LINEAR_64X128; k < VN_K_LINEAR_VEC && !kernels.side; k++)
		for (int shares = 1; shares <= (kernels.float_sums ? N > 2048 ? 16 : 4 : 1); shares *= 2)
			if (shares == 1 || T * M <= 512 * 4096)
				print_product((vn_product_choice) { (vn_kernel)k, shares }, T, M, N, false);
}

static bool is_asked(int64_t T, int argc, char **argv)
{
	bool found = argc <= 3;

	for (int i = 3; i < argc; i++)
		found = found || atoll(argv[i]) == T;
	return found;
}

int main(int argc, char **argv)
{
	vn_policy policy = { VN_F16, VN_F32, 0, { 0 } };
	vn_error  err = { "" };
	vn_plan  *p = small_plan();

	json = argc > 1 && strcmp(argv[1], "--json") == 0;
	argc -= json;
	argv += json;
	if (argc > 1 && !vn_policy_from_name(argv[1], &policy)) {
		fprintf(stderr, "usage: bench_products [--json] [PRECISION [best|all [TOKENS...]]]\n");
		return 2;
	}
	element = vn_dtype_size(policy.storage);
	must(vn_device_open(&device, -1, policy.sums == VN_F16, false, &err), &err);
	must(vn_kernels_create(&device, &kernels, p, policy, false, &err), &err);
	must(vn_encoder_create(&device, &kernels, 2, &encoder, &err), &err);
	must(vn_buffer_create(&device, &x,
	                      &(vn_buffer_need) { VN_ON_DEVICE, (VkDeviceSize)2048 * 14336 * element, false, "x" }, &err),
	     &err);
	must(vn_buffer_create(&device, &w, &(vn_buffer_need) { VN_ON_DEVICE, WEIGHTS, false, "w" }, &err), &err);
	must(vn_buffer_create(&device, &y,
	                      &(vn_buffer_need) { VN_ON_DEVICE, (VkDeviceSize)2048 * 151936 * element, false, "y" }, &err),
	     &err);
	must(vn_buffer_create(&device, &sums, &(vn_buffer_need) { VN_ON_DEVICE, (VkDeviceSize)256 << 20, false, "sums" },
	                      &err),
	     &err);
	printf(json ? "{\"device\": \"%s\", \"precision\": \"%s\", \"side\": %d}\n" : "%s, %s, matrices of %d\n",
	       device.info.name, vn_policy_name(policy), kernels.side);
	for (const double start = vn_seconds(); vn_seconds() < start + 0.5;) /* idle clocks are a third of busy ones */
		time_of((vn_product_choice) { VN_K_LINEAR_VEC, 16 }, 1, 4096, 4096);
	for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
		for (size_t t = 0; t < sizeof tokens / sizeof *tokens; t++) {
			const int64_t T = tokens[t], M = shapes[s].M, N = shapes[s].N;
			if (!is_asked(T, argc, argv))
				continue;
			if (M * N * (int64_t)element > (int64_t)WEIGHTS || (M > 100000 && !kernels.side && T > 512))
				continue;
			print_product(vn_product_choose(&kernels, T, M, N), T, M, N, true);
			if (argc > 2 && strcmp(argv[2], "all") == 0)
				every_way(T, M, N);
		}
	vn_buffer_destroy(&device, &sums);
	vn_buffer_destroy(&device, &y);
	vn_buffer_destroy(&device, &w);
	vn_buffer_destroy(&device, &x);
	vn_encoder_destroy(&encoder);
	vn_kernels_destroy(&kernels);
	vn_device_close(&device);
	vn_plan_destroy(p);
	return 0;
}
