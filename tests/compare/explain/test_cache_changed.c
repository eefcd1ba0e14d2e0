/* test_cache_changed.c: tests compare/explain/cache_changed.c. */
#include "compare/explain/cache_slots.h"
#include "tests/support/last_query_help.h"

static int explained_as(vn_trial *best)
{
	return explained_by(vn_explain_changed_slots, best);
}

static vn_applied_changed change_found(vn_finding finding)
{
	vn_trial h;

	CU_ASSERT_FATAL(explained_as(&h) > 0);
	CU_ASSERT_TRUE(h.limit_fraction <= 1);
	CU_ASSERT_EQUAL(h.finding, finding);
	return h.applied.changed;
}

static void keys_of_the_prompt_that_are_scaled_are_found(void)
{
	fill();
	for (int i = 0; i < CALL * G * K; i++)
		keys[i] *= 0.25F;
	const vn_applied_changed c = change_found(VN_FINDING_CACHE_SCALED);
	CU_ASSERT_EQUAL(c.slots, VN_SLOTS_FIRST_CALL);
	CU_ASSERT_EQUAL(c.of, 1);
	CU_ASSERT_EQUAL(c.number, 0.25);
}

/* Heads 3 to 5 read key head 1. */
static void values_of_one_key_head_are_said_to_be_of_these_heads_only(void)
{
	vn_trial h;

	fill();
	for (int j = 0; j < CALL; j++)
		for (int d = 0; d < K; d++)
			values[(j * G + 1) * K + d] *= 3;
	CU_ASSERT_FATAL(explained_as(&h) > 0);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_CACHE_SCALED);
	CU_ASSERT_EQUAL(h.applied.changed.number, 3);
	CU_ASSERT_EQUAL(h.heads, H);
	for (int i = 0; i < H; i++)
		CU_ASSERT_EQUAL(h.part[i], i >= GROUP);
}

/* Writes x, quantised by a scale for each token and head, to `to`; read: by that scale again. */
static void quantise(const float *x, bool read, float *to)
{
	for (int i = 0; i < CALL * G; i++) {
		double most = 0;
		for (int d = 0; d < K; d++)
			most = fmax(most, fabs((double)x[i * K + d]));
		for (int d = 0; d < K; d++)
			to[i * K + d] = (float)(nearbyint((double)x[i * K + d] / most * 127) * (read ? most / 127 : 1));
	}
}

static void keys_that_are_read_without_the_scale_of_int8_are_found(void)
{
	for (int both = 0; both < 2; both++) {
		fill();
		/* so that a query does not attend to one key alone, as it would to keys of many sizes */
		for (int i = 0; i < H * K; i++)
			q[CALL * H * K + i] /= 100;
		quantise(k, false, keys);
		if (both) /* values are read as they should be */
			quantise(v, true, values);
		const vn_applied_changed c = change_found(VN_FINDING_CACHE_UNSCALED);
		CU_ASSERT_EQUAL(c.slots, VN_SLOTS_FIRST_CALL);
		CU_ASSERT_EQUAL(c.of, 1);
		CU_ASSERT_EQUAL(c.format, VN_FORMAT_INT8);
		CU_ASSERT_EQUAL(c.number, both);
	}
}

static void empty_slots_of_one_key_head_are_found(int first, int n)
{
	vn_trial h;

	fill();
	for (int j = first; j < first + n; j++)
		for (int d = 0; d < K; d++)
			keys[j * G * K + d] = values[j * G * K + d] = 0;
	CU_ASSERT_FATAL(explained_as(&h) > 0);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_CACHE_PART_EMPTY);
	CU_ASSERT_EQUAL(h.applied.changed.first, first);
	CU_ASSERT_EQUAL(h.applied.changed.n, n);
	CU_ASSERT_TRUE(h.part[0] && !h.part[GROUP]);
}

static void empty_slots_are_found_in_a_block_and_in_any_run(void)
{
	empty_slots_of_one_key_head_are_found(4, 4);
	empty_slots_of_one_key_head_are_found(3, 5);
}

static void blocks_whose_keys_are_exchanged_are_found(void)
{
	fill();
	memcpy(keys, k + 8 * G * K, 4 * G * K * sizeof *keys);
	memcpy(keys + 8 * G * K, k, 4 * G * K * sizeof *keys);
	const vn_applied_changed c = change_found(VN_FINDING_CACHE_EXCHANGED);
	CU_ASSERT_EQUAL(c.of, 1);
	CU_ASSERT_EQUAL(c.first, 0);
	CU_ASSERT_EQUAL(c.n, 4);
	CU_ASSERT_EQUAL(c.number, 8);
}

static void a_token_that_is_cached_twice_is_found(void)
{
	fill();
	times[CALL] = 2;
	CU_ASSERT_EQUAL(change_found(VN_FINDING_CACHE_TWICE).slots, VN_SLOTS_NEWEST);
	fill();
	times[CALL - 1] = 2;
	const vn_applied_changed c = change_found(VN_FINDING_CACHE_TWICE);
	CU_ASSERT_EQUAL(c.slots, VN_SLOTS_RANGE);
	CU_ASSERT_EQUAL(c.first, CALL - 1);
	CU_ASSERT_EQUAL(c.n, 1);
}

/* The step's token is written over an earlier one, or where no query reads, and its own slot is
 * empty. */
static void a_token_that_is_cached_far_from_its_slot_is_found(void)
{
	const size_t row = G * K * sizeof *keys;
	vn_trial     h;

	fill();
	memcpy(keys + 2 * G * K, k + CALL * G * K, row);
	memcpy(values + 2 * G * K, v + CALL * G * K, row);
	memset(keys + CALL * G * K, 0, row);
	memset(values + CALL * G * K, 0, row);
	CU_ASSERT_FATAL(explained_as(&h) > 0);
	CU_ASSERT_TRUE(h.limit_fraction <= 1);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_NEW_SLOTS_MOVED);
	CU_ASSERT_EQUAL(vn_trial_mistake(&h), VN_MISTAKE_C1_EARLY);
	CU_ASSERT_EQUAL(h.applied.slots.by, 2 - CALL);
	CU_ASSERT_EQUAL(h.applied.slots.of, 0);
}

static void a_right_cache_and_one_with_other_keys_have_no_answer(void)
{
	vn_trial h;

	fill();
	CU_ASSERT_EQUAL(explained_as(&h), 0);
	for (int i = 0; i < CALL * G * K; i++)
		keys[i] = given_number(i, 9);
	CU_ASSERT_EQUAL(explained_as(&h), 0);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(keys_of_the_prompt_that_are_scaled_are_found),
		TEST(values_of_one_key_head_are_said_to_be_of_these_heads_only),
		TEST(keys_that_are_read_without_the_scale_of_int8_are_found),
		TEST(empty_slots_are_found_in_a_block_and_in_any_run),
		TEST(blocks_whose_keys_are_exchanged_are_found),
		TEST(a_token_that_is_cached_twice_is_found),
		TEST(a_token_that_is_cached_far_from_its_slot_is_found),
		TEST(a_right_cache_and_one_with_other_keys_have_no_answer),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("cache_changed", tests);
	return !remove_folder() || failed;
}
