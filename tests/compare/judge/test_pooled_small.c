/* test_pooled_small.c: small tensors of steps of one token share their multiple of the floor. */
#include "compare/comparison/checks.h"
#include "tests/support/pool_help.h"
#include "compare/judge/localise.h"

static const char ratios[] = "version: 1\ndefaults: { nmse_over_floor: 4, worst_token_nmse_over_floor: 16 }\n";

static void a_small_tensor_is_no_finding_where_its_floor_is_nought_by_chance(void)
{
	double factor[MOST + 1];
	trial  t = { 0 };

	set_all_factors(factor, 32, 1);
	make_recordings(32, factor, 7);
	compare(&t, "floor", ratios);
	CU_ASSERT_EQUAL(t.st, VN_OK);
	CU_ASSERT_TRUE(t.c.result.verdict.within);
	CU_ASSERT_EQUAL_FATAL(t.c.result.pools.n_pooled_small, 1);
	CU_ASSERT_EQUAL(t.c.result.pools.pooled_small[0].n, 32); /* not the prompt */
	CU_ASSERT_EQUAL(t.c.result.pools.pooled_small[0].numbers, 32 * V);
	CU_ASSERT_EQUAL(t.c.result.verdict.n_status[VN_WITHIN], 33); /* members judged at another step still have limits */
	finish(&t);
}

static void a_small_tensor_that_is_off_is_charged_at_each_step_that_is(void)
{
	double factor[MOST + 1];
	trial  t = { 0 };

	for (int from = 1; from <= 20; from += 19) {
		set_all_factors(factor, 32, 1);
		for (int i = from; i <= 32; i++)
			factor[i] = i == 21 ? 7 : 6;
		make_recordings(32, factor, -1);
		compare(&t, "floor", ratios);
		CU_ASSERT_FALSE(t.c.result.verdict.within);
		CU_ASSERT_EQUAL_FATAL(failing(&t), 33 - from);
		const vn_checkpoint *p = &t.c.result.checkpoints.of[t.c.result.localised.first];
		const double         all_steps = (from - 1 + (32 - from) * 36 + 49) / 32.0;
		CU_ASSERT_EQUAL(p->step, from); /* not the worst of them */
		CU_ASSERT(p->worst >= 0 && vn_check_at(p, p->worst).metric == VN_M_NMSE &&
		          vn_check_at(p, p->worst).steps == 32);
		CU_ASSERT(vn_check_at(p, p->worst).value > 0.8 * all_steps && vn_check_at(p, p->worst).value < 1.2 * all_steps);
		finish(&t);
	}
}

static void a_correct_step_is_not_charged_with_what_another_does(void)
{
	double factor[MOST + 1];
	trial  t = { 0 };

	for (int last = 21; last <= 32; last += 11) { /* that step alone; all from it on */
		set_all_factors(factor, 32, 1);
		factor[7] = factor[13] = 2.4; /* 5.8 floors: by luck */
		for (int i = 21; i <= last; i++)
			factor[i] = 1000;
		make_recordings(32, factor, -1);
		compare(&t, "floor", ratios);
		CU_ASSERT_FALSE(t.c.result.verdict.within);
		CU_ASSERT_EQUAL_FATAL(failing(&t), last - 20);
		CU_ASSERT_EQUAL(t.c.result.checkpoints.of[t.c.result.localised.first].step, 21);
		finish(&t);
	}
}

static void what_it_is_made_of_is_named_at_each_step_that_is_charged(void)
{
	double factor[MOST + 1];
	trial  t = { 0 };

	embed_worst = 21;
	set_all_factors(factor, 32, 1);
	factor[9] = 11; /* (30 + 121 + 16) / 32 = 5.2 */
	factor[21] = 4;
	make_recordings(32, factor, -1);
	compare(&t, "floor", ratios);
	embed_worst = -1;
	CU_ASSERT_EQUAL(t.c.result.pools.n_pooled_small, 2);
	CU_ASSERT_EQUAL(failing(&t), 4); /* both at 9 and at 21 */
	CU_ASSERT_EQUAL(t.c.result.checkpoints.of[t.c.result.localised.first].step, 9);
	t.c.opened.plan = plan; /* these files hold none: no model made them */
	for (int i = 0; i < t.c.result.checkpoints.n; i++)
		t.c.result.checkpoints.of[i].value = vn_plan_root(plan, vn_plan_find(plan, t.c.result.checkpoints.of[i].name));
	vn_localise(&t.c.opened, &t.c.result.checkpoints, &t.c.result.pools, &t.c.result.localised,
	            &t.c.result.remarks.warnings);
	CU_ASSERT_EQUAL_FATAL(t.c.result.localised.n_origins, 2);
	CU_ASSERT_STRING_EQUAL(t.c.result.checkpoints.of[t.c.result.localised.origins[0]].name, "embed");
	CU_ASSERT_EQUAL(t.c.result.checkpoints.of[t.c.result.localised.origins[0]].step, 9);
	CU_ASSERT_STRING_EQUAL(t.c.result.checkpoints.of[t.c.result.localised.origins[1]].name, "embed");
	CU_ASSERT_EQUAL(t.c.result.checkpoints.of[t.c.result.localised.origins[1]].step, 21);
	finish(&t);
}

static void a_small_tensor_that_is_far_off_at_one_step_is_found(void)
{
	double factor[MOST + 1];
	trial  t = { 0 };

	set_all_factors(factor, 32, 1);
	factor[21] = 9; /* (31 + 81) / 32 = 3.5 in all */
	make_recordings(32, factor, -1);
	compare(&t, "floor", ratios);
	CU_ASSERT_FALSE(t.c.result.verdict.within);
	CU_ASSERT_EQUAL_FATAL(failing(&t), 1);
	const vn_checkpoint *p = &t.c.result.checkpoints.of[t.c.result.localised.first];
	CU_ASSERT_EQUAL(p->step, 21);
	CU_ASSERT(p->worst >= 0 && vn_check_at(p, p->worst).metric == VN_M_WORST_TOKEN_NMSE &&
	          vn_check_at(p, p->worst).value > 70);
	finish(&t);
}

static void what_is_said_of_few_together_is_of_all_their_numbers(void)
{
	double factor[MOST + 1], most = 0;
	trial  t = { 0 };

	for (int i = 0; i <= 16; i++)
		factor[i] = 1 + 0.1 * i;
	make_recordings(16, factor, -1);
	compare(&t, "floor", ratios);
	CU_ASSERT_EQUAL_FATAL(t.c.result.pools.n_pooled_small, 1);
	double dd = 0, rr = 0;
	for (int i = 1; i <= 16; i++) {
		float r[V_MOST], x[V_MOST];
		scores_of(i, 0, 0, r);
		scores_of(i, 0, 1e-3 * factor[i], x);
		for (int k = 0; k < V; k++) {
			const double d = (double)x[k] - (double)r[k];
			dd += d * d;
			rr += (double)r[k] * (double)r[k];
			most = fmax(most, fabs(d));
		}
	}
	const vn_pooled_small *g = &t.c.result.pools.pooled_small[0];
	CU_ASSERT_DOUBLE_EQUAL(g->value[VN_M_NMSE], dd / rr, 1e-12 * dd / rr);
	CU_ASSERT_DOUBLE_EQUAL(g->value[VN_M_RMSE], sqrt(dd / (16 * V)), 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(g->value[VN_M_MAX_ABS], most, 1e-12);
	CU_ASSERT_TRUE(isnan(g->value[VN_M_ULP_P50]) && isnan(g->value[VN_M_COSINE]) && isnan(g->value[VN_M_KL_MEAN]));
	finish(&t);
}

static void too_few_numbers_in_all_may_keep_to_the_cap_instead(void)
{
	static const char cap[] = "version: 1\ndefaults: { nmse_over_floor: 4, without_floor: { nmse: 1.0e-3 } }\n";
	static const char low[] = "version: 1\ndefaults: { nmse_over_floor: 4, without_floor: { nmse: 1.0e-7 } }\n";
	double            factor[MOST + 1];
	trial             t = { 0 };

	set_all_factors(factor, 2, 3);
	make_recordings(1, factor, -1); /* 16 numbers */
	compare(&t, "floor", cap);
	CU_ASSERT_TRUE(t.c.result.verdict.within);
	finish(&t);
	compare(&t, "floor", low);
	CU_ASSERT_FALSE(t.c.result.verdict.within);
	finish(&t);
	compare(&t, "floor", ratios);
	CU_ASSERT_FALSE(t.c.result.verdict.within);
	finish(&t);
	make_recordings(2, factor, -1); /* 32 are enough */
	compare(&t, "floor", cap);
	CU_ASSERT_FALSE(t.c.result.verdict.within);
	finish(&t);
}

static void a_tensor_that_is_not_small_is_judged_at_every_step(void)
{
	double factor[MOST + 1];
	trial  t = { 0 };

	vn_plan_destroy(plan);
	V = 160;
	make_plan();
	set_all_factors(factor, 16, 1);
	factor[5] = factor[9] = 3;
	make_recordings(16, factor, -1);
	compare(&t, "floor", ratios);
	CU_ASSERT_EQUAL(t.c.result.pools.n_pooled_small, 0);
	CU_ASSERT_EQUAL(failing(&t), 2);
	CU_ASSERT_EQUAL(t.c.result.checkpoints.of[t.c.result.localised.first].step, 5);
	finish(&t);
	vn_plan_destroy(plan);
	V = 16;
	make_plan();
}

static void a_row_of_scores_is_small_where_it_is_made_of_few_numbers(void)
{
	double factor[MOST + 1];
	trial  t = { 0 };

	vn_plan_destroy(plan);
	V = 160;
	embed_worst = MOST; /* recorded, and never off by itself: rows of four numbers */
	make_plan();
	set_all_factors(factor, 16, 1);
	factor[5] = factor[9] = 3;
	make_recordings(16, factor, -1);
	compare(&t, "floor", ratios);
	CU_ASSERT_EQUAL_FATAL(t.c.result.pools.n_pooled_small, 2);
	CU_ASSERT_EQUAL(failing(&t), 0); /* (14 + 2 * 9) / 16 = 2 */
	finish(&t);
	vn_plan_destroy(plan);
	embed_worst = -1;
	V = 16;
	make_plan();
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_small_tensor_is_no_finding_where_its_floor_is_nought_by_chance),
		TEST(a_small_tensor_that_is_off_is_charged_at_each_step_that_is),
		TEST(a_correct_step_is_not_charged_with_what_another_does),
		TEST(what_it_is_made_of_is_named_at_each_step_that_is_charged),
		TEST(a_small_tensor_that_is_far_off_at_one_step_is_found),
		TEST(what_is_said_of_few_together_is_of_all_their_numbers),
		TEST(too_few_numbers_in_all_may_keep_to_the_cap_instead),
		TEST(a_tensor_that_is_not_small_is_judged_at_every_step),
		TEST(a_row_of_scores_is_small_where_it_is_made_of_few_numbers),
		CU_TEST_INFO_NULL,
	};

	if (!make_folder())
		return 1;
	make_plan();
	const int failed = run_suite("few", tests);
	return !clean_up() || failed;
}
