/* bench_kernel [NAME]: what the sweeps of a comparison cost alone, float32 against float16.
 *
 * Each sweep of compare/metrics/kernel.h, and the digest, runs over numbers that are in the cache: the limit of
 * `vernier compare` on any memory. Prints nanoseconds a number, best of some rounds; what a tensor and what
 * logits cost with all their sweeps; and, for comparison, copying the same numbers from memory, as cat does.
 * NAME: a set of kernels (avx512, avx2, plain); default: the best. Run by hand. */
#include "compare/metrics/kernel.h"

#include "libref/base/digest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 9, CACHED = 1 << 16, ALL = 32 << 20, AT_ONCE = 1 << 20 };

static float    r[ALL];
static uint16_t c[ALL];

static const vn_metric_kernel *kernel;
static vn_digester            *digester;

static void sums(size_t at)
{
	vn_block_sums s;
	kernel->sums((vn_side) { r + at, VN_F32 }, (vn_side) { c + at, VN_F16 }, VN_BLOCK, &s);
}

static void spread(size_t at)
{
	static vn_spread s;
	kernel->spread((vn_side) { r + at, VN_F32 }, (vn_side) { c + at, VN_F16 }, VN_BLOCK, 0.3, VN_F16, &s);
}

static void scores(size_t at)
{
	const double  first[2] = { 0, 0 };
	vn_score_sums s;
	kernel->scores((vn_side) { r + at, VN_F32 }, (vn_side) { c + at, VN_F16 }, VN_BLOCK, first, &s);
}

static void soft(size_t at)
{
	vn_soft s = { 0 };
	kernel->soft((vn_side) { r + at, VN_F32 }, (vn_side) { c + at, VN_F16 }, VN_BLOCK, 4, 4, 0, &s);
}

static void digest(size_t at)
{
	vn_digester_add(digester, r + at, VN_BLOCK * sizeof *r);
	vn_digester_add(digester, c + at, VN_BLOCK * sizeof *c);
}

static void copy(size_t at)
{
	static char to[VN_BLOCK * (sizeof *r + sizeof *c)];
	memcpy(to, r + at, VN_BLOCK * sizeof *r);
	memcpy(to + VN_BLOCK * sizeof *r, c + at, VN_BLOCK * sizeof *c);
	__asm__ volatile("" : : "r"(to) : "memory");
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Nanoseconds a number; within: the numbers it goes over, again and again. */
static double cost(const char *name, void (*sweep)(size_t at), size_t within)
{
	double best = INFINITY;
	for (int k = 0; k < ROUNDS; k++) {
		const double start = now();
		for (size_t i = 0; i < (within < ALL ? AT_ONCE : ALL); i += VN_BLOCK)
			sweep(i % within);
		best = fmin(best, now() - start);
	}
	best *= 1e9 / (within < ALL ? AT_ONCE : ALL);
	printf("%-22s %6.3f ns a number\n", name, best);
	return best;
}

int main(int argc, char **argv)
{
	vn_error err;
	if (argc > 1 && vn_metric_kernel_choose(argv[1], &err)) {
		fprintf(stderr, "bench_kernel: %s\n", err.text);
		return 2;
	}
	kernel = vn_metric_kernel_best();
	digester = vn_digester_create();
	for (size_t i = 0; i < ALL; i++) {
		r[i] = 3 * sinf((float)(i % 99991)) + cosf((float)(i % 1013));
		c[i] = vn_f32_to_f16(r[i]);
	}
	const double tensor = cost("sums", sums, CACHED) + cost("relative, ulps", spread, CACHED) +
	                      cost("digest", digest, CACHED);
	const double logits = tensor + cost("highest scores", scores, CACHED) + cost("exponentials", soft, CACHED);
	const double cat = cost("copy from memory", copy, ALL);
	printf("%s: a tensor %.2f ns, logits %.2f ns a number: %.2f and %.2f times the copy; two fifths logits: %.2f\n",
	       kernel->name, tensor, logits, tensor / cat, logits / cat, (0.6 * tensor + 0.4 * logits) / cat);
	vn_digester_finish(digester);
	return 0;
}
