/* test_linear_product.c: tests compare/estimate/linear_product.c. */
#include "compare/estimate/linear_product.h"
#include "tests/support/suite.h"

#include <math.h>

static void equations_are_solved_whatever_their_order(void)
{
	/* the first pivot is 0, so rows must be exchanged; x = (1, -2, 3) */
	double a[] = { 0, 2, 1, 4, 1, -1, 2, 0, 5 }, b[] = { -1, -1, 17 };

	CU_ASSERT_TRUE(vn_estimate_solve(a, b, 3));
	CU_ASSERT_DOUBLE_EQUAL(b[0], 1, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(b[1], -2, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(b[2], 3, 1e-12);
}

static void equations_that_do_not_determine_the_numbers_are_refused(void)
{
	double a[] = { 1, 2, 2, 4 }, b[] = { 1, 2 }, zero[] = { 0, 0, 0, 0 }, nan[] = { (double)NAN, 1, 1, 1 };

	CU_ASSERT_FALSE(vn_estimate_solve(a, b, 2));
	CU_ASSERT_FALSE(vn_estimate_solve(zero, b, 2));
	CU_ASSERT_FALSE(vn_estimate_solve(nan, b, 1));
}

static void a_rank_is_there_or_missing_or_neither(void)
{
	CU_ASSERT_TRUE(vn_estimate_is_whole(0.05) && vn_estimate_is_whole(-0.05) && vn_estimate_is_whole(0.95));
	CU_ASSERT_FALSE(vn_estimate_is_whole(0.2) || vn_estimate_is_whole(2) || vn_estimate_is_whole(-1) ||
	                vn_estimate_is_whole((double)NAN));
}

/* The first and the last token, and channels at equal distances. */
static void the_tokens_that_are_looked_at_reach_from_the_first_to_the_last(void)
{
	const vn_tested_product p = { .T = 100, .M = 1000, .R = 8, .C = 128 }, one = { .T = 1, .M = 3, .R = 1, .C = 3 };

	CU_ASSERT_EQUAL(vn_tested_product_row(&p, 0), 0);
	CU_ASSERT_EQUAL(vn_tested_product_row(&p, 7), 99);
	CU_ASSERT_EQUAL(vn_tested_product_channel(&p, 127), 992);
	CU_ASSERT_EQUAL(vn_tested_product_row(&one, 0), 0);
	CU_ASSERT_EQUAL(vn_tested_product_channel(&one, 2), 2);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(equations_are_solved_whatever_their_order),
		TEST(equations_that_do_not_determine_the_numbers_are_refused),
		TEST(a_rank_is_there_or_missing_or_neither),
		TEST(the_tokens_that_are_looked_at_reach_from_the_first_to_the_last),
		CU_TEST_INFO_NULL,
	};
	return run_suite("linear product", tests);
}
