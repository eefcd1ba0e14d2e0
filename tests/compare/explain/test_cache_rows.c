/* test_cache_rows.c: tests compare/explain/cache_rows.c. */
#include "compare/explain/cache_slots.h"
#include "tests/support/last_query_help.h"

enum { MOST_ANSWERS = 2 };

/* layer1.k_cache of the prompt: slot i holds the key of token token[i], none if that is NONE. */
enum { NONE = -1 };

static int explained_as(const int token[CALL], vn_trial answer[MOST_ANSWERS])
{
	const given of[] = {
		{ "layer1.q_rope", q }, { "layer1.k_rope", k }, { "layer1.v_proj", v }, { "layer1.k_cache", keys }
	};
	explained e;

	fill();
	for (int i = 0; i < CALL; i++)
		if (token[i] == NONE)
			memset(keys + i * G * K, 0, G * K * sizeof *keys);
		else
			memcpy(keys + i * G * K, k + token[i] * G * K, G * K * sizeof *keys);
	compare_given(&e, CALL, 0, of, 4);
	stand_at(&e, "layer1.k_cache", 0);
	vn_explain_cache_rows(&e.t);
	CU_ASSERT_EQUAL(e.failed.st, VN_OK);
	const int n = e.x.n;
	CU_ASSERT_FATAL(n <= MOST_ANSWERS);
	for (int i = 0; i < n; i++) {
		answer[i] = e.x.by[i];
		CU_ASSERT_TRUE(answer[i].limit_fraction <= 1);
	}
	end_explained(&e);
	return n;
}

static void expect_range(const vn_trial *h, int first, int n)
{
	CU_ASSERT_EQUAL(h->finding, VN_FINDING_CACHE_TWICE);
	CU_ASSERT_EQUAL(h->applied.changed.first, first);
	CU_ASSERT_EQUAL(h->applied.changed.n, n);
}

static void expect_slots(const vn_trial *h, vn_finding finding, int first, int n, int holds)
{
	CU_ASSERT_EQUAL(h->finding, finding);
	CU_ASSERT_EQUAL(h->applied.cached.first, first);
	CU_ASSERT_EQUAL(h->applied.cached.n, n);
	CU_ASSERT_EQUAL(h->applied.cached.holds, holds);
}

static void slots_of_zeros_are_found_the_first_and_the_last_too(void)
{
	static const struct {
		int token[CALL], first, n;
	} row[] = {
		{ { NONE, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 }, 0, 1 },
		{ { NONE, NONE, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 }, 0, 2 },
		{ { 0, 1, 2, NONE, NONE, 5, 6, 7, 8, 9, 10, 11 }, 3, 2 },
		{ { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, NONE, NONE }, 10, 2 },
		{ { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, NONE }, 11, 1 },
		{ { NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE }, 0, 12 },
	};
	vn_trial h[MOST_ANSWERS];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		CU_ASSERT_EQUAL_FATAL(explained_as(row[i].token, h), 1);
		expect_slots(h, VN_FINDING_CACHE_EMPTY, row[i].first, row[i].n, VN_HOLDS_NO_KEYS);
	}
}

static void tokens_that_are_twice_are_found(void)
{
	vn_trial h[MOST_ANSWERS];

	CU_ASSERT_EQUAL_FATAL(explained_as((int[]) { 0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10 }, h), 1);
	expect_range(h, 3, 1);
	CU_ASSERT_EQUAL_FATAL(explained_as((int[]) { 0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7 }, h), 1);
	expect_range(h, 4, 4);
	CU_ASSERT_EQUAL_FATAL(explained_as((int[]) { 0, 1, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8 }, h), 1);
	expect_range(h, 3, 3);
}

static void others_tokens_in_their_order_are_found(void)
{
	vn_trial h[MOST_ANSWERS];

	CU_ASSERT_EQUAL_FATAL(explained_as((int[]) { 0, 1, 8, 9, 4, 5, 6, 7, 8, 9, 10, 11 }, h), 1);
	expect_slots(h, VN_FINDING_CACHE_OTHER_TOKENS, 2, 2, 8);
	CU_ASSERT_EQUAL_FATAL(explained_as((int[]) { 4, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 }, h), 1);
	expect_slots(h, VN_FINDING_CACHE_OTHER_TOKENS, 0, 1, 4);
}

/* The token before may be twice; an earlier one may begin a second run, or hold this slot alone. */
static void the_last_slot_alone_has_two_answers(void)
{
	vn_trial h[MOST_ANSWERS];

	CU_ASSERT_EQUAL_FATAL(explained_as((int[]) { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10 }, h), 1);
	expect_range(h, 10, 1);
	CU_ASSERT_EQUAL_FATAL(explained_as((int[]) { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 3 }, h), 2);
	expect_range(&h[0], 3, 8);
	expect_slots(&h[1], VN_FINDING_CACHE_OTHER_TOKENS, 11, 1, 3);
}

static void a_right_cache_and_zeros_in_two_places_have_no_answer(void)
{
	vn_trial h[MOST_ANSWERS];

	CU_ASSERT_EQUAL(explained_as((int[]) { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 }, h), 0);
	CU_ASSERT_EQUAL(explained_as((int[]) { 0, NONE, 2, 3, 4, NONE, 6, 7, 8, 9, 10, 11 }, h), 0);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(slots_of_zeros_are_found_the_first_and_the_last_too),
		TEST(tokens_that_are_twice_are_found),
		TEST(others_tokens_in_their_order_are_found),
		TEST(the_last_slot_alone_has_two_answers),
		TEST(a_right_cache_and_zeros_in_two_places_have_no_answer),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("cache_rows", tests);
	return !remove_folder() || failed;
}
