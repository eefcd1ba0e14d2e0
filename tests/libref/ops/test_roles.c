/* test_roles.c: what the formats of roles round to, and where the reference engine rounds. */
#include "libref/ops/roles.h"
#include "libref/base/rounding.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

enum { N = 128 };

static void fill(double *x)
{
	for (int i = 0; i < N; i++)
		x[i] = sin(1.7 * i * i) * (i == 70 ? 40 : 1.5);
}

static double error_of(vn_role_format f, int64_t n)
{
	double x[N], y[N], ee = 0, xx = 0;

	fill(x);
	memcpy(y, x, sizeof y);
	for (int64_t at = 0; at < N; at += n)
		vn_role_round(y + at, n, f);
	for (int i = 0; i < N; i++) {
		ee += (y[i] - x[i]) * (y[i] - x[i]);
		xx += x[i] * x[i];
	}
	return ee / xx;
}

static void each_format_errs_as_its_digits_say(void)
{
	CU_ASSERT_EQUAL(error_of(VN_ROLE_AS_STORED, N), 0);
	CU_ASSERT_TRUE(error_of(VN_ROLE_TF32, N) > 1e-9 && error_of(VN_ROLE_TF32, N) < 1e-6);
	CU_ASSERT_EQUAL(error_of(VN_ROLE_TF32, N), error_of(VN_ROLE_F16, N)); /* no number is out of its range */
	CU_ASSERT_TRUE(error_of(VN_ROLE_BF16, N) > 4 * error_of(VN_ROLE_F16, N) && error_of(VN_ROLE_BF16, N) < 1e-5);
	CU_ASSERT_TRUE(error_of(VN_ROLE_F8, N) > 1e-5 && error_of(VN_ROLE_F8, N) < 5e-3);
}

static void rows_of_numbers_without_a_scale_are_rounded_as_each_number_is(void)
{
	static const struct {
		vn_role_format     role;
		vn_rounding_format alone;
	} of[] = { { VN_ROLE_TF32, VN_FORMAT_TF32 }, { VN_ROLE_F16, VN_FORMAT_F16 }, { VN_ROLE_BF16, VN_FORMAT_BF16 } };
	enum { MANY = 5000 };
	double x[MANY], y[MANY];

	for (int i = 0; i < MANY; i++) /* every third halfway between two numbers of TF32 */
		x[i] = i % 3 ? ldexp(sin(1.7 * i * i), i % 300 - 150) : ldexp((i % 2 ? -1 : 1) * (2049.0 + i), i % 60 - 30);
	x[7] = (double)NAN;
	x[8] = -(double)INFINITY;
	x[10] = -0.0;
	for (int f = 0; f < 3; f++) {
		memcpy(y, x, sizeof y);
		vn_role_round(y, MANY, of[f].role);
		for (int i = 0; i < MANY; i++) {
			int          e = 0;
			const double part = frexp(x[i], &e), digits = ldexp(nearbyint(ldexp(part, 11)), e - 11);
			const double want = vn_round_to(x[i], of[f].alone);
			CU_ASSERT_TRUE(memcmp(&y[i], &want, sizeof want) == 0 || (isnan(want) && isnan(y[i])));
			CU_ASSERT_TRUE(f > 0 || !isfinite(x[i]) || (digits == y[i] && signbit(digits) == signbit(y[i])));
		}
	}
}

static void int8_has_one_scale_in_a_row_and_q8_0_one_in_32_numbers(void)
{
	double row[N], blocks[N], x[N];

	fill(x);
	fill(row);
	fill(blocks);
	vn_role_round(row, N, VN_ROLE_INT8);
	vn_role_round(blocks, N, VN_ROLE_Q8_0);
	for (int i = 0; i < N; i++) {
		CU_ASSERT_TRUE(fabs(row[i] - x[i]) <= 40.0 / 127 / 2 * 1.001);
		CU_ASSERT_TRUE(i / 32 == 2 || fabs(blocks[i] - x[i]) <= 1.5 / 127 / 2 * 1.01);
	}
	CU_ASSERT_TRUE(error_of(VN_ROLE_INT8, N) > 2 * error_of(VN_ROLE_INT8, 32));
}

/* torchao: x * (1 / scale), scale = largest / 127.5; ONNX Runtime: x * (127 / largest), of 32. */
static void inputs_have_127_and_a_half_levels_in_a_row_and_127_in_32_numbers(void)
{
	double row[N], blocks[N], x[N];

	fill(x);
	fill(row);
	fill(blocks);
	vn_role_round(row, N, VN_ROLE_INT8_INPUTS);
	vn_role_round(blocks, N, VN_ROLE_Q8_INPUTS);
	for (int at = 0; at < N; at += 32) {
		double most = 0, most_of_row = 0;
		for (int i = 0; i < N; i++) {
			most_of_row = fmax(most_of_row, fabs(x[i]));
			most = i / 32 == at / 32 ? fmax(most, fabs(x[i])) : most;
		}
		for (int i = at; i < at + 32; i++) {
			CU_ASSERT_DOUBLE_EQUAL(blocks[i], round(x[i] * 127 / most) * most / 127, 1e-6 * most);
			CU_ASSERT_DOUBLE_EQUAL(row[i], fmin(127, round(x[i] * 127.5 / most_of_row)) * most_of_row / 127.5,
			                       fabs(x[i]) == most_of_row ? most_of_row / 127 : 1e-6 * most_of_row);
		}
	}
}

static void only_linear_has_formats_of_inputs(void)
{
	vn_policy p;

	CU_ASSERT_TRUE(vn_policy_from_name("f32,linear=int8-inputs", &p));
	CU_ASSERT_TRUE(vn_policy_from_name("bf16,linear=q8-inputs,cache=f16", &p));
	CU_ASSERT_FALSE(vn_policy_from_name("f32,cache=int8-inputs", &p));
	CU_ASSERT_FALSE(vn_policy_from_name("f32,products=q8-inputs", &p));
}

static void a_rotation_spreads_the_largest_number_and_is_its_own_inverse(void)
{
	/* In 64 numbers with one large one, the rotated ones are alike: their scale is that of none. */
	CU_ASSERT_TRUE(error_of(VN_ROLE_Q8_0_ROTATED, 64) < 1e-4);
	CU_ASSERT_NOT_EQUAL(error_of(VN_ROLE_Q8_0_ROTATED, 64), error_of(VN_ROLE_Q8_0, 64));
	CU_ASSERT_EQUAL(error_of(VN_ROLE_Q8_0_ROTATED, 32), error_of(VN_ROLE_Q8_0, 32)); /* too short */
}

static void numbers_that_are_not_finite_stay_so(void)
{
	double x[] = { (double)NAN, (double)INFINITY, 1000 };

	vn_role_round(x, 1, VN_ROLE_F8);
	CU_ASSERT_TRUE(isnan(x[0]));
	vn_role_round(x + 1, 1, VN_ROLE_BF16);
	CU_ASSERT_TRUE(isinf(x[1]));
	vn_role_round(x + 2, 1, VN_ROLE_F8);
	CU_ASSERT_EQUAL(x[2], 448);
}

static void rows_are_rounded_as_one_row_is(void)
{
	enum { WIDE = 2 * 1024 + 32 };
	float  x[WIDE];
	double one[WIDE];

	for (int f = 0; f < VN_N_ROLE_FORMATS; f++) {
		if (f == VN_ROLE_Q8_0_ROTATED)
			continue;
		for (int i = 0; i < WIDE; i++) {
			x[i] = (float)cos(0.3 * i * i);
			one[i] = (double)x[i];
		}
		vn_role_rows_f32(x, 1, WIDE, (vn_role_format)f, false, 2);
		vn_role_round(one, WIDE, (vn_role_format)f);
		for (int i = 0; i < WIDE; i++)
			CU_ASSERT_TRUE(fabs((double)x[i] - one[i]) <= 1e-7);
	}
}

static void columns_share_a_scale(void)
{
	float x[] = { 1, -10, 0.4f, 127, -0.006f, 5 };

	vn_role_rows_f32(x, 3, 2, VN_ROLE_INT8_CHANNEL, false, 1);
	CU_ASSERT_DOUBLE_EQUAL((double)x[2], 51.0 / 127, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL((double)x[4], -1.0 / 127, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL((double)x[5], 5, 1e-5);
}

static void a_scaled_row_uses_all_of_the_format(void)
{
	double x[] = { 1e-3, -0.5e-3, 0.3e-3, 0 };

	vn_role_round(x, 4, VN_ROLE_F8_SCALED);
	CU_ASSERT_DOUBLE_EQUAL(x[0], 1e-3, 1e-10);
	CU_ASSERT_DOUBLE_EQUAL(x[1], -0.5e-3, 1e-10);
	CU_ASSERT_DOUBLE_EQUAL(x[2], 128 * 1e-3 / 448, 1e-9); /* 134.4 of 448, in steps of 16 */
	CU_ASSERT_EQUAL(x[3], 0);
}

static void a_number_between_two_may_become_either(void)
{
	const vn_role_format formats[] = { VN_ROLE_INT8, VN_ROLE_Q8_0 };

	for (int f = 0; f < 2; f++)
		for (int other = 0; other < 2; other++) {
			float x[] = { -0.5f, 0.3f, 1.0f, -0.5f / 127 }; /* 63.5, 38.1, 127 and 0.5 scales */
			vn_role_rows_f32(x, 1, 4, formats[f], other, 1);
			CU_ASSERT_DOUBLE_EQUAL((double)x[0] * 127, other ? -63 : -64, 0.05);
			CU_ASSERT_DOUBLE_EQUAL((double)x[1] * 127, 38, 0.05);
			CU_ASSERT_DOUBLE_EQUAL((double)x[2] * 127, 127, 0.05);
			CU_ASSERT_DOUBLE_EQUAL((double)x[3] * 127, other ? -1 : 0, 0.05);
		}
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(each_format_errs_as_its_digits_say),
		TEST(rows_of_numbers_without_a_scale_are_rounded_as_each_number_is),
		TEST(int8_has_one_scale_in_a_row_and_q8_0_one_in_32_numbers),
		TEST(inputs_have_127_and_a_half_levels_in_a_row_and_127_in_32_numbers),
		TEST(only_linear_has_formats_of_inputs),
		TEST(a_rotation_spreads_the_largest_number_and_is_its_own_inverse),
		TEST(numbers_that_are_not_finite_stay_so),
		TEST(rows_are_rounded_as_one_row_is),
		TEST(columns_share_a_scale),
		TEST(a_scaled_row_uses_all_of_the_format),
		TEST(a_number_between_two_may_become_either),
		CU_TEST_INFO_NULL,
	};
	return run_suite("roles", tests);
}
