/* test_estimate_cache.c: tests compare/estimate/estimate_cache.c. */
#include "compare/estimate/estimate.h"
#include "tests/support/attention_help.h"

enum { CALL = 16 };

/* The token that each slot holds under a mistake; -1: none. */
static int slot[TOKENS];

static void in_place(void)
{
	for (int j = 0; j < TOKENS; j++)
		slot[j] = j;
}

static void estimate_keys(explained *e, const mistake *m)
{
	make_up_inputs();
	attend_all(m, 0, CALL);
	stand_at_context(e, CALL, 0, 0);
	CU_ASSERT_EQUAL((vn_estimate_keys(&e->t), e->failed.st), VN_OK);
}

static vn_trial of_keys(const mistake *m)
{
	explained e;

	estimate_keys(&e, m);
	const vn_trial h = answer_of(&e);
	end_explained(&e);
	return h;
}

static void slots_of_other_tokens_are_found(void)
{
	vn_trial h;

	for (int j = 0; j < TOKENS; j++)
		slot[j] = j - 3;
	h = of_keys(&(mistake) { .key = slot });
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_SLOTS_MOVED);
	CU_ASSERT_EQUAL(vn_trial_constant(&h, "cache_form"), VN_CACHE_PAST);
	CU_ASSERT_EQUAL(vn_trial_constant(&h, "cache_of"), 1);
	CU_ASSERT_EQUAL(vn_trial_constant(&h, "cache_block"), 3);
	for (int j = 0; j < TOKENS; j++)
		slot[j] = j + 2 < CALL ? j + 2 : -1;
	h = of_keys(&(mistake) { .value = slot });
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_SLOTS_MOVED);
	CU_ASSERT_EQUAL(vn_trial_constant(&h, "cache_form"), VN_CACHE_NEXT);
	CU_ASSERT_EQUAL(vn_trial_constant(&h, "cache_of"), 2);
	CU_ASSERT_EQUAL(vn_trial_constant(&h, "cache_block"), 2);
}

static void exchanged_blocks_are_found(void)
{
	for (int j = 0; j < TOKENS; j++)
		slot[j] = j / 4 % 2 ? j - 4 : j + 4 < CALL ? j + 4 : -1;
	const vn_trial h = of_keys(&(mistake) { .key = slot, .value = slot });
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_BLOCKS_EXCHANGED);
	CU_ASSERT_EQUAL(vn_trial_constant(&h, "cache_of"), 0);
	CU_ASSERT_EQUAL(vn_trial_constant(&h, "cache_block"), 4);
}

/* Four blocks of four tokens, in an order of their own. */
static void a_table_of_blocks_is_read_off(void)
{
	static const int from[] = { 2, 0, 3, 1 };

	in_place();
	for (int j = 0; j < CALL; j++)
		slot[j] = from[j / 4] * 4 + j % 4;
	const vn_trial h = of_keys(&(mistake) { .key = slot, .value = slot });
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_BLOCKS_REORDERED);
	CU_ASSERT_EQUAL_FATAL(h.applied.blocks.block, 4);
	CU_ASSERT_EQUAL_FATAL(h.applied.blocks.n, 4);
	CU_ASSERT_EQUAL(h.applied.blocks.of, 0);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(h.applied.blocks.from[i], from[i]);
}

/* Seven keys of zeros have the score 0, and add seven to the sum of exponentials. */
static void keys_of_padding_are_counted(void)
{
	double    p[TOKENS], y[K];
	explained e;

	make_up_inputs();
	for (int t = 0; t < CALL; t++)
		for (int h = 0; h < H; h++) {
			const mistake none = { 0 };
			double        sum = 0;
			attend(&none, t, h, p, y);
			for (int j = 0; j <= t; j++)
				sum += exp(score_of(&none, t, h, j));
			for (int d = 0; d < K; d++)
				context[(t * H + h) * K + d] = (float)(y[d] * sum / (sum + 7));
		}
	stand_at_context(&e, CALL, 0, 0);
	CU_ASSERT_EQUAL((vn_estimate_keys(&e.t), e.failed.st), VN_OK);
	const vn_trial h = answer_of(&e);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_KEYS_OF_PADDING);
	CU_ASSERT_EQUAL(vn_trial_constant(&h, "padding"), 7);
	end_explained(&e);
}

static void other_errors_are_left_to_others(void)
{
	explained e;

	estimate_keys(&e, &(mistake) { .times = 2 });
	CU_ASSERT_EQUAL(e.x.n, 0);
	end_explained(&e);
}

/* The second step's token is cached by one slot too early, or late, and leaves a hole. Returns the
 * slots' change of the best answer. */
static vn_applied_slots cached(const int at[2])
{
	explained e;

	make_up_inputs();
	attend_all(&(mistake) { 0 }, 0, CALL);
	in_place();
	for (int i = 0; i < 2; i++) {
		slot[CALL - 1] = at[0] == CALL - 1 ? CALL : CALL - 1;
		slot[CALL] = at[0] == CALL ? CALL : -1;
		slot[CALL] = i == 1 && at[1] == CALL ? CALL + 1 : slot[CALL];
		slot[CALL + 1] = at[0] == CALL + 1 ? CALL : at[1] == CALL + 1 ? CALL + 1 : -1;
		attend_all(&(mistake) { .key = slot, .value = slot }, CALL + i, CALL + i + 1);
	}
	stand_at_context(&e, CALL, 2, 2);
	CU_ASSERT_EQUAL((vn_estimate_new_slots(&e.t), e.failed.st), VN_OK);
	const vn_trial h = answer_of(&e);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_NEW_SLOTS_MOVED);
	CU_ASSERT_EQUAL(h.applied.slots.of, 0);
	CU_ASSERT_TRUE(h.applied.later);
	end_explained(&e);
	return h.applied.slots;
}

static void tokens_that_were_cached_beside_their_slot_are_found(void)
{
	CU_ASSERT_EQUAL(cached((const int[]) { CALL - 1, CALL }).by, -1);
	CU_ASSERT_EQUAL(cached((const int[]) { CALL + 1, CALL + 2 }).by, 1);
	const vn_applied_slots newest = cached((const int[]) { CALL, CALL });
	CU_ASSERT_EQUAL(newest.by, -1);
	CU_ASSERT_TRUE(newest.newest);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(slots_of_other_tokens_are_found),
		TEST(exchanged_blocks_are_found),
		TEST(a_table_of_blocks_is_read_off),
		TEST(keys_of_padding_are_counted),
		TEST(other_errors_are_left_to_others),
		TEST(tokens_that_were_cached_beside_their_slot_are_found),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("estimate_cache", tests);
	return !remove_folder() || failed;
}
