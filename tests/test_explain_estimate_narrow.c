/* test_explain_estimate_narrow.c: tests compare/explain/estimate_narrow.c. */
#include "compare/explain/estimate_narrow.h"
#include "tests/narrow_help.h"

enum { BF16 = 8, F16 = 11 };

static void estimate(explained *e, vn_consumed consumed)
{
	stand_at_sum(e);
	e->t.consumed = consumed;
	CU_ASSERT_EQUAL(vn_estimate_narrow(&e->t, &e->err), VN_OK);
}

static vn_hypothesis estimated(vn_consumed consumed)
{
	explained e;

	estimate(&e, consumed);
	const vn_hypothesis h = answer_of(&e);
	CU_ASSERT_EQUAL(h.finding, VN_NARROW);
	CU_ASSERT_EQUAL(h.node, node_named(&e, "layer1.attn_residual"));
	end_explained(&e);
	return h;
}

static void the_format_and_what_is_in_it_are_found(void)
{
	for (int i = 0; i < 4; i++) {
		const bool bf16 = i & 1, whole = i & 2;
		add(bf16 ? BF16 : F16, whole);
		const vn_hypothesis h = estimated(VN_CONSUMED_UNKNOWN);
		CU_ASSERT_EQUAL(h.change.narrow.format, bf16 ? VN_FORMAT_BF16 : VN_FORMAT_F16);
		CU_ASSERT_EQUAL(h.change.narrow.whole, whole);
		CU_ASSERT_FALSE(h.capture);
	}
}

/* The run went on with other numbers, so that nothing but what was recorded is in the format. */
static void a_wrong_capture_is_rounded_alone(void)
{
	explained e;

	add(BF16, false);
	CU_ASSERT_TRUE(estimated(VN_CONSUMED_OTHERS).capture);
	add(BF16, true);
	estimate(&e, VN_CONSUMED_OTHERS);
	for (int i = 0; i < e.x.n; i++)
		CU_ASSERT_FALSE(e.x.by[i].change.narrow.whole);
	end_explained(&e);
}

/* One number of the last token has more bits than the formats. */
static void a_number_of_another_format_rules_it_out(void)
{
	explained e;

	add(BF16, false);
	sum[N - 1] = nextafterf(sum[N - 1], 9);
	estimate(&e, VN_CONSUMED_UNKNOWN);
	CU_ASSERT_EQUAL(e.x.n, 0);
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(the_format_and_what_is_in_it_are_found),
		TEST(a_wrong_capture_is_rounded_alone),
		TEST(a_number_of_another_format_rules_it_out),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("estimate_narrow", tests);
	return !remove_folder() || failed;
}
