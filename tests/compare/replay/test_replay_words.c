/* test_replay_words.c: tests compare/replay/replay_words.c. */
#include "compare/replay/replay_words.h"
#include "tests/support/explain_help.h"

#include <math.h>

static explained e;

/* A checkpoint of the comparison, which a test changes. */
static vn_checkpoint *at_step(const char *name, int step)
{
	return &e.compared.c.result.checkpoints.of[checkpoint_at(&e, name, step) - e.compared.c.result.checkpoints.of];
}

static vn_checkpoint *plain(void)
{
	vn_checkpoint *p = at_step("layer1.q_rope", 0);

	p->replayed = true;
	p->replay = (vn_replayed) { .local = 4e-6,
		                        .floor = 1e-6,
		                        .local_token = 2e-5,
		                        .floor_token = 1e-5,
		                        .local_max = 2e-3,
		                        .floor_max = 1e-3,
		                        .inherited = 3e-7,
		                        .gain = (double)NAN,
		                        .independent_numbers = 816,
		                        .span = 1,
		                        .charged_to = -1 };
	return p;
}

static void expect_words(const vn_checkpoint *p, const char *want)
{
	char text[VN_WORDS];
	CU_ASSERT_STRING_EQUAL(vn_replay_say_result(&e.compared.c.opened, &e.compared.c.result.checkpoints,
	                                            &e.compared.c.result.localised, p, text),
	                       want);
}

static void the_errors_are_told_in_floors(void)
{
	vn_checkpoint *p = plain();

	expect_words(p, "local error: nmse 4e-06 (4 x floor); inherited error: nmse 3e-07");
	p->replay.gain = 1.25;
	expect_words(p,
	             "local error: nmse 4e-06 (4 x floor); inherited error: nmse 3e-07, 1.2 times the error of its inputs");
	p->replay.gain = (double)NAN;
	p->replay.span = 3;
	expect_words(
		p, "local error: nmse 4e-06 (4 x floor); inherited error: nmse 3e-07; these are the errors of 3 operations "
		   "together, whose tensors in between were not recorded");
	p->replayed = false;
	expect_words(p, "");
}

/* 30 times a floor of one token, 10 times (squared: 100) of one element. */
static void a_single_token_or_element_is_told_beyond_its_limit(void)
{
	vn_checkpoint *p = plain();

	p->replay.local_token = 3e-4;
	p->replay.local_max = 1e-2;
	expect_words(
		p,
		"local error: nmse 4e-06 (4 x floor), worst token 30 x floor, worst element 10 x floor; inherited error: nmse "
		"3e-07");
}

static void wrong_captures_are_told_where_they_are_and_where_they_are_read(void)
{
	vn_checkpoint *p = plain(), *input = at_step("layer1.q_proj", 0);

	p->replay.recorder_fault = true;
	expect_words(
		p, "local error: nmse 4e-06 (4 x floor); inherited error: nmse 3e-07; captured wrongly, or changed after the "
		   "capture: the operation that reads it used the right numbers");
	p->replay.recorder_fault = false;
	p->replay.charged_to = (int)(input - e.compared.c.result.checkpoints.of);
	expect_words(p, "local error: nmse 4e-06 (4 x floor); inherited error: nmse 3e-07; the error of layer1.q_proj may "
	                "explain all of this error");
	input->replay.recorder_fault = true;
	expect_words(
		p, "local error: nmse 4e-06 (4 x floor); inherited error: nmse 3e-07; correct when recomputed from the right "
		   "values of layer1.q_proj");
	input->replay.recorder_fault = false;
}

static void an_order_is_told_with_the_axes_of_a_name_map(void)
{
	vn_checkpoint *p = plain();
	char           text[VN_WORDS];

	p->replay.columns = VN_COLUMNS_PAIRS;
	CU_ASSERT_STRING_EQUAL(
		vn_replay_say_column_order(&e.compared.c.opened, p, text),
		"its columns are in the order (freq 2), and the operation that reads it uses that order: not a mistake; "
		"declare this order in a name map with axes: \"token head (freq 2)\", to_axes: \"token head (2 freq)\"");
	p->replay.wrong_in_order = true;
	CU_ASSERT_PTR_NOT_NULL(strstr(vn_replay_say_column_order(&e.compared.c.opened, p, text),
	                              "read in that order, it is wrong too; declare this order"));
	CU_ASSERT_PTR_NOT_NULL(strstr(vn_replay_say_result(&e.compared.c.opened, &e.compared.c.result.checkpoints,
	                                                   &e.compared.c.result.localised, p, text),
	                              "; its columns are in the order (freq 2), as"));
}

/* 17 tokens of a prompt, and the second step behind it: one token that sees 19. */
static void the_products_of_a_checkpoint_have_the_sizes_of_its_step(void)
{
	vn_gemm g[VN_MAX_GEMM];

	CU_ASSERT_EQUAL_FATAL(vn_replayed_products(&e.compared.c.opened, at_step("layer1.k_proj", 0), g), 1);
	CU_ASSERT_TRUE(g[0].m == PROMPT && g[0].n == 16 && g[0].k == 48);
	CU_ASSERT_EQUAL_FATAL(vn_replayed_products(&e.compared.c.opened, at_step("layer1.attn_context", 2), g), 2);
	CU_ASSERT_TRUE(g[0].m == 1 && g[0].n == TOKENS && g[0].k == 8 && g[0].batch == 6);
	CU_ASSERT_TRUE(g[1].m == 1 && g[1].n == 8 && g[1].k == TOKENS && g[1].batch == 6);
	CU_ASSERT_EQUAL(vn_replayed_products(&e.compared.c.opened, at_step("layer1.attn_norm", 0), g), 0);
	vn_checkpoint *p = at_step("layer1.k_proj", 0);
	p->replayed = false;
	CU_ASSERT_EQUAL(vn_replayed_products(&e.compared.c.opened, p, g), 0);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(the_errors_are_told_in_floors),
		TEST(a_single_token_or_element_is_told_beyond_its_limit),
		TEST(wrong_captures_are_told_where_they_are_and_where_they_are_read),
		TEST(an_order_is_told_with_the_axes_of_a_name_map),
		TEST(the_products_of_a_checkpoint_have_the_sizes_of_its_step),
		CU_TEST_INFO_NULL,
	};
	return run_suite_of_correct("replay_words", tests, &e);
}
