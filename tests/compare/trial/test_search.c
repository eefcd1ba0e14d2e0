/* test_search.c: tests compare/trial/search.c. */
#include "tests/support/suite.h"

#include "compare/trial/search.h"

#include <math.h>

typedef struct valley {
	double bottom;
	int    asked;
} valley;

static double off_by(void *of, double x)
{
	valley *v = of;

	v->asked++;
	return (log(x / v->bottom)) * (log(x / v->bottom));
}

static double cheap(void *of, double x)
{
	return fabs(log(x / *(double *)of));
}

static double nothing(void *of, double x)
{
	(void)of, (void)x;
	return (double)NAN;
}

static void a_number_between_those_of_the_grid_is_found(void)
{
	valley   v = { .bottom = 20000 };
	vn_least least;

	least = vn_search_scale(off_by, &v, (vn_range) { 10, 1e9, 17, false }, (double)INFINITY);
	CU_ASSERT_DOUBLE_EQUAL(least.x / 20000, 1, 1e-6);
	CU_ASSERT_EQUAL(v.asked, 17 + 2 + 36);
}

static void a_grid_that_leaves_too_much_is_not_looked_at_closer(void)
{
	valley   v = { .bottom = 1e15 };
	vn_least least;

	least = vn_search_scale(off_by, &v, (vn_range) { 10, 1e9, 17, false }, 1);
	CU_ASSERT_TRUE(isinf(least.error));
	CU_ASSERT_EQUAL(v.asked, 17);
	least = vn_search_scale(nothing, NULL, (vn_range) { 10, 1e9, 17, false }, (double)INFINITY);
	CU_ASSERT_TRUE(isinf(least.error)); /* a NaN is less than nothing */
}

static void every_whole_number_is_found(void)
{
	vn_least least;

	for (int n = 1; n <= 300; n++) {
		valley v = { .bottom = n };
		least = vn_search_whole(off_by, &v, 1, 300);
		CU_ASSERT_EQUAL(least.x, n);
		CU_ASSERT_TRUE(v.asked < 60);
	}
	least = vn_search_whole(off_by, &(valley) { .bottom = 9 }, 4, 4);
	CU_ASSERT_EQUAL(least.x, 4);
}

static void a_finer_grid_stays_within_its_range(void)
{
	double in = 12345, below = 0.5;

	CU_ASSERT_DOUBLE_EQUAL(vn_search_grid(cheap, &in, (vn_range) { 1, 1e8, 64, false }, 4, 64).x / in, 1, 1e-5);
	CU_ASSERT_DOUBLE_EQUAL(vn_search_grid(cheap, &below, (vn_range) { 1, 1e8, 64, false }, 4, 64).x, 1, 1e-12);
}

/* r gives these n numbers and no more. */
static void gives(vn_round_numbers r, int n, const double *want)
{
	double number;

	for (int i = 0; i < n; i++) {
		CU_ASSERT_TRUE(vn_next_round_number(&r, &number));
		CU_ASSERT_EQUAL(number, want[i]);
	}
	CU_ASSERT_FALSE(vn_next_round_number(&r, &number));
	CU_ASSERT_FALSE(vn_next_round_number(&r, &number));
}

static void a_number_in_fewer_digits_is_near_it_or_not_meant(void)
{
	CU_ASSERT_EQUAL(vn_in_digits(19998.3, 2), 20000);
	CU_ASSERT_EQUAL(vn_in_digits(-0.26251, 4), -0.2625);
	gives((vn_round_numbers) { .x = 19998.3, .most = 2, .near = true }, 2, (const double[]) { 20000, 20000 });
	gives((vn_round_numbers) { .x = 15.5, .most = 3, .near = true }, 1, (const double[]) { 15.5 });
	gives((vn_round_numbers) { .x = (double)NAN, .most = 6, .near = true }, 0, NULL);
}

static void round_numbers_begin_with_the_fewest_digits(void)
{
	gives((vn_round_numbers) { .x = 15.64, .most = 4 }, 4, (const double[]) { 20, 16, 15.6, 15.64 });
	gives((vn_round_numbers) { .x = 15.64, .fewest = 2, .most = 3 }, 2, (const double[]) { 16, 15.6 });
	gives((vn_round_numbers) { .x = -0.334, .most = 2, .inverse = true }, 4,
	      (const double[]) { -0.3, 1 / -3.0, -0.33, 1 / -3.0 });
	gives((vn_round_numbers) { .x = -0.334, .most = 1, .inverse = true, .near = true }, 1,
	      (const double[]) { 1 / -3.0 });
	gives((vn_round_numbers) { .x = 2, .fewest = 3, .most = 2 }, 0, NULL);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(a_number_between_those_of_the_grid_is_found),
		TEST(a_grid_that_leaves_too_much_is_not_looked_at_closer),
		TEST(every_whole_number_is_found),
		TEST(a_finer_grid_stays_within_its_range),
		TEST(a_number_in_fewer_digits_is_near_it_or_not_meant),
		TEST(round_numbers_begin_with_the_fewest_digits),
		CU_TEST_INFO_NULL,
	};
	return run_suite("search", tests);
}
