/* test_stats.c: statistics in one pass, against plain loops. */
#include "libref/base/stats.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 3 * VN_STATS_BLOCK + 77 };

static float values[MOST];

static void fill(void)
{
	uint32_t u = 7;

	for (int i = 0; i < MOST; i++) {
		u = u * 1664525u + 1013904223u;
		values[i] = ((float)(u >> 8) / 8388608.0f - 1.0f) * 3.0f + 0.25f;
	}
}

/* One number after the other, in long double. */
static vn_stats plain(const double *x, size_t n)
{
	vn_stats    s = { .n = (int64_t)n, .min = (double)INFINITY, .max = -(double)INFINITY };
	long double sum = 0, squares = 0;
	int64_t     finite = 0;

	for (size_t i = 0; i < n; i++) {
		s.nan += isnan(x[i]) != 0;
		s.inf += isinf(x[i]) != 0;
		if (!isfinite(x[i]))
			continue;
		finite++;
		sum += (long double)x[i];
		squares += (long double)x[i] * (long double)x[i];
		s.min = fmin(s.min, x[i]);
		s.max = fmax(s.max, x[i]);
	}
	s.mean = finite ? (double)(sum / finite) : (double)NAN;
	s.rms = finite ? (double)sqrtl(squares / finite) : (double)NAN;
	if (!finite)
		s.min = s.max = (double)NAN;
	s.absmax = fmax(fabs(s.min), fabs(s.max));
	return s;
}

static bool near(double a, double b)
{
	return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 1e-12 * (1.0 + fabs(b));
}

static void compare(vn_stats a, vn_stats b)
{
	CU_ASSERT_EQUAL(a.n, b.n);
	CU_ASSERT_EQUAL(a.nan, b.nan);
	CU_ASSERT_EQUAL(a.inf, b.inf);
	CU_ASSERT(a.min == b.min || (isnan(a.min) && isnan(b.min)));
	CU_ASSERT(a.max == b.max || (isnan(a.max) && isnan(b.max)));
	CU_ASSERT(near(a.mean, b.mean));
	CU_ASSERT(near(a.rms, b.rms));
	CU_ASSERT(near(a.absmax, b.absmax));
}

/* In dtype d, and of what d stores by a plain loop. */
static void check(const float *x, vn_dtype d, size_t n)
{
	unsigned char *raw = malloc(n * 8 + 1);
	double        *wide = malloc((n + 1) * sizeof *wide);

	vn_from_f32(raw + 1, d, x, n); /* not aligned */
	vn_to_f64(wide, raw + 1, d, n);
	compare(vn_stats_of(raw + 1, d, n), plain(wide, n));
	free(raw);
	free(wide);
}

static void every_dtype_and_length_agrees_with_a_plain_loop(void)
{
	const size_t n[] = { 1, 2, 7, 8, 9, 255, 256, 257, 4095, 4096, 4097, MOST };

	for (int d = 0; d < VN_N_DTYPES; d++)
		for (size_t i = 0; i < sizeof n / sizeof *n; i++)
			check(values, (vn_dtype)d, n[i]);
}

static void nan_and_infinity_are_counted_and_take_part_in_nothing_else(void)
{
	const float  strange[] = { NAN, INFINITY, -INFINITY };
	static float x[MOST];
	const size_t at[] = { 0, 5, 255, 256, 4095, 4096, MOST - 1 };

	for (int d = 0; d < VN_N_DTYPES; d++)
		for (size_t k = 0; k < 3; k++) {
			memcpy(x, values, sizeof x);
			for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
				x[at[i]] = strange[k];
				check(x, (vn_dtype)d, MOST);
			}
		}
}

static void without_a_finite_number_there_is_no_mean(void)
{
	const float x[] = { NAN, INFINITY, NAN };
	vn_stats    s = vn_stats_of(x, VN_F32, 3);

	CU_ASSERT_EQUAL(s.n, 3);
	CU_ASSERT_EQUAL(s.nan, 2);
	CU_ASSERT_EQUAL(s.inf, 1);
	CU_ASSERT(isnan(s.min) && isnan(s.max) && isnan(s.mean) && isnan(s.rms) && isnan(s.absmax));
	s = vn_stats_of(x, VN_F32, 0);
	CU_ASSERT_EQUAL(s.n, 0);
	CU_ASSERT(isnan(s.min) && isnan(s.max) && isnan(s.mean) && isnan(s.rms) && isnan(s.absmax));
}

static void the_largest_magnitude_may_be_negative(void)
{
	const float x[] = { -5.0f, 2.0f, 3.0f };
	vn_stats    s = vn_stats_of(x, VN_F32, 3);

	CU_ASSERT_EQUAL(s.absmax, 5.0);
	CU_ASSERT_EQUAL(s.min, -5.0);
	CU_ASSERT_EQUAL(s.max, 3.0);
}

/* A float sum would end at 2^24. */
static void sums_are_wider_than_float(void)
{
	size_t n = (1u << 24) + 4096;
	float *x = malloc(n * sizeof *x);

	for (size_t i = 0; i < n; i++)
		x[i] = 1.0f;
	CU_ASSERT_EQUAL(vn_stats_of(x, VN_F32, n).mean, 1.0);
	CU_ASSERT_EQUAL(vn_stats_of(x, VN_F32, n).rms, 1.0);
	free(x);
}

static void pieces_of_whole_blocks_give_the_same_digits(void)
{
	const vn_stats whole = vn_stats_of(values, VN_F32, MOST);

	for (size_t step = 1; step <= 3; step++) {
		vn_stats_sum s = { 0 };
		for (size_t i = 0; i < MOST; i += step * VN_STATS_BLOCK) {
			const size_t n = MOST - i < step * VN_STATS_BLOCK ? MOST - i : step * VN_STATS_BLOCK;
			vn_stats_add(&s, values + i, VN_F32, n);
		}
		const vn_stats pieces = vn_stats_finish(&s);
		CU_ASSERT_EQUAL(memcmp(&pieces, &whole, sizeof whole), 0);
	}
}

/* In their order: most sums differ in another. */
static void blocks_summed_elsewhere_join_to_the_same_digits(void)
{
	static double x[MOST];
	vn_stats_sum  whole = { 0 }, joined = { 0 };

	for (int i = 0; i < MOST; i++)
		x[i] = (double)values[i] / 3.0;
	x[5] = (double)NAN;
	x[VN_STATS_BLOCK + 5] = (double)INFINITY;
	vn_stats_add(&whole, x, VN_F64, MOST);
	for (size_t i = 0; i < MOST; i += VN_STATS_BLOCK) {
		vn_stats_sum block = { 0 };
		vn_stats_add(&block, x + i, VN_F64, MOST - i < VN_STATS_BLOCK ? MOST - i : VN_STATS_BLOCK);
		vn_stats_join(&joined, &block);
	}
	CU_ASSERT_EQUAL(memcmp(&joined, &whole, sizeof whole), 0);
}

static void an_empty_piece_changes_nothing(void)
{
	vn_stats_sum s = { 0 };

	vn_stats_add(&s, NULL, VN_F32, 0);
	vn_stats_add(&s, values, VN_F32, 100);
	vn_stats_add(&s, NULL, VN_F32, 0);
	const vn_stats a = vn_stats_finish(&s), b = vn_stats_of(values, VN_F32, 100);
	CU_ASSERT_EQUAL(memcmp(&a, &b, sizeof a), 0);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(every_dtype_and_length_agrees_with_a_plain_loop),
		TEST(nan_and_infinity_are_counted_and_take_part_in_nothing_else),
		TEST(without_a_finite_number_there_is_no_mean),
		TEST(the_largest_magnitude_may_be_negative),
		TEST(sums_are_wider_than_float),
		TEST(pieces_of_whole_blocks_give_the_same_digits),
		TEST(blocks_summed_elsewhere_join_to_the_same_digits),
		TEST(an_empty_piece_changes_nothing),
		CU_TEST_INFO_NULL,
	};

	fill();
	return run_suite("stats", tests);
}
