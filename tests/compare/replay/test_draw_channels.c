/* test_draw_channels.c: tests compare/replay/draw_channels.c: no channel is cleared by what is not
 * known. */
#include "compare/replay/draw_channels.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>

static void a_channel_is_judged_by_the_draws_of_its_own(void)
{
	const double cand[] = { 1, 8, 0 }, draws[] = { 1, 2, 0 };
	const double worst = vn_channels_judge(cand, draws, 3, 10), half = vn_channels_judge(draws, draws, 3, 10);

	CU_ASSERT_DOUBLE_EQUAL(worst, 4 * half, 1e-12);
	CU_ASSERT(half > 0 && half < 1);
	CU_ASSERT(vn_channels_judge(cand, draws, 3, 1) < worst); /* a few draws allow more */
}

static void a_number_that_is_not_known_is_over_every_limit(void)
{
	const double one[] = { 1, 1 }, nan_first[] = { NAN, 1 }, nan_last[] = { 1, NAN }, endless[] = { 1, INFINITY },
				 none[] = { 1, 0 };

	CU_ASSERT_EQUAL(vn_channels_judge(nan_first, one, 2, 10), INFINITY);
	CU_ASSERT_EQUAL(vn_channels_judge(nan_last, one, 2, 10), INFINITY);
	CU_ASSERT_EQUAL(vn_channels_judge(endless, one, 2, 10), INFINITY);
	CU_ASSERT_EQUAL(vn_channels_judge(one, nan_first, 2, 10), INFINITY);
	CU_ASSERT_EQUAL(vn_channels_judge(one, nan_last, 2, 10), INFINITY);
	CU_ASSERT_EQUAL(vn_channels_judge(one, none, 2, 10), INFINITY);
	CU_ASSERT_EQUAL(vn_channels_judge(one, one, 2, NAN), INFINITY);
}

static void a_step_that_is_not_known_stays_in_its_pool(void)
{
	vn_channel_errors  c = { 0 };
	vn_pooled_channels pool = { 0 };
	const double       draws[] = { 1, 1 };

	vn_channels_begin(&c, 2);
	c.now[0] = c.now[1] = 1;
	CU_ASSERT(vn_channels_pool(&pool, &c, draws, 10, false) < 1);
	c.now[1] = NAN;
	CU_ASSERT_EQUAL(vn_channels_pool(&pool, &c, draws, 10, false), INFINITY);
	c.now[1] = 1;
	CU_ASSERT_EQUAL(vn_channels_pool(&pool, &c, draws, 10, false), INFINITY);
	free(c.now);
	free(pool.channel[0]);
	free(pool.channel[1]);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_channel_is_judged_by_the_draws_of_its_own),
		TEST(a_number_that_is_not_known_is_over_every_limit),
		TEST(a_step_that_is_not_known_stays_in_its_pool),
		CU_TEST_INFO_NULL,
	};
	return run_suite("draw_channels", tests);
}
