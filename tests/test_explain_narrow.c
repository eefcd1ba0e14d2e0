/* test_explain_narrow.c: tests compare/explain/narrow.c. */
#include "compare/explain/narrow.h"
#include "tests/narrow_help.h"

enum { BF16 = 8, F16 = 11 };

static double y[N];

/* Returns how many numbers are off. */
static int64_t made(vn_narrow_edit edit)
{
	explained e;
	int64_t   off = -2;

	stand_at_sum(&e);
	CU_ASSERT_EQUAL(vn_narrow_make(&e.t, &edit, y, &off, &e.err), VN_OK);
	end_explained(&e);
	return off;
}

static int differing(void)
{
	int n = 0;
	for (int i = 0; i < N; i++)
		n += y[i] != (double)sum[i];
	return n;
}

static void a_result_is_rounded_alone_or_with_its_inputs(void)
{
	static const struct {
		int              bits;
		vn_weight_format format;
	} of[] = { { BF16, VN_FORMAT_BF16 }, { F16, VN_FORMAT_F16 } };

	for (int i = 0; i < 4; i++) {
		const bool whole = i & 1;
		add(of[i / 2].bits, whole);
		CU_ASSERT_EQUAL(made((vn_narrow_edit) { of[i / 2].format, whole }), 0);
		CU_ASSERT_EQUAL(differing(), 0);
		CU_ASSERT_NOT_EQUAL(made((vn_narrow_edit) { of[i / 2].format, !whole }), 0);
	}
}

static void a_few_numbers_may_be_off_by_one_place(void)
{
	add(BF16, false);
	for (int i = 0; i < 3; i++)
		sum[50 * i] = (float)next_in_bits((double)sum[50 * i], BF16);
	CU_ASSERT_EQUAL(made((vn_narrow_edit) { VN_FORMAT_BF16, false }), 3);
	CU_ASSERT_EQUAL(differing(), 0); /* they are the candidate's */
}

static void more_than_a_quarter_may_not(void)
{
	add(BF16, false);
	for (int i = 0; i < N / 4; i++)
		sum[2 * i] = (float)next_in_bits((double)sum[2 * i], BF16);
	CU_ASSERT_EQUAL(made((vn_narrow_edit) { VN_FORMAT_BF16, false }), N / 4);
	sum[1] = (float)next_in_bits((double)sum[1], BF16);
	CU_ASSERT_EQUAL(made((vn_narrow_edit) { VN_FORMAT_BF16, false }), -1);
	CU_ASSERT_EQUAL(differing(), N / 4 + 1); /* they are as computed */
}

static void two_places_are_too_many(void)
{
	add(BF16, false);
	sum[7] = (float)next_in_bits(next_in_bits((double)sum[7], BF16), BF16);
	CU_ASSERT_EQUAL(made((vn_narrow_edit) { VN_FORMAT_BF16, false }), -1);
	CU_ASSERT_EQUAL(differing(), 1);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(a_result_is_rounded_alone_or_with_its_inputs),
		TEST(a_few_numbers_may_be_off_by_one_place),
		TEST(more_than_a_quarter_may_not),
		TEST(two_places_are_too_many),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("narrow", tests);
	return !remove_folder() || failed;
}
