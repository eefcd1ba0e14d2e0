/* test_recompute.c: tests compare/replay/recompute.c. */
#include "tests/support/attention_help.h"

enum { CALL = 6, STEPS = 2 };

static float x[GIVEN_MOST * H * K], y[GIVEN_MOST * H * K];

static void stand_with(explained *e, const char *point, int step)
{
	const given of[] = { { "layer1.q_proj", x }, { "layer1.q_rope", y } };

	for (int i = 0; i < TOKENS * H * K; i++)
		y[i] = x[i] = given_number(i, 1);
	for (int i = 0; i < TOKENS * H; i++)
		rotate_row(y + i * K, i / H, 500000);
	compare_given(e, CALL, STEPS, of, 2);
	stand_at(e, point, step);
}

static bool has_checkpoint(const explained *e, const char *name)
{
	return vn_recompute_has(e->t.recompute, vn_plan_find(e->t.site->plan, name));
}

static void what_was_captured_is_taken_but_for_the_checkpoint_itself(void)
{
	explained e;

	stand_with(&e, "layer1.q_rope", 0);
	CU_ASSERT_TRUE(has_checkpoint(&e, "layer1.q_proj"));
	CU_ASSERT_FALSE(has_checkpoint(&e, "layer1.q_rope")); /* the checkpoint itself */
	CU_ASSERT_FALSE(has_checkpoint(&e, "layer1.k_proj"));
	end_explained(&e);
}

/* Of steps behind the checkpoint's, a wrong capture does not matter. */
static void a_wrong_capture_is_not_taken(void)
{
	explained e;

	stand_with(&e, "layer1.q_rope", 1);
	vn_checkpoint *points = e.compared.c.result.checkpoints.of;
	vn_checkpoint *later = &points[checkpoint_at(&e, "layer1.q_proj", 2) - points],
				  *earlier = &points[checkpoint_at(&e, "layer1.q_proj", 0) - points];
	later->replay.recorder_fault = true;
	CU_ASSERT_TRUE(has_checkpoint(&e, "layer1.q_proj"));
	earlier->replay.recorder_fault = true;
	CU_ASSERT_FALSE(has_checkpoint(&e, "layer1.q_proj"));
	end_explained(&e);
}

static void the_site_is_that_of_its_step(void)
{
	explained e;
	double    is;

	stand_with(&e, "layer1.q_rope", 2);
	const vn_site *s = e.t.site;
	CU_ASSERT_EQUAL(s->first, CALL + 1);
	CU_ASSERT_EQUAL(s->tokens, CALL + STEPS);
	CU_ASSERT_EQUAL(s->target, vn_plan_find(s->plan, "layer1.q_rope"));
	CU_ASSERT_FALSE(s->sampled);
	CU_ASSERT_TRUE(s->n_span == 1 && s->span[0] == node_named(&e, "layer1.q_rope"));
	CU_ASSERT_EQUAL_FATAL(vn_shape_count(&s->cand.shape), H * K);
	for (int i = 0; i < H * K; i++) {
		is = vn_tensor_number(&s->cand, i);
		CU_ASSERT_EQUAL(is, (double)y[(CALL + 1) * H * K + i]);
	}
	end_explained(&e);
}

/* The projections of queries and all before them were not recorded: the span goes back
 * to the embedding. */
static void a_span_goes_back_to_what_was_captured(void)
{
	const given of[] = { { "layer1.q_rope", y }, { "layer0.output", x } };
	explained   e;

	compare_given(&e, CALL, 0, of, 2);
	stand_at(&e, "layer1.q_rope", 0);
	CU_ASSERT_EQUAL(e.t.site->n_span, 3); /* itself, the projection and the norm */
	end_explained(&e);
}

/* A run of a prompt and two steps of one token. */
static void a_prompt_and_steps_of_one_token_have_no_later_calls(void)
{
	for (int step = 0; step < 3; step++) {
		explained e;

		compare_llama(&e, "R1@layer1.q_rope");
		stand_at(&e, "layer1.q_rope", step);
		CU_ASSERT_FALSE(e.t.site->begins_later);
		for (int64_t i = 0; i < e.t.site->tokens; i++)
			CU_ASSERT_EQUAL(e.t.site->begins[i], -1);
		end_explained(&e);
	}
}

static void what_is_no_value_of_the_plan_cannot_be_recomputed(void)
{
	explained e;
	int       point;

	stand_with(&e, "layer1.q_rope", 0);
	point = e.x.checkpoint;
	const char *name = e.compared.c.result.checkpoints.of[point].name;
	e.compared.c.result.checkpoints.of[point].name = "unrelated";
	CU_ASSERT_EQUAL(vn_recompute_at(e.t.recompute, point, &e.err), VN_ERR_UNSUPPORTED);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.err.text, "unrelated cannot be recomputed"));
	e.compared.c.result.checkpoints.of[point].name = name;
	CU_ASSERT_EQUAL(vn_recompute_at(e.t.recompute, point, &e.err), VN_OK);
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(what_was_captured_is_taken_but_for_the_checkpoint_itself),
		TEST(a_wrong_capture_is_not_taken),
		TEST(the_site_is_that_of_its_step),
		TEST(a_span_goes_back_to_what_was_captured),
		TEST(a_prompt_and_steps_of_one_token_have_no_later_calls),
		TEST(what_is_no_value_of_the_plan_cannot_be_recomputed),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("recompute", tests);
	return !remove_folder() || failed;
}
