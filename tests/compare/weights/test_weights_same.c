/* test_weights_same.c: tests compare/weights/weights_same.c, whether two rows of
 * tables are one weight. */
#include "tests/support/weights_help.h"

#include <math.h>
#include <string.h>

enum { N = 64 };

static float    x[N];
static uint16_t narrow[N];

static void fill(void)
{
	for (int i = 0; i < N; i++)
		x[i] = (float)((37 * i) % 61 - 30) / 31.7f;
}

static vn_weight_row row(const float *data)
{
	const vn_tensor t = f32(data, 8, N / 8);
	return row_of("w", &t);
}

/* x in a 16-bit format. */
static vn_weight_row narrowed(vn_dtype dtype)
{
	const vn_tensor t = { dtype, { 2, { 8, N / 8 } }, narrow };
	vn_from_f32(narrow, dtype, x, N);
	return row_of("w", &t);
}

static bool same(vn_weight_row a, vn_weight_row b)
{
	const bool there = vn_weights_same(&a, &b);
	CU_ASSERT_EQUAL(vn_weights_same(&b, &a), there);
	return there;
}

static void digests_of_one_format_decide(void)
{
	float y[N];

	fill();
	memcpy(y, x, sizeof y);
	CU_ASSERT_TRUE(same(row(x), row(y)));
	y[0] = x[1]; /* the same statistics */
	y[1] = x[0];
	CU_ASSERT_FALSE(same(row(x), row(y)));
	/* without a digest on one side, statistics must do */
	vn_weight_row unknown = row(y);
	unknown.digest.hex[0] = 0;
	CU_ASSERT_TRUE(same(row(x), unknown));
	y[5] += 1;
	unknown = row(y);
	unknown.digest.hex[0] = 0;
	CU_ASSERT_FALSE(same(row(x), unknown));
}

static void rounding_to_the_coarser_format_is_no_difference(void)
{
	fill();
	const vn_weight_row bf16 = narrowed(VN_BF16), f16 = narrowed(VN_F16);
	CU_ASSERT_TRUE(same(row(x), bf16));
	CU_ASSERT_TRUE(same(row(x), f16));
	CU_ASSERT_TRUE(same(f16, bf16));
}

/* What bfloat16 may change is 2^-7 of the largest number, float16 2^-10. */
static void more_than_rounding_is_a_difference(void)
{
	float y[N];

	fill();
	memcpy(y, x, sizeof y);
	const vn_weight_row bf16 = narrowed(VN_BF16), f16 = narrowed(VN_F16);
	for (int i = 0; i < N; i++)
		y[i] = x[i] * 1.003f; /* less than 2^-7, more than 2^-10 */
	CU_ASSERT_TRUE(same(row(y), bf16));
	CU_ASSERT_FALSE(same(row(y), f16));
	for (int i = 0; i < N; i++)
		y[i] = x[i] * 1.02f;
	CU_ASSERT_FALSE(same(row(y), bf16));
	for (int i = 0; i < N; i++) /* the same range, another mean */
		y[i] = i % 2 ? x[i] : fabsf(x[i]);
	CU_ASSERT_FALSE(same(row(y), bf16));
}

static void nan_and_infinities_are_counted(void)
{
	float y[N];

	fill();
	memcpy(y, x, sizeof y);
	const vn_weight_row bf16 = narrowed(VN_BF16);
	y[3] = NAN;
	CU_ASSERT_FALSE(same(row(y), bf16));
	y[3] = x[3];
	y[4] = INFINITY;
	CU_ASSERT_FALSE(same(row(y), bf16));
	for (int i = 0; i < N; i++)
		x[i] = NAN; /* no statistic is a number */
	CU_ASSERT_TRUE(same(row(x), narrowed(VN_BF16)));
}

/* Blocks are no grid: close numbers are not one weight, and equal statistics of one format are. */
static void quantised_weights_are_the_same_in_their_own_format_only(void)
{
	unsigned char   block[2][34] = { { 0, 0x3c } };
	const vn_tensor t = { VN_Q8_0, { 2, { 1, 32 } }, block[0] };
	float           y[32];

	for (int i = 0; i < 32; i++) {
		block[0][2 + i] = (unsigned char)i;
		y[i] = (float)i; /* its scale, 0x3c00, is 1 */
	}
	const vn_tensor     plain = f32(y, 1, 32);
	const vn_weight_row q = row_of("w", &t);
	CU_ASSERT_EQUAL(q.stats.max, 31);
	CU_ASSERT_FALSE(same(q, row_of("w", &plain)));
	vn_weight_row unknown = q;
	unknown.digest.hex[0] = 0;
	CU_ASSERT_TRUE(same(q, unknown));
	unknown.stats.max += 1;
	CU_ASSERT_FALSE(same(q, unknown));
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(digests_of_one_format_decide),
		TEST(rounding_to_the_coarser_format_is_no_difference),
		TEST(more_than_rounding_is_a_difference),
		TEST(nan_and_infinities_are_counted),
		TEST(quantised_weights_are_the_same_in_their_own_format_only),
		CU_TEST_INFO_NULL,
	};
	return run_suite("same weights", tests);
}
