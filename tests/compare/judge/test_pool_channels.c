/* test_pool_channels.c: channels of steps of few tokens are judged together, and charged to the
 * step where it starts. */
#include "compare/judge/pool_channels.h"
#include "compare/metrics/average.h"
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"
#include "compare/judge/check_words.h"
#include "tests/support/pool_help.h"

static const char caps[] = "version: 1\ndefaults: { worst_channel_nmse: 1.0e-2, worst_channel_scale: 2.0e-2 }\n";
static const char ratios[] = "version: 1\ndefaults: { worst_channel_nmse_over_floor: 32, "
							 "worst_channel_scale_over_floor: 32, without_floor: { worst_channel_nmse: 1.0e-2, "
							 "worst_channel_scale: 2.0e-2 } }\n";

/* Records n steps, each 1e-4 off except where the globals say otherwise. */
static void make_bad(int n, int width, int channel, int first, int last, int every, double by)
{
	double off[MOST + 1] = { 0 };

	V = width;
	record("ref", n, off);
	for (int i = 0; i <= n; i++)
		off[i] = 1e-4;
	off_channel.channel = channel;
	off_channel.first = first;
	off_channel.last = last;
	off_channel.every = every;
	off_channel.by = by;
	record("cand", n, off);
	off_channel.channel = -1;
}

static bool fails_at(const trial *t, int step)
{
	for (int i = 0; i < t->c.result.checkpoints.n; i++)
		if (t->c.result.checkpoints.of[i].step == step)
			return t->c.result.checkpoints.of[i].fails;
	return false;
}

static void a_channel_that_is_off_in_every_step_is_charged_at_the_first(void)
{
	char  words[VN_WORDS];
	trial t = { 0 };

	make_bad(40, 128, 7, 1, 40, 1, 1.15);
	compare(&t, NULL, caps);
	CU_ASSERT_EQUAL(t.st, VN_OK);
	CU_ASSERT_EQUAL_FATAL(failing(&t), 1);
	const vn_checkpoint *p = &t.c.result.checkpoints.of[t.c.result.localised.first];
	CU_ASSERT_EQUAL(p->step, 1);
	CU_ASSERT_DOUBLE_EQUAL(p->m.value[VN_M_WORST_CHANNEL_NMSE], 0.15 * 0.15, 1e-3);
	CU_ASSERT_PTR_NOT_NULL(strstr(vn_judge_say_failure(p, words), "over 40 steps at channel 7"));
	finish(&t);
	make_bad(40, 128, -1, 0, 0, 1, 0);
	compare(&t, NULL, caps);
	CU_ASSERT_TRUE(t.c.result.verdict.within);
	finish(&t);
}

static void a_channel_that_is_off_in_later_steps_is_charged_at_the_first_of_those(void)
{
	for (int first = 2; first <= 23; first += 7)
		for (int alone = 0; alone < 2; alone++) {
			trial t = { 0 };
			make_bad(30, 128, 9, first, alone ? first : 30, 1,
			         alone ? -1 : 1.7); /* the others do not fail by themselves */
			compare(&t, NULL, caps);
			CU_ASSERT_EQUAL(failing(&t), 1);
			CU_ASSERT_TRUE(fails_at(&t, first));
			finish(&t);
		}
	/* Of more than are looked at, too. */
	trial t = { 0 };
	make_bad(60, 128, 9, 14, 60, 1, 1.7);
	compare(&t, NULL, caps);
	CU_ASSERT_EQUAL(failing(&t), 1);
	CU_ASSERT_TRUE(fails_at(&t, 14));
	finish(&t);
}

static void a_channel_that_is_off_in_a_part_alone_is_seen(void)
{
	static const int steps[] = { 24, 30, 45, 60 };
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		const int n = steps[i], first[] = { 1, 1 + 2 * n / 3 }, last[] = { n / 3, n };
		for (int part = 0; part < 2; part++) {
			trial t = { 0 };
			make_bad(n, 128, 9, first[part], last[part], 1, 1.15);
			compare(&t, NULL, caps);
			CU_ASSERT_EQUAL_FATAL(failing(&t), 1);
			CU_ASSERT_TRUE(fails_at(&t, first[part]));
			finish(&t);
		}
	}
}

/* The error of a factor is largest where the number is. */
static void a_large_number_does_not_hide_that_the_others_are_off(void)
{
	for (int alone = 0; alone < 2; alone++) {
		trial t = { 0 };
		large = 27;
		make_bad(30, 128, 9, alone ? 27 : 21, alone ? 27 : 30, 1, 1.12);
		compare(&t, NULL, caps);
		CU_ASSERT_EQUAL(t.c.result.verdict.within, alone != 0);
		finish(&t);
	}
	large = -1;
}

static void every_second_or_third_step_is_seen(void)
{
	for (int every = 2; every <= 3; every++)
		for (int first = 1; first <= every; first++) {
			trial t = { 0 };
			make_bad(63, 128, 9, first, 63, every, 1.3);
			compare(&t, NULL, caps);
			CU_ASSERT_FALSE(t.c.result.verdict.within);
			CU_ASSERT_TRUE(fails_at(&t, first));
			finish(&t);
		}
}

static void a_step_that_is_wrong_as_a_whole_hides_no_channel_of_the_others(void)
{
	for (int channel = -1; channel <= 5; channel += 6) {
		trial t = { 0 };
		negated = -1;
		make_bad(20, 128, channel, 1, 20, 1, 1.15);
		double off[MOST + 1];
		for (int i = 0; i <= 20; i++)
			off[i] = 1e-4;
		negated = 7;
		off_channel.channel = channel;
		record("cand", 20, off);
		negated = off_channel.channel = -1;
		compare(&t, NULL, caps);
		CU_ASSERT_EQUAL(failing(&t), channel < 0 ? 1 : 2);
		CU_ASSERT_TRUE(fails_at(&t, 7));
		CU_ASSERT_EQUAL(fails_at(&t, 1), channel >= 0);
		finish(&t);
	}
}

static void steps_of_some_tokens_are_pooled_as_those_of_one(void)
{
	for (chunk = 2; chunk <= 7; chunk++) {
		trial t = { 0 };
		make_bad(8, 128, 11, 1, 8, 1, 1.15);
		compare(&t, NULL, caps);
		CU_ASSERT_EQUAL(failing(&t), 1);
		CU_ASSERT_TRUE(fails_at(&t, 1));
		finish(&t);
	}
	chunk = 1;
	/* Seven rows have no channels. */
	trial t = { 0 };
	make_bad(7, 128, 11, 1, 7, 1, 1.15);
	compare(&t, NULL, caps);
	CU_ASSERT_EQUAL(t.c.result.pools.n_channel_pools, 0);
	CU_ASSERT_TRUE(t.c.result.verdict.within);
	finish(&t);
}

/* The highest nmse of a channel of n <= 32 steps that are 1e-3 off: a channel of less than half the
 * median's norm counts for that. */
static double worst_of_floor(int n)
{
	double rr[V_MOST] = { 0 }, dd[V_MOST] = { 0 }, worst = 0;
	for (int i = 1; i <= n; i++) {
		float r[V_MOST], x[V_MOST];
		scores_of(i, 0, 0, r);
		scores_of(i, 0, 1e-3, x);
		for (int k = 0; k < V; k++) {
			rr[k] += (double)r[k] * (double)r[k];
			dd[k] += ((double)x[k] - (double)r[k]) * ((double)x[k] - (double)r[k]);
		}
	}
	double sorted[V_MOST];
	memcpy(sorted, rr, sizeof sorted);
	qsort(sorted, (size_t)V, sizeof *sorted, vn_ascending);
	const double least = sorted[vn_quantile_index(V, 0.5)] / 4;
	for (int k = 0; k < V; k++)
		worst = fmax(worst, dd[k] / fmax(rr[k], least));
	return worst;
}

static void with_a_floor_channels_are_held_against_its_own(void)
{
	for (int width = 16; width <= 160; width += 144) { /* few numbers, and enough */
		trial  t = { 0 };
		double off[MOST + 1];
		make_bad(30, width, 5, 1, 30, 1, 1.15);
		for (int i = 0; i <= 30; i++)
			off[i] = 1e-3;
		record("floor", 30, off);
		compare(&t, "floor", ratios);
		CU_ASSERT_FATAL(width == 16 ? failing(&t) == 1
		                            : failing(&t) > 1); /* enough numbers are judged by themselves as well */
		const vn_checkpoint *p = &t.c.result.checkpoints.of[t.c.result.localised.first];
		CU_ASSERT_EQUAL(p->step, 1);
		CU_ASSERT(p->worst >= 0 && vn_check_at(p, p->worst).form == VN_OVER_FLOOR &&
		          vn_check_at(p, p->worst).steps == 30);
		CU_ASSERT_DOUBLE_EQUAL(vn_floor_value(p, VN_M_WORST_CHANNEL_NMSE), worst_of_floor(30),
		                       1e-6 * worst_of_floor(30));
		finish(&t);
		make_bad(30, width, -1, 0, 0, 1, 0);
		compare(&t, "floor", ratios);
		CU_ASSERT_TRUE(t.c.result.verdict.within);
		finish(&t);
	}
}

static void a_floor_that_lacks_a_step_leaves_the_limits_without_one(void)
{
	trial  t = { 0 };
	double off[MOST + 1];
	make_bad(30, 160, 5, 1, 30, 1, 1.15);
	for (int i = 0; i <= 30; i++)
		off[i] = 1e-3;
	record("floor", 29, off);
	t.o.allow |= VN_ALLOW_TOKEN_IDS;
	compare(&t, "floor", ratios);
	CU_ASSERT_EQUAL(t.st, VN_OK);
	CU_ASSERT_FATAL(t.c.result.localised.first >= 0);
	const vn_checkpoint *p = &t.c.result.checkpoints.of[t.c.result.localised.first];
	CU_ASSERT(p->step == 1 && vn_check_at(p, p->worst).form == VN_WITHOUT_FLOOR);
	finish(&t);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_channel_that_is_off_in_every_step_is_charged_at_the_first),
		TEST(a_channel_that_is_off_in_later_steps_is_charged_at_the_first_of_those),
		TEST(a_channel_that_is_off_in_a_part_alone_is_seen),
		TEST(a_large_number_does_not_hide_that_the_others_are_off),
		TEST(every_second_or_third_step_is_seen),
		TEST(a_step_that_is_wrong_as_a_whole_hides_no_channel_of_the_others),
		TEST(steps_of_some_tokens_are_pooled_as_those_of_one),
		TEST(with_a_floor_channels_are_held_against_its_own),
		TEST(a_floor_that_lacks_a_step_leaves_the_limits_without_one),
		CU_TEST_INFO_NULL,
	};

	if (!make_folder())
		return 1;
	make_plan();
	const int failed = run_suite("pool_channels", tests);
	return !clean_up() || failed;
}
