/* test_cache_one_slot.c: tests compare/explain/cache_one_slot.c. */
#include "compare/explain/cache_slots.h"
#include "tests/support/last_query_help.h"

static int explained_as(vn_trial *best)
{
	return explained_by(vn_explain_one_slot, best);
}

/* of: keys (1), values (2). */
static void expect_slot(int slot, int of, int holds)
{
	vn_trial h;

	CU_ASSERT_FATAL(explained_as(&h) > 0);
	CU_ASSERT_TRUE(h.limit_fraction <= 1);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_CACHE_ONE_ALONE);
	CU_ASSERT_EQUAL(h.applied.one_cached.slot, slot);
	CU_ASSERT_EQUAL(h.applied.one_cached.of, of);
	CU_ASSERT_EQUAL(h.applied.one_cached.holds, holds);
}

static void put_row(float *to, int slot, const float *from, int token)
{
	memcpy(to + slot * G * K, from + token * G * K, G * K * sizeof *to);
}

static void the_key_of_another_token_is_found(void)
{
	fill();
	put_row(keys, 9, k, 4);
	expect_slot(9, 1, 4);
	fill();
	put_row(keys, CALL, k, CALL - 1); /* the newest */
	expect_slot(CALL, 1, CALL - 1);
}

/* Heads 3 to 5 read key head 1. */
static void the_key_of_one_key_head_is_said_to_be_of_these_heads_only(void)
{
	vn_trial h;

	fill();
	memcpy(keys + (9 * G + 1) * K, k + (4 * G + 1) * K, K * sizeof *keys);
	expect_slot(9, 1, 4);
	CU_ASSERT_TRUE(explained_as(&h) > 0);
	CU_ASSERT_EQUAL(h.heads, H);
	for (int i = 0; i < H; i++)
		CU_ASSERT_EQUAL(h.part[i], i >= H / G);
}

static void the_value_of_another_token_is_found(void)
{
	fill();
	put_row(values, 2, v, 3);
	expect_slot(2, 2, 3);
}

static void a_key_or_a_value_of_no_token_is_found(void)
{
	fill();
	for (int i = 0; i < G * K; i++)
		keys[9 * G * K + i] = given_number(i, 8);
	expect_slot(9, 1, VN_HOLDS_UNKNOWN);
	fill();
	for (int i = 0; i < G * K; i++)
		values[3 * G * K + i] = given_number(i, 9);
	expect_slot(3, 2, VN_HOLDS_UNKNOWN);
}

/* Heads 0 to 2 hardly read slot 9, whatever it holds. */
static void heads_that_do_not_read_a_key_of_no_token_are_not_cleared(void)
{
	vn_trial h;

	fill();
	for (int i = 0; i < H / G * K; i++)
		q[CALL * H * K + i] = 1;
	for (int d = 0; d < K; d++) {
		k[9 * G * K + d] = -12;
		keys[9 * G * K + d] = -13;
		keys[(9 * G + 1) * K + d] = given_number(d, 8);
	}
	expect_slot(9, 1, VN_HOLDS_UNKNOWN);
	CU_ASSERT_TRUE(explained_as(&h) > 0);
	CU_ASSERT_EQUAL(h.heads, 0);
}

/* Two slots, or key and value of one: another mistake. */
static void more_than_one_is_not(void)
{
	vn_trial h;

	fill();
	put_row(keys, 9, k, 4);
	put_row(keys, 3, k, 7);
	CU_ASSERT_EQUAL(explained_as(&h), 0);
	fill();
	put_row(values, 9, v, 4);
	put_row(values, 3, v, 7);
	CU_ASSERT_EQUAL(explained_as(&h), 0);
	fill();
	put_row(keys, 9, k, 4);
	put_row(values, 9, v, 4);
	CU_ASSERT_EQUAL(explained_as(&h), 0);
}

static void a_correct_step_has_none(void)
{
	vn_trial h;

	fill();
	CU_ASSERT_EQUAL(explained_as(&h), 0);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(the_key_of_another_token_is_found),
		TEST(the_key_of_one_key_head_is_said_to_be_of_these_heads_only),
		TEST(the_value_of_another_token_is_found),
		TEST(a_key_or_a_value_of_no_token_is_found),
		TEST(heads_that_do_not_read_a_key_of_no_token_are_not_cleared),
		TEST(more_than_one_is_not),
		TEST(a_correct_step_has_none),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("cache_one_slot", tests);
	return remove_folder() ? failed : 1;
}
