/* test_explain_estimate_attention.c: tests compare/explain/estimate_attention.c. */
#include "compare/explain/estimate_attention.h"
#include "tests/attention_help.h"

enum { CALL = 18 };

/* The queries see `width` keys, and the first `early` of all. */
static void see(int width, int early)
{
	make_up_inputs();
	for (int t = 0; t < CALL; t++) {
		const mistake m = { .first = t < width ? 0 : t - width + 1, .last = t ? t : 1, .early = early };
		attend_all(&m, t, t + 1);
	}
}

static void estimate(explained *e)
{
	stand_at_context(e, CALL, 0, 0);
	CU_ASSERT_EQUAL(
		vn_estimate_window(&e->t, &(vn_hypothesis) { .node = node_named(e, "layer1.attn_context") }, &e->err), VN_OK);
}

static void the_width_of_a_window_is_found(void)
{
	static const int widths[] = { 5, 12, 17 };

	for (int i = 0; i < 3; i++) {
		explained e;
		see(widths[i], 0);
		estimate(&e);
		const vn_hypothesis h = answer_of(&e);
		CU_ASSERT_EQUAL(h.finding, VN_WINDOW);
		CU_ASSERT_EQUAL(vn_constant_of(&h, "window"), widths[i]);
		CU_ASSERT_TRUE(h.first == h.last); /* no other width fits */
		end_explained(&e);
	}
}

static void first_keys_that_stay_visible_are_counted(void)
{
	static const struct {
		int width, early;
	} of[] = { { 6, 2 }, { 4, 4 } };

	for (int i = 0; i < 2; i++) {
		explained e;
		see(of[i].width, of[i].early);
		estimate(&e);
		const vn_hypothesis h = answer_of(&e);
		CU_ASSERT_EQUAL(h.finding, VN_WINDOW_AND_SINKS);
		CU_ASSERT_EQUAL(vn_constant_of(&h, "window"), of[i].width);
		CU_ASSERT_EQUAL(vn_constant_of(&h, "sinks"), of[i].early);
		end_explained(&e);
	}
}

/* Of one of many checkpoints, only a window alone is fitted. */
static void of_many_checkpoints_first_keys_are_not_counted(void)
{
	explained e;

	see(6, 2);
	stand_at_context(&e, CALL, 0, 0);
	e.t.brief = true;
	CU_ASSERT_EQUAL(
		vn_estimate_window(&e.t, &(vn_hypothesis) { .node = node_named(&e, "layer1.attn_context") }, &e.err), VN_OK);
	CU_ASSERT_FALSE(vn_answered(&e.t));
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(the_width_of_a_window_is_found),
		TEST(first_keys_that_stay_visible_are_counted),
		TEST(of_many_checkpoints_first_keys_are_not_counted),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("estimate_attention", tests);
	return !remove_folder() || failed;
}
