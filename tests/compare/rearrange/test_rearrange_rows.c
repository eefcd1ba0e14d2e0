/* test_rearrange_rows.c: tests compare/rearrange/rearrange_rows.c. */
#include "compare/rearrange/rearrange.h"
#include "tests/support/projection_help.h"

/* Tries rows at q_proj. Returns the number of answers, at most one. */
static int tried(vn_trial *h)
{
	const given of[] = {
		{ "layer0.q_proj", other }, { "layer0.output", input }, { "layer1.attn_norm", x }, { "layer1.q_proj", q }
	};
	explained e;

	compare_given(&e, T, 0, of, 4);
	stand_at(&e, "layer1.q_proj", 0);
	CU_ASSERT_EQUAL((vn_rearrange_rows(&e.t), e.failed.st), VN_OK);
	const int n = e.x.n;
	*h = n ? e.x.by[0] : (vn_trial) { 0 };
	CU_ASSERT_TRUE(n == 0 || h->applied.kind == VN_BY_RESULT);
	end_explained(&e);
	return n;
}

static void is_list(const vn_trial *h, int n, const int *list)
{
	CU_ASSERT_EQUAL_FATAL(h->applied.result.n, n);
	for (int i = 0; i < n; i++)
		CU_ASSERT_EQUAL(h->applied.result.list[i], list[i]);
}

static void rows_of_zeros_were_not_written(void)
{
	vn_trial h;

	fill();
	memset(q + 2 * N, 0, 3 * N * sizeof *q);
	memset(q + 9 * N, 0, 1 * N * sizeof *q);
	CU_ASSERT_EQUAL(tried(&h), 1);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_PARTLY_ZERO);
	CU_ASSERT_TRUE(h.limit_fraction <= 1);
	CU_ASSERT_STRING_EQUAL(h.recorded_instead, "");
	is_list(&h, 4, (const int[]) { 2, 4, 9, 9 });
}

static void rows_with_the_bits_of_another_tensor_hold_it(void)
{
	vn_trial h;

	fill();
	memcpy(q + 4 * N, x + 4 * N, 8 * N * sizeof *q);
	CU_ASSERT_EQUAL(tried(&h), 1);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_PARTLY_OTHER);
	CU_ASSERT_TRUE(h.limit_fraction <= 1);
	CU_ASSERT_STRING_EQUAL(h.recorded_instead, "layer1.attn_norm");
	is_list(&h, 2, (const int[]) { 4, 11 });
	/* not if they are another row's: of the same token only */
	fill();
	memcpy(q + 4 * N, x + 3 * N, 8 * N * sizeof *q);
	CU_ASSERT_EQUAL(tried(&h), 0);
	/* not if that tensor is wrong itself: the same mistake may have made both */
	fill();
	memcpy(q + 4 * N, other + 4 * N, 8 * N * sizeof *q);
	CU_ASSERT_EQUAL(tried(&h), 0);
}

static void after_four_runs_the_rest_is_counted(void)
{
	vn_trial h;

	fill();
	for (int t = 0; t < T; t += 2)
		memset(q + t * N, 0, N * sizeof *q);
	CU_ASSERT_EQUAL(tried(&h), 1);
	is_list(&h, 8, (const int[]) { 0, 0, 2, 2, 4, 4, 6, 6 });
	CU_ASSERT_TRUE(h.applied.result.more);
}

static void channels_of_zeros_are_told(void)
{
	vn_trial h;

	fill();
	for (int t = 0; t < T; t++)
		for (int c = 30; c < 34; c++)
			q[t * N + c] = 0;
	CU_ASSERT_EQUAL(tried(&h), 1);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_CHANNELS_ZERO);
	CU_ASSERT_TRUE(h.limit_fraction <= 1);
	CU_ASSERT_EQUAL(h.applied.result.number, N);
	is_list(&h, 2, (const int[]) { 30, 33 });
}

/* Three rows may be 0 for other reasons; all rows are no part; correct rows are no error. */
static void few_rows_all_rows_and_none_are_no_tile(void)
{
	vn_trial h;

	fill();
	CU_ASSERT_EQUAL(tried(&h), 0);
	memset(q + 2 * N, 0, 3 * N * sizeof *q);
	CU_ASSERT_EQUAL(tried(&h), 0);
	memset(q, 0, sizeof q);
	CU_ASSERT_EQUAL(tried(&h), 0);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(rows_of_zeros_were_not_written),         TEST(rows_with_the_bits_of_another_tensor_hold_it),
		TEST(after_four_runs_the_rest_is_counted),    TEST(channels_of_zeros_are_told),
		TEST(few_rows_all_rows_and_none_are_no_tile), CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("rearranged rows", tests);
	return !remove_folder() || failed;
}
