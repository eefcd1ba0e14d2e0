/* test_explain_squares_overflow.c: tests compare/explain/squares_overflow.c. */
#include "compare/explain/squares_overflow.h"
#include "tests/explain_help.h"

#include <math.h>

/* layer1.attn_norm of twelve tokens, as recorded, and its input. */
enum { T = 12, D = 48 };

static float x[T * D], y[T * D];

/* Rows 3 and 7 of the input have these numbers; the norm recorded 0 in row 3, and in row 7 if `both`. */
static bool tried(float row3, float row7, bool both)
{
	const given of[] = { { "layer0.output", x }, { "layer1.attn_norm", y } };
	explained   e;
	bool        all;
	int64_t     n;
	double     *weight = given_weight("layer1.attn_norm", 0, &n);

	CU_ASSERT_EQUAL_FATAL(n, D);
	for (int t = 0; t < T; t++) {
		double squares = 0;
		for (int i = 0; i < D; i++) {
			const double by = t == 3 ? (double)row3 : t == 7 ? (double)row7 : 1;
			x[t * D + i] = (float)(by * ((37 * (t * D + i) % 101) / 50.0 - 1));
			squares += (double)x[t * D + i] * (double)x[t * D + i];
		}
		for (int i = 0; i < D; i++)
			y[t * D + i] = t == 3 || (both && t == 7)
			                   ? 0
			                   : (float)((double)x[t * D + i] / sqrt(squares / D + 1e-5) * weight[i]);
	}
	free(weight);
	compare_given(&e, T, 0, of, 2);
	stand_at(&e, "layer1.attn_norm", 0);
	CU_ASSERT_EQUAL(vn_try_squares_overflow(&e.t, &all, &e.err), VN_OK);
	CU_ASSERT_EQUAL(e.x.n, all);
	CU_ASSERT_TRUE(!all || e.x.by[0].finding == VN_SQUARES_OVERFLOW);
	end_explained(&e);
	return all;
}

static void rows_whose_squares_pass_float32_are_zero(void)
{
	CU_ASSERT_TRUE(tried(1e25f, 1, false));
	CU_ASSERT_TRUE(tried(1e25f, 1e30f, true));
}

/* A row of usual size that is 0 is a mistake, also beside one that is too large. */
static void other_rows_are_not(void)
{
	CU_ASSERT_FALSE(tried(1, 1, false));
	CU_ASSERT_FALSE(tried(1e15f, 1, false));
	CU_ASSERT_FALSE(tried(1e25f, 1, true));
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(rows_whose_squares_pass_float32_are_zero),
		TEST(other_rows_are_not),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("squares beyond float32", tests);
	return !remove_folder() || failed;
}
