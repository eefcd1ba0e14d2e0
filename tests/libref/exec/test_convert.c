/* test_convert.c: several threads convert to the same numbers as one, and a double is rounded
 * once. */
#include "libref/exec/convert.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

enum { N = 3 * 32768 + 2049 }; /* three threads' work, and part of a block */

static void fill(double *x)
{
	for (int i = 0; i < N; i++)
		x[i] = (i % 7 ? 1.0 : -1.0) * (0.001 * i + 1e-9 * (i % 911));
}

static void every_pair_and_number_of_threads_gives_the_same_bytes(void)
{
	static const vn_dtype formats[] = { VN_F64, VN_F32, VN_F16, VN_BF16 };
	double               *x = malloc(N * sizeof *x);
	unsigned char        *src = malloc(N * sizeof *x + 1), *want = malloc(N * sizeof *x), *got = malloc(N * sizeof *x);

	fill(x);
	for (size_t f = 0; f < 4; f++)
		for (size_t t = 0; t < 4; t++) {
			vn_from_f64(src + 1, formats[f], x, N); /* unaligned */
			double *wide = malloc(N * sizeof *wide);
			vn_to_f64(wide, src + 1, formats[f], N);
			vn_from_f64(want, formats[t], wide, N);
			free(wide);
			for (int threads = 1; threads <= 4; threads++) {
				memset(got, 0xAA, N * sizeof *x);
				vn_convert(got, formats[t], src + 1, formats[f], N, threads);
				CU_ASSERT_EQUAL(memcmp(got, want, vn_dtype_bytes(formats[t], N)), 0);
			}
		}
	free(x);
	free(src);
	free(want);
	free(got);
}

static void every_number_of_threads_rounds_to_the_same_bytes(void)
{
	static const vn_dtype formats[] = { VN_F64, VN_F32, VN_F16, VN_BF16 };
	double               *x = malloc(N * sizeof *x);
	float *src = malloc(N * sizeof *src), *want = malloc(N * sizeof *want), *got = malloc(N * sizeof *got);

	fill(x);
	vn_from_f64(src, VN_F32, x, N);
	for (size_t f = 0; f < 4; f++) {
		memcpy(want, src, N * sizeof *want);
		vn_round_f32(want, formats[f], N);
		for (int threads = 1; threads <= 8; threads++) {
			memcpy(got, src, N * sizeof *got);
			vn_round_shared(got, formats[f], N, threads);
			CU_ASSERT_EQUAL(memcmp(got, want, N * sizeof *got), 0);
		}
	}
	free(x);
	free(src);
	free(want);
	free(got);
}

static void nothing_beyond_the_last_number_is_written(void)
{
	float    x[5] = { 1, 2, 3, 4, 5 };
	uint16_t y[6] = { 0, 0, 0, 0, 0, 0x7777 };

	vn_convert(y, VN_F16, x, VN_F32, 5, 8);
	CU_ASSERT_EQUAL(y[4], 0x4500);
	CU_ASSERT_EQUAL(y[5], 0x7777);
	vn_convert(y, VN_F16, x, VN_F32, 0, 8);
	CU_ASSERT_EQUAL(y[0], 0x3C00);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(every_pair_and_number_of_threads_gives_the_same_bytes),
		TEST(every_number_of_threads_rounds_to_the_same_bytes),
		TEST(nothing_beyond_the_last_number_is_written),
		CU_TEST_INFO_NULL,
	};
	return run_suite("convert", tests);
}
