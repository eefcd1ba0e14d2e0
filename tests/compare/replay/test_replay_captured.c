/* test_replay_captured.c: tests compare/replay/replay_captured.c. */
#include "tests/support/explain_help.h"

static int captured_in(const explained *e)
{
	int n = 0;
	for (int i = 0; i < e->compared.c.result.checkpoints.n; i++)
		n += e->compared.c.result.checkpoints.of[i].replay.recorder_fault;
	return n;
}

/* The previous layer's tensor was recorded, but the run continued with the right one: the
 * operations that read it are right with the reference's numbers instead of the recorded ones. */
static void a_tensor_whose_readers_used_other_numbers_was_captured_wrong(void)
{
	static const char *const reader[] = { "layer1.q_proj", "layer1.k_proj", "layer1.v_proj" };
	explained                e;

	compare_llama(&e, "P20@layer1.attn_norm");
	CU_ASSERT_EQUAL(captured_in(&e), TOKENS - PROMPT + 1); /* it alone, in each step */
	for (int step = 0; step <= TOKENS - PROMPT; step++) {
		const vn_checkpoint *p = checkpoint_at(&e, "layer1.attn_norm", step);
		CU_ASSERT_TRUE(p->replay.recorder_fault);
		for (int i = 0; i < 3; i++)
			CU_ASSERT_FALSE(checkpoint_at(&e, reader[i], step)->fails); /* they are the reference's numbers */
	}
	/* the first reader shows it, and is charged to the capture */
	CU_ASSERT_EQUAL(checkpoint_at(&e, "layer1.q_proj", 0)->replay.charged_to,
	                (int)(checkpoint_at(&e, "layer1.attn_norm", 0) - e.compared.c.result.checkpoints.of));
	finish(&e.compared);
}

static void a_mistake_consumed_as_recorded_is_no_capture(void)
{
	explained e;

	compare_llama(&e, "R2.1e4@layer1.q_rope");
	CU_ASSERT_EQUAL(captured_in(&e), 0);
	finish(&e.compared);
	compare_llama(&e, NULL);
	CU_ASSERT_EQUAL(captured_in(&e), 0);
	finish(&e.compared);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(a_tensor_whose_readers_used_other_numbers_was_captured_wrong),
		TEST(a_mistake_consumed_as_recorded_is_no_capture),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("wrong captures", tests);
	return !remove_folder() || failed;
}
