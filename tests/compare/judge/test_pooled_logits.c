/* test_pooled_logits.c: the metrics of logits in steps of one token are judged together, because
 * one row proves nothing. */
#include "compare/judge/count.h"
#include "compare/comparison/comparison.h"
#include "compare/comparison/checks.h"
#include "tests/support/pool_help.h"

static const char over[] =
	"version: 1\nrules: [ { match: logits, kl_mean_over_floor: 4, without_floor: { kl_mean: 1.0e-2 }, why: w } ]\n";

static void a_step_whose_floor_is_nought_by_chance_is_no_finding(void)
{
	double factor[MOST + 1];
	trial  t = { 0 };

	set_all_factors(factor, 32, 1);
	make_recordings(32, factor, 7);
	compare(&t, "floor", over);
	CU_ASSERT_EQUAL(t.st, VN_OK);
	CU_ASSERT_TRUE(t.c.result.verdict.within);
	CU_ASSERT_EQUAL_FATAL(t.c.result.pools.n_pooled_logits, 1);
	CU_ASSERT_EQUAL(t.c.result.pools.pooled_logits[0].n, 32);
	CU_ASSERT(t.c.result.pools.pooled_logits[0].rows == 32 &&
	          t.c.result.pools.pooled_logits[0].distinct == 16); /* ids 0 to 15, and again */
	CU_ASSERT_EQUAL(t.c.result.checkpoints.of[t.c.result.pools.pooled_logits[0].first].step, 1);
	CU_ASSERT_EQUAL(t.c.result.checkpoints.of[t.c.result.pools.pooled_logits[0].last].step, 32);
	finish(&t);
}

static void steps_that_are_off_together_are_judged_once_and_charged_at_each(void)
{
	double factor[MOST + 1], sum = 0, most = 0;
	trial  t = { 0 };

	set_all_factors(factor, 32, 6); /* 36 times the divergence */
	factor[21] = 9;
	make_recordings(32, factor, -1);
	compare(&t, "floor", over);
	CU_ASSERT_EQUAL(t.st, VN_OK);
	CU_ASSERT_FALSE(t.c.result.verdict.within);
	CU_ASSERT_EQUAL(failing(&t), 32);
	CU_ASSERT_EQUAL(t.c.result.checkpoints.of[t.c.result.localised.first].step, 1);
	CU_ASSERT_EQUAL(t.c.result.checkpoints.of[t.c.result.pools.pooled_logits[0].worst].step, 21);
	const vn_checkpoint *p = &t.c.result.checkpoints.of[t.c.result.localised.first];
	CU_ASSERT(p->worst >= 0 && vn_check_at(p, p->worst).metric == VN_M_KL_MEAN && vn_check_at(p, p->worst).steps == 32);
	CU_ASSERT(vn_check_at(p, p->worst).value > 32 && vn_check_at(p, p->worst).value < 46);
	for (int i = 0; i < t.c.result.checkpoints.n; i++)
		if (t.c.result.checkpoints.of[i].step > 0) {
			sum += t.c.result.checkpoints.of[i].m.value[VN_M_KL_MEAN];
			most = fmax(most, t.c.result.checkpoints.of[i].m.value[VN_M_KL_MEAN]);
		}
	CU_ASSERT_DOUBLE_EQUAL(t.c.result.pools.pooled_logits[0].value[VN_M_KL_MEAN], sum / 32, 1e-15);
	CU_ASSERT_EQUAL(t.c.result.pools.pooled_logits[0].value[VN_M_KL_MAX], most);
	CU_ASSERT_EQUAL(t.c.result.pools.pooled_logits[0].value[VN_M_KL_P99],
	                most); /* of 32 the 99th hundredth is the last */
	finish(&t);
}

static void the_prompt_is_judged_by_itself(void)
{
	double factor[MOST + 1];
	trial  t = { 0 };

	set_all_factors(factor, 16, 1);
	factor[0] = 3;
	make_recordings(16, factor, -1);
	compare(&t, "floor", over);
	CU_ASSERT_FALSE(t.c.result.verdict.within);
	CU_ASSERT_EQUAL(failing(&t), 1);
	CU_ASSERT_EQUAL(t.c.result.checkpoints.of[t.c.result.localised.first].step, 0);
	finish(&t);
}

/* While a recording is judged as it is made, a checkpoint is a copy,
 * at any distance from the list. */
static void the_rows_of_a_copied_checkpoint_are_its_own(void)
{
	double  factor[MOST + 1];
	trial   t = { 0 };
	int64_t rows = 0, own = 0;
	char   *room = malloc(2 * sizeof(vn_checkpoint));

	set_all_factors(factor, 16, 1);
	make_recordings(16, factor, -1);
	compare(&t, "floor", over);
	CU_ASSERT(room && t.c.result.checkpoints.of[0].pooled_logits < 0);
	const int64_t distinct = vn_judge_count_distinct(&t.c.opened, &t.c.result.pools, &t.c.result.checkpoints.of[0],
	                                                 &rows);
	CU_ASSERT(distinct > 1);
	for (size_t at = 0; room && at < sizeof(vn_checkpoint); at += 8) {
		vn_checkpoint *copy = (vn_checkpoint *)(void *)(room + at);
		*copy = t.c.result.checkpoints.of[0];
		CU_ASSERT(vn_judge_count_distinct(&t.c.opened, &t.c.result.pools, copy, &own) == distinct && own == rows);
	}
	free(room);
	finish(&t);
}

static void few_rows_have_no_ratio_but_a_cap(void)
{
	static const char lower[] =
		"version: 1\nrules: [ { match: logits, kl_mean_over_floor: 4, without_floor: { kl_mean: 1.0e-6 }, why: w } ]\n";
	static const char bare[] = "version: 1\nrules: [ { match: logits, kl_mean_over_floor: 4, why: w } ]\n";
	double            factor[MOST + 1];
	trial             t = { 0 };

	set_all_factors(factor, 4, 3);
	make_recordings(4, factor, -1);
	compare(&t, "floor", over);
	CU_ASSERT_TRUE(t.c.result.verdict.within);
	finish(&t);
	compare(&t, "floor", lower);
	CU_ASSERT_FALSE(t.c.result.verdict.within);
	CU_ASSERT_EQUAL(failing(&t), 4);
	finish(&t);
	compare(&t, "floor", bare); /* nothing that could pass it */
	CU_ASSERT_FALSE(t.c.result.verdict.within);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(vn_check_at(&t.c.result.checkpoints.of[t.c.result.localised.first], 0).note, "too few rows"));
	finish(&t);
}

static void a_share_is_of_all_steps(void)
{
	static const char share[] = "version: 1\nrules: [ { match: logits, argmax_agreement: 0.95, why: w } ]\n";
	double            factor[MOST + 1];
	trial             t = { 0 };

	int32_t other[40]; /* no two rows of one token */
	for (int i = 0; i < 40; i++)
		other[i] = i;
	decoded = other;
	/* Scores that are a hundred times off may still choose the right token by chance; in these rows
	 * they do not. */
	int row[40], n = 0;
	set_all_factors(factor, 40, 1e5);
	make_recordings(40, factor, -1);
	compare(&t, NULL, share);
	for (int i = 0; i < t.c.result.checkpoints.n; i++)
		if (t.c.result.checkpoints.of[i].pooled_logits >= 0 &&
		    t.c.result.checkpoints.of[i].m.value[VN_M_ARGMAX_AGREEMENT] == 0)
			row[n++] = t.c.result.checkpoints.of[i].step;
	finish(&t);
	CU_ASSERT_FATAL(n >= 20);
	/* of 40 rows 2 are a twentieth; 7 or fewer come by luck but once in 1000, 8 do not */
	for (int bad = 7; bad <= 8; bad++) {
		set_all_factors(factor, 40, 0);
		for (int i = 0; i < bad; i++)
			factor[row[i]] = 1e5;
		make_recordings(40, factor, -1);
		compare(&t, NULL, share);
		CU_ASSERT_EQUAL(t.st, VN_OK);
		CU_ASSERT_EQUAL(t.c.result.verdict.within, bad == 7);
		CU_ASSERT_DOUBLE_EQUAL(t.c.result.pools.pooled_logits[0].value[VN_M_ARGMAX_AGREEMENT], 1 - bad / 40.0, 1e-12);
		CU_ASSERT_EQUAL(failing(&t), bad == 7 ? 0 : bad);
		finish(&t);
	}
	/* Two tokens give only two different rows, however often they occur: one wrong row of two may
	 * be chance. */
	for (int i = 0; i < 40; i++)
		other[i] = i % 2;
	set_all_factors(factor, 40, 0);
	for (int i = 0; i < 20; i++)
		factor[row[i]] = 1e5;
	make_recordings(40, factor, -1);
	compare(&t, NULL, share);
	CU_ASSERT_TRUE(t.c.result.verdict.within);
	finish(&t);
	decoded = NULL;
}

/* By exact fractions: the fewest k with P(more than k) <= 1/1000 of a binomial of
 * n and 1 - limit. */
static void a_count_of_rows_has_its_luck(void)
{
	static const struct {
		double  limit;
		int64_t n, allowed;
	} is[] = {
		{ 0.93, 1, 1 },  { 0.93, 2, 2 },  { 0.93, 8, 4 },     { 0.93, 19, 6 }, { 0.93, 200, 26 }, { 0.99, 1, 1 },
		{ 0.99, 33, 3 }, { 0.95, 40, 7 }, { 0.97, 1000, 48 }, { 1, 50, 0 },    { 0.5, 10, 9 },
	};
	for (size_t i = 0; i < sizeof is / sizeof *is; i++)
		CU_ASSERT_EQUAL(vn_judge_count_allowed(is[i].limit, is[i].n), is[i].allowed);
	CU_ASSERT_EQUAL(vn_judge_count_limit(1.0, 30), 1.0);
	CU_ASSERT_EQUAL(vn_judge_count_limit(0.93, 0), 0.93);
	CU_ASSERT_DOUBLE_EQUAL(vn_judge_count_limit(0.93, 19), 1 - 6 / 19.0, 1e-12);
}

static void a_step_without_a_number_fails_them_all(void)
{
	double factor[MOST + 1];
	trial  t = { 0 };

	set_all_factors(factor, 16, 1);
	factor[3] = NAN;
	make_recordings(16, factor, -1);
	compare(&t, "floor", over);
	CU_ASSERT_FALSE(t.c.result.verdict.within);
	CU_ASSERT_TRUE(isnan(t.c.result.pools.pooled_logits[0].value[VN_M_KL_MEAN]));
	CU_ASSERT_EQUAL(t.c.result.checkpoints.of[t.c.result.pools.pooled_logits[0].worst].step, 3);
	CU_ASSERT_EQUAL(t.c.result.checkpoints.of[t.c.result.localised.first].step, 3);
	finish(&t);
}

static void the_step_where_ids_part_is_named(void)
{
	static const int32_t mine[] = { 1, 2, 3, 4, 5 }, others[] = { 1, 2, 9, 4, 5 };
	const double         off[6] = { 0 };
	trial                t = { 0 };

	decoded = mine;
	record("ref", 5, off);
	decoded = others;
	record("cand", 5, off);
	decoded = NULL;
	compare(&t, NULL, over);
	CU_ASSERT_EQUAL(t.st, VN_ERR_MISMATCH);
	CU_ASSERT_EQUAL_FATAL(t.c.result.remarks.refusals.n, 1);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(t.c.result.remarks.refusals.line[0],
	           "number 22, which is step 3, is 3 in the reference, 9 in the candidate: the two runs decoded"));
	finish(&t);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_step_whose_floor_is_nought_by_chance_is_no_finding),
		TEST(steps_that_are_off_together_are_judged_once_and_charged_at_each),
		TEST(the_prompt_is_judged_by_itself),
		TEST(the_rows_of_a_copied_checkpoint_are_its_own),
		TEST(few_rows_have_no_ratio_but_a_cap),
		TEST(a_share_is_of_all_steps),
		TEST(a_count_of_rows_has_its_luck),
		TEST(a_step_without_a_number_fails_them_all),
		TEST(the_step_where_ids_part_is_named),
		CU_TEST_INFO_NULL,
	};

	if (!make_folder())
		return 1;
	make_plan();
	const int failed = run_suite("pooled_logits", tests);
	return !clean_up() || failed;
}
