/* test_estimate_attention.c: tests compare/estimate/estimate_attention.c. */
#include "compare/estimate/estimate.h"
#include "tests/support/attention_help.h"

/* ---- a window -------------------------------------------------------------------------------- */

enum { WINDOW_CALL = 18 };

/* The queries see `width` keys, and the first `early` of all. */
static void make_window(int width, int early)
{
	make_up_inputs();
	for (int t = 0; t < WINDOW_CALL; t++) {
		const mistake m = { .first = t < width ? 0 : t - width + 1, .last = t ? t : 1, .early = early };
		attend_all(&m, t, t + 1);
	}
}

static void estimate(explained *e)
{
	stand_at_context(e, WINDOW_CALL, 0, 0);
	CU_ASSERT_EQUAL(
		(vn_estimate_window(&e->t, &(vn_trial) { .node = node_named(e, "layer1.attn_context") }), e->failed.st), VN_OK);
}

static void the_width_of_a_window_is_found(void)
{
	static const int widths[] = { 5, 12, 17 };

	for (int i = 0; i < 3; i++) {
		explained e;
		make_window(widths[i], 0);
		estimate(&e);
		const vn_trial h = answer_of(&e);
		CU_ASSERT_EQUAL(h.finding, VN_FINDING_WINDOW);
		CU_ASSERT_EQUAL(vn_trial_constant(&h, "window"), widths[i]);
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
		make_window(of[i].width, of[i].early);
		estimate(&e);
		const vn_trial h = answer_of(&e);
		CU_ASSERT_EQUAL(h.finding, VN_FINDING_WINDOW_AND_SINKS);
		CU_ASSERT_EQUAL(vn_trial_constant(&h, "window"), of[i].width);
		CU_ASSERT_EQUAL(vn_trial_constant(&h, "sinks"), of[i].early);
		end_explained(&e);
	}
}

/* If a checkpoint is one of many, only a window by itself is fitted. */
static void of_many_checkpoints_first_keys_are_not_counted(void)
{
	explained e;

	make_window(6, 2);
	stand_at_context(&e, WINDOW_CALL, 0, 0);
	e.t.brief = true;
	CU_ASSERT_EQUAL(
		(vn_estimate_window(&e.t, &(vn_trial) { .node = node_named(&e, "layer1.attn_context") }), e.failed.st), VN_OK);
	CU_ASSERT_FALSE(vn_case_answered(&e.t));
	end_explained(&e);
}

/* ---- mistakes that no constant expresses ----------------------------------------------------- */

enum { CALL = 14 };

/* The best answer at a step, whose rows make this mistake; decode: steps behind the prompt. */
static vn_trial estimated(const mistake *m, int decode, int step)
{
	const mistake none = { 0 };
	explained     e;

	make_up_inputs();
	attend_all(&none, 0, CALL + decode);
	attend_all(m, step ? CALL + step - 1 : 0, step ? CALL + step : CALL);
	stand_at_context(&e, CALL, decode, step);
	CU_ASSERT_EQUAL((vn_estimate_attend(&e.t), e.failed.st), VN_OK);
	const vn_trial h = answer_of(&e);
	CU_ASSERT_EQUAL(h.applied.kind, VN_BY_ATTEND);
	end_explained(&e);
	return h;
}

/* The second step behind a prompt. */
static vn_finding finding_of_seen(const mistake *m)
{
	const mistake none = { 0 };
	explained     e;

	make_up_inputs();
	attend_all(&none, 0, CALL + 2);
	attend_all(m, CALL + 1, CALL + 2);
	stand_at_context(&e, CALL, 2, 2);
	CU_ASSERT_EQUAL((vn_estimate_seen_keys(&e.t), e.failed.st), VN_OK);
	const vn_trial h = answer_of(&e);
	end_explained(&e);
	return h.finding;
}

static void what_a_single_query_sees_is_told(void)
{
	CU_ASSERT_EQUAL(finding_of_seen(&(mistake) { .first = CALL + 1, .last = CALL + 1 }), VN_FINDING_CALLS_ALONE);
	CU_ASSERT_EQUAL(finding_of_seen(&(mistake) { .first = 0, .last = CALL - 1 }), VN_FINDING_NOTHING_APPENDED);
	CU_ASSERT_EQUAL(finding_of_seen(&(mistake) { .first = CALL + 1, .last = CALL, .early = 1 }),
	                VN_FINDING_FIRST_KEY_ALONE);
	CU_ASSERT_EQUAL(finding_of_seen(&(mistake) { .times = 1e6 }), VN_FINDING_LARGEST_ALONE);
}

static void sinks_and_caps_are_told_apart(void)
{
	vn_trial h = estimated(&(mistake) { .plus = 1 }, 0, 0);

	CU_ASSERT_EQUAL(h.finding, VN_FINDING_SUM_PLUS);
	h = estimated(&(mistake) { .sink = 1e-300 }, 0, 0); /* a score of 0 */
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_SOFTMAX_SINK);
	CU_ASSERT_EQUAL(h.applied.attend.number, 0);
	h = estimated(&(mistake) { .cap = 15 }, 0, 0);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_SCORE_CAP);
	CU_ASSERT_EQUAL(h.applied.attend.number, 15);
}

/* Number of significant bits, including the leading one. */
static double rounded(double x, int bits)
{
	int          e;
	const double m = frexp(x, &e);
	return ldexp(rint(ldexp(m, bits)), e - bits);
}

static double bf16(double x)
{
	return rounded(x, 8);
}

static double f16(double x)
{
	return rounded(x, 11);
}

static void what_was_rounded_to_which_format_is_told(void)
{
	vn_trial h = estimated(&(mistake) { .score = bf16 }, 0, 0);

	CU_ASSERT_EQUAL(h.finding, VN_FINDING_SOFTMAX_ROUNDED);
	CU_ASSERT_EQUAL(h.applied.attend.scores, VN_FORMAT_BF16);
	CU_ASSERT_EQUAL(h.applied.attend.probs, VN_FORMAT_NONE);
	h = estimated(&(mistake) { .prob = bf16 }, 0, 0);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_PROBS_ROUNDED);
	CU_ASSERT_EQUAL(h.applied.attend.probs, VN_FORMAT_BF16);
	h = estimated(&(mistake) { .score = f16, .prob = f16 }, 0, 0);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_SOFTMAX_ROUNDED);
	CU_ASSERT_EQUAL(h.applied.attend.scores, VN_FORMAT_F16);
	CU_ASSERT_EQUAL(h.applied.attend.probs, VN_FORMAT_F16);
}

/* A prompt in calls of five tokens, recorded as one. alone: each call sees only its own keys; else
 * each call sees the keys that its tokens would see if their positions began at 0. */
static vn_trial of_calls(bool alone)
{
	const mistake none = { 0 };
	explained     e;

	make_up_inputs();
	attend_all(&none, 0, CALL);
	for (int t = 5; t < CALL; t++) {
		const mistake m = { .first = alone ? t - t % 5 : CALL, .last = alone ? t : 0, .early = alone ? 0 : t % 5 + 1 };
		attend_all(&m, t, t + 1);
	}
	stand_at_context(&e, CALL, 0, 0);
	CU_ASSERT_EQUAL((vn_estimate_attend(&e.t), e.failed.st), VN_OK);
	const vn_trial h = answer_of(&e);
	CU_ASSERT_EQUAL(h.applied.attend.call, 5);
	end_explained(&e);
	return h;
}

static void where_a_call_began_is_read_off(void)
{
	CU_ASSERT_EQUAL(of_calls(true).finding, VN_FINDING_CALLS_ALONE);
	CU_ASSERT_EQUAL(of_calls(false).finding, VN_FINDING_MASK_FROM_CALL);
}

/* In a prompt in calls of five tokens, recorded as one, later calls do not see keys 1 and 2. */
static void keys_that_later_calls_do_not_see_are_found(void)
{
	const mistake none = { 0 };
	explained     e;

	make_up_inputs();
	attend_all(&none, 0, CALL);
	for (int t = 5; t < CALL; t++)
		attend_all(&(mistake) { .first = 3, .last = t, .early = 1 }, t, t + 1);
	stand_at_context(&e, CALL, 0, 0);
	CU_ASSERT_EQUAL((vn_estimate_attend(&e.t), e.failed.st), VN_OK);
	const vn_trial h = answer_of(&e);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_CALLS_UNSEEN);
	CU_ASSERT_EQUAL(h.applied.attend.number, 1);
	CU_ASSERT_EQUAL(h.applied.attend.unseen, 2);
	end_explained(&e);
}

/* A step after the prompt with keys and values from a cache in bfloat16. */
static void a_rounded_cache_is_asked_of_later_calls(void)
{
	const mistake none = { 0 };
	float         key[TOKENS * G * K], value[TOKENS * G * K];
	explained     e;

	make_up_inputs();
	memcpy(key, k, sizeof key);
	memcpy(value, v, sizeof value);
	attend_all(&none, 0, CALL);
	for (int i = 0; i < TOKENS * G * K; i++) {
		k[i] = (float)bf16((double)k[i]);
		v[i] = (float)bf16((double)v[i]);
	}
	attend_all(&none, CALL, CALL + 1);
	memcpy(k, key, sizeof key);
	memcpy(v, value, sizeof value);
	stand_at_context(&e, CALL, 1, 1);
	CU_ASSERT_EQUAL((vn_estimate_attend(&e.t), e.failed.st), VN_OK);
	const vn_trial h = answer_of(&e);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_CACHE_ROUNDED);
	CU_ASSERT_EQUAL(h.applied.attend.cache, VN_FORMAT_BF16);
	CU_ASSERT_TRUE(h.applied.later);
	end_explained(&e);
}

/* No edit is near this context, so none is computed in full. */
static void of_other_mistakes_none_is_tried(void)
{
	explained e;

	make_up_inputs();
	attend_all(&(mistake) { .times = 3 }, 0, CALL);
	stand_at_context(&e, CALL, 0, 0);
	CU_ASSERT_EQUAL((vn_estimate_attend(&e.t), e.failed.st), VN_OK);
	CU_ASSERT_EQUAL(e.x.n, 0);
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(the_width_of_a_window_is_found),
		TEST(first_keys_that_stay_visible_are_counted),
		TEST(of_many_checkpoints_first_keys_are_not_counted),
		TEST(what_a_single_query_sees_is_told),
		TEST(sinks_and_caps_are_told_apart),
		TEST(what_was_rounded_to_which_format_is_told),
		TEST(where_a_call_began_is_read_off),
		TEST(keys_that_later_calls_do_not_see_are_found),
		TEST(a_rounded_cache_is_asked_of_later_calls),
		TEST(of_other_mistakes_none_is_tried),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("estimate_attention", tests);
	return !remove_folder() || failed;
}
