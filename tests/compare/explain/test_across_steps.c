/* test_across_steps.c: tests compare/explain/across_steps.c. */
#include "compare/explain/explain.h"
#include "tests/support/attention_help.h"

/* layer1.q_rope of the llama, in a prompt and two later steps. */
enum { CALL = 12, STEPS = 2, S = CALL + STEPS };

static float x[S * H * K], y[S * H * K];

/* Queries of each step are rotated with its theta, and multiplied by its factor. */
static void rotate(const double theta[1 + STEPS], const double factor[1 + STEPS])
{
	for (int i = 0; i < S * H * K; i++)
		y[i] = x[i] = given_number(i, 1);
	for (int i = 0; i < S * H; i++) {
		const int t = i / H, step = t < CALL ? 0 : 1 + t - CALL;
		rotate_row(y + i * K, t, theta[step]);
		for (int d = 0; d < K; d++)
			y[i * K + d] *= (float)factor[step];
	}
}

static void explain_given(explained *e, const given *of, int n)
{
	*e = (explained) { .compared.o = { .model = GIVEN_MODEL,
		                               .replay = VN_REPLAY_ALWAYS,
		                               .explain = &vn_catalogue_explainer,
		                               .threads = 1 } };
	CU_ASSERT_EQUAL_FATAL(record_given("given.h5", CALL, STEPS, of, n, &e->err), VN_OK);
	judge(&e->compared, "given.h5", "given.h5", NULL, LOOSE);
	CU_ASSERT_EQUAL_FATAL(e->compared.st, VN_OK);
	CU_ASSERT_PTR_NOT_NULL_FATAL(e->compared.c.result.why);
}

static void explain(explained *e)
{
	explain_given(e, (const given[]) { { "layer1.q_proj", x }, { "layer1.q_rope", y } }, 2);
}

/* The explanation of the rotation in a step; NULL: it is no origin. */
static const vn_findings *of_step(const explained *e, int step)
{
	const vn_all_findings *why = e->compared.c.result.why;
	const int              point = (int)(checkpoint_at(e, "layer1.q_rope", step) - e->compared.c.result.checkpoints.of);

	for (int i = 0; i < why->n; i++)
		if (why->of[i].checkpoint == point)
			return &why->of[i];
	return NULL;
}

static const double right[] = { 500000, 500000, 500000 }, once[] = { 1, 1, 1 };

static void a_mistake_of_all_steps_has_nothing_against_it(void)
{
	explained e;

	rotate((const double[]) { 10000, 10000, 10000 }, once);
	explain(&e);
	for (int step = 0; step <= STEPS; step++) {
		const vn_findings *w = of_step(&e, step);
		CU_ASSERT_FATAL(w && w->n_fit > 0);
		CU_ASSERT_STRING_EQUAL(w->by[0].id, "R2.1e4");
		CU_ASSERT_EQUAL(w->by[0].speaks_against, VN_NOTHING_AGAINST);
	}
	finish(&e.compared);
}

static void a_step_that_came_out_right_speaks_against_it(void)
{
	explained e;

	rotate((const double[]) { 10000, 500000, 500000 }, once);
	explain(&e);
	const vn_findings *w = of_step(&e, 0);
	CU_ASSERT_FATAL(w && w->n_fit > 0);
	CU_ASSERT_STRING_EQUAL(w->by[0].id, "R2.1e4");
	CU_ASSERT_EQUAL(w->by[0].speaks_against, VN_RIGHT_THERE);
	CU_ASSERT_EQUAL(w->by[0].against_step, 1);
	CU_ASSERT_FALSE(w->by[0].refuted); /* the engine may use other code there */
	CU_ASSERT_PTR_NULL(of_step(&e, 1));
	finish(&e.compared);
}

/* For a single token, another theta looks like an offset. The steps together show that it is
 * not. */
static void steps_of_one_token_agree_on_their_number(void)
{
	explained e;

	rotate((const double[]) { 500000, 123000, 123000 }, once);
	explain(&e);
	for (int step = 1; step <= STEPS; step++) {
		const vn_findings *w = of_step(&e, step);
		CU_ASSERT_FATAL(w && w->n_fit > 0);
		CU_ASSERT_EQUAL(w->by[0].finding, VN_FINDING_THETA_FROM); /* the first call is right */
		CU_ASSERT_EQUAL(vn_trial_constant(&w->by[0], "other_theta"), 123000);
	}
	finish(&e.compared);
}

/* Queries have another theta in each step, so the steps refute each other's answers; keys have a
 * factor. */
static void an_answer_refuted_at_one_point_does_not_show_at_the_next(void)
{
	static float keys[2][S * G * K];
	int          refuted[2] = { 0 };
	explained    e;

	rotate((const double[]) { 500000, 123000, 77000 }, once);
	for (int i = 0; i < S * G * K; i++)
		keys[0][i] = keys[1][i] = given_number(i, 2);
	for (int i = 0; i < S * G; i++) {
		rotate_row(keys[1] + i * K, i / G, right[0]);
		for (int d = 0; d < K; d++)
			keys[1][i * K + d] *= i / G < CALL ? 1 : 1.5f;
	}
	explain_given(&e,
	              (const given[]) { { "layer1.q_proj", x },
	                                { "layer1.k_proj", keys[0] },
	                                { "layer1.q_rope", y },
	                                { "layer1.k_rope", keys[1] } },
	              4);
	const vn_all_findings *why = e.compared.c.result.why;
	for (int i = 0; i < why->n; i++)
		for (int at = 0; at < why->of[i].n; at++)
			refuted[strstr(e.compared.c.result.checkpoints.of[why->of[i].checkpoint].name, "k_rope") != NULL] +=
				why->of[i].by[at].refuted;
	CU_ASSERT_TRUE(refuted[0] > 0);
	CU_ASSERT_EQUAL(refuted[1], 0);
	finish(&e.compared);
}

static void a_factor_of_each_step_is_right_and_told_to_differ(void)
{
	explained e;

	rotate(right, (const double[]) { 1, 1.5, 1.7 });
	explain(&e);
	for (int step = 1; step <= STEPS; step++) {
		const vn_findings *w = of_step(&e, step);
		CU_ASSERT_FATAL(w && w->n_fit > 0);
		CU_ASSERT_EQUAL(w->by[0].finding, VN_FINDING_FACTOR);
		CU_ASSERT_DOUBLE_EQUAL(w->by[0].applied.result.number, step == 1 ? 1.5 : 1.7, 1e-6);
		CU_ASSERT_EQUAL(w->by[0].speaks_against, VN_ANOTHER_NUMBER);
		CU_ASSERT_EQUAL(w->by[0].against_step, 3 - step);
	}
	finish(&e.compared);
}

/* In later calls, a context times four is that of values times four. */
static void a_factor_of_later_contexts_may_be_one_of_cached_values(void)
{
	explained e;
	int       told = 0;

	make_up_inputs();
	attend_all(&(mistake) { 0 }, 0, S);
	for (int i = CALL * H * K; i < S * H * K; i++)
		context[i] *= 4;
	explain_given(&e,
	              (const given[]) { { "layer1.q_rope", q },
	                                { "layer1.k_rope", k },
	                                { "layer1.v_proj", v },
	                                { "layer1.attn_context", context } },
	              4);
	const vn_all_findings *why = e.compared.c.result.why;
	for (int i = 0; i < why->n; i++)
		for (int at = 0; at < why->of[i].n_alias; at++) {
			const vn_trial *h = &why->of[i].by[at];
			told += h->finding == VN_FINDING_CACHE_SCALED ? h->applied.changed.number == 4
			        : h->finding == VN_FINDING_FACTOR     ? h->applied.result.number == 4
			                                              : 0;
		}
	CU_ASSERT_EQUAL(told, 2 * STEPS); /* both, in each step */
	finish(&e.compared);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(a_mistake_of_all_steps_has_nothing_against_it),
		TEST(a_step_that_came_out_right_speaks_against_it),
		TEST(steps_of_one_token_agree_on_their_number),
		TEST(an_answer_refuted_at_one_point_does_not_show_at_the_next),
		TEST(a_factor_of_each_step_is_right_and_told_to_differ),
		TEST(a_factor_of_later_contexts_may_be_one_of_cached_values),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("across_steps", tests);
	return !remove_folder() || failed;
}
