/* test_floor_run.c: tests compare/replay/floor_run.c. */
#include "tests/support/explain_help.h"

#include <math.h>

static void judge_with(trial *t, const char *ref, const char *cand, const char *model)
{
	*t = (trial) { .o = { .model = model, .replay = VN_REPLAY_NEVER, .threads = 1 } };
	judge(t, ref, cand, NULL, "version: 1\ndefaults: { nmse_over_floor: 4 }\n"); /* a limit that asks for a floor */
}

static void record_all(void)
{
	static bool done;
	vn_error    err = { "" };

	if (done)
		return;
	CU_ASSERT_EQUAL_FATAL(record_llama_in("f64", "f64.h5", NULL, &err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(record_llama_in("f32", "f32.h5", NULL, &err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(record_llama_in("f16", "f16.h5", NULL, &err), VN_OK);
	done = true;
}

/* The candidate is the model's own run in its precision: its floor is its error. */
static void under_a_finer_reference_the_floor_is_a_run_in_the_candidate_s_precision(void)
{
	trial t;
	int   floors = 0;

	record_all();
	judge_with(&t, "f32.h5", "f16.h5", LLAMA);
	CU_ASSERT_EQUAL_FATAL(t.st, VN_OK);
	for (int i = 0; i < t.c.result.checkpoints.n; i++) {
		const vn_checkpoint *p = &t.c.result.checkpoints.of[i];
		if (!p->has_floor)
			continue;
		CU_ASSERT_DOUBLE_EQUAL(p->floor[VN_M_NMSE], p->m.value[VN_M_NMSE], 1e-9 * p->m.value[VN_M_NMSE]);
		floors++;
	}
	CU_ASSERT_TRUE(floors > 100);
	CU_ASSERT_EQUAL(floors, t.c.result.checkpoints.n);
	finish(&t);
}

/* Two runs in float32 have similar errors against a finer run: the floor is twice one run's
 * error. */
static void of_two_runs_of_one_precision_both_roundings_count(void)
{
	trial finer, same;

	record_all();
	judge_with(&finer, "f64.h5", "f32.h5", LLAMA);
	judge_with(&same, "f32.h5", "f32.h5", LLAMA);
	CU_ASSERT_EQUAL_FATAL(finer.st, VN_OK);
	CU_ASSERT_EQUAL_FATAL(same.st, VN_OK);
	CU_ASSERT_EQUAL_FATAL(finer.c.result.checkpoints.n, same.c.result.checkpoints.n);
	int rounded = 0;
	for (int i = 0; i < same.c.result.checkpoints.n; i++) {
		const vn_checkpoint *one = &finer.c.result.checkpoints.of[i], *two = &same.c.result.checkpoints.of[i];
		const double         error = one->m.value[VN_M_NMSE];
		CU_ASSERT_STRING_EQUAL(one->name, two->name);
		CU_ASSERT_EQUAL(two->m.value[VN_M_NMSE], 0); /* one file */
		CU_ASSERT_TRUE_FATAL(two->has_floor);
		CU_ASSERT_DOUBLE_EQUAL(two->floor[VN_M_NMSE], 2 * error, 0.05 * error);
		rounded += error > 0;
	}
	CU_ASSERT_TRUE(rounded > 100);
	finish(&finer);
	finish(&same);
}

static void another_model_is_refused(void)
{
	trial t;

	record_all();
	judge_with(&t, "f32.h5", "f16.h5", VERNIER_SOURCE "/fixtures/mistral-trained");
	CU_ASSERT_EQUAL(t.st, VN_ERR_MISMATCH);
	CU_ASSERT_PTR_NOT_NULL(strstr(t.err.text, "mistral-trained is not the model that"));
	finish(&t);
}

/* A finished floor says what it was measured with. */
static void the_report_can_say_where_the_floor_is_from(void)
{
	trial t;

	record_all();
	judge_with(&t, "f32.h5", "f16.h5", LLAMA);
	CU_ASSERT_STRING_EQUAL(t.c.result.floor.from, "the reference engine in f16 on " LLAMA);
	CU_ASSERT_PTR_NOT_NULL(t.c.opened.model);
	CU_ASSERT_EQUAL(t.c.opened.policy.storage, VN_F16);
	finish(&t);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(under_a_finer_reference_the_floor_is_a_run_in_the_candidate_s_precision),
		TEST(of_two_runs_of_one_precision_both_roundings_count),
		TEST(another_model_is_refused),
		TEST(the_report_can_say_where_the_floor_is_from),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("floor_run", tests);
	return !remove_folder() || failed;
}
