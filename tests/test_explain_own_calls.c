/* test_explain_own_calls.c: tests compare/explain/own_calls.c. */
#include "compare/explain/own_calls.h"
#include "tests/explain_help.h"

static void calls_of_one_length_begin_at_its_multiples(void)
{
	CU_ASSERT_EQUAL(vn_call_of(NULL, 5, 4), -1); /* the first call */
	CU_ASSERT_EQUAL(vn_call_of(NULL, 5, 5), 5);
	CU_ASSERT_EQUAL(vn_call_of(NULL, 5, 14), 10);
}

static void other_calls_are_those_of_the_recording(void)
{
	const int64_t begins[] = { -1, -1, 2, 2, 2, -1 };

	CU_ASSERT_EQUAL(vn_call_of(begins, VN_OWN_CALLS, 1), -1);
	CU_ASSERT_EQUAL(vn_call_of(begins, VN_OWN_CALLS, 4), 2);
	CU_ASSERT_EQUAL(vn_call_of(begins, VN_OWN_CALLS, 5), -1);
}

/* A run of a prompt and two steps of one token. */
static int64_t *begins_of(const char *name, int step, bool *later)
{
	explained e;

	compare_llama(&e, "R1@layer1.q_rope", false);
	stand_at(&e, name, step);
	int64_t *begins = vn_own_calls(&e.t, later);
	end_explained(&e);
	return begins;
}

static void a_prompt_and_steps_of_one_token_have_no_later_calls(void)
{
	for (int step = 0; step < 3; step++) {
		bool     later = true;
		int64_t *begins = begins_of("layer1.q_rope", step, &later);
		CU_ASSERT_PTR_NOT_NULL_FATAL(begins);
		CU_ASSERT_FALSE(later);
		for (int i = 0; i < PROMPT + step; i++)
			CU_ASSERT_EQUAL(begins[i], -1);
		free(begins);
	}
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(calls_of_one_length_begin_at_its_multiples),
		TEST(other_calls_are_those_of_the_recording),
		TEST(a_prompt_and_steps_of_one_token_have_no_later_calls),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("own_calls", tests);
	return remove_folder() ? failed : 1;
}
