/* test_garbage.c: the signs of garbage counted in decoded tokens, and their thresholds. */
#include "capture/recording/garbage.h"
#include "tests/support/suite.h"

#include <string.h>

static int64_t repetition(const char *letters, int want_period, int64_t want_at)
{
	int32_t id[200];
	int64_t n = (int64_t)strlen(letters), at = -1;
	int     period = -1;

	for (int64_t i = 0; i < n; i++)
		id[i] = letters[i];
	const int64_t longest = vn_longest_repetition(id, n, &period, &at);
	CU_ASSERT_EQUAL(period, want_period);
	CU_ASSERT_EQUAL(at, want_at);
	return longest;
}

static void a_repetition_is_four_times_the_same_of_one_to_eight_tokens(void)
{
	CU_ASSERT_EQUAL(repetition("", 0, 0), 0);
	CU_ASSERT_EQUAL(repetition("aaa", 0, 0), 0);
	CU_ASSERT_EQUAL(repetition("aaaa", 1, 0), 4);
	CU_ASSERT_EQUAL(repetition("xyaaaaaz", 1, 2), 5);
	CU_ASSERT_EQUAL(repetition("abababx", 0, 0), 0);
	CU_ASSERT_EQUAL(repetition("xababababay", 2, 1), 9);
	CU_ASSERT_EQUAL(repetition("abcdefghabcdefghabcdefghabcdefgh", 8, 0), 32);
	CU_ASSERT_EQUAL(repetition("abcdefghiabcdefghiabcdefghiabcdefghi", 0, 0), 0);
	CU_ASSERT_EQUAL(repetition("aaaabcbcbcbcbc", 2, 4), 10); /* the longest */
	CU_ASSERT_EQUAL(repetition("to be or not to be", 0, 0), 0);
}

static void the_end_of_a_vocabulary_is_its_last_thousandth_and_what_is_beyond(void)
{
	static const int32_t id[] = { 0, 149849, 149850, 149999, 150000, INT32_MAX };

	CU_ASSERT_EQUAL(vn_garbage_count_ends(id, 6, 150000), 4);
	CU_ASSERT_EQUAL(vn_garbage_count_ends((const int32_t[]) { 510, 511, 512 }, 3, 512), 2);
	CU_ASSERT_EQUAL(vn_garbage_count_ends(id, 0, 512), 0);
}

static int64_t replaced(const char *text, int64_t want_of)
{
	int64_t       of = -1;
	const int64_t n = vn_garbage_count_replaced(text, strlen(text), &of);

	CU_ASSERT_EQUAL(of, want_of);
	return n;
}

static void characters_cut_at_the_ends_are_not_replaced_ones(void)
{
	CU_ASSERT_EQUAL(replaced("", 0), 0);
	CU_ASSERT_EQUAL(replaced("plain", 5), 0);
	CU_ASSERT_EQUAL(replaced("\xe6\x97\xa5\xc3\xa9", 2), 0);
	CU_ASSERT_EQUAL(replaced("a\xef\xbf\xbd"
	                         "b",
	                         3),
	                1);
	CU_ASSERT_EQUAL(replaced("a\xff\xc3"
	                         "b",
	                         4),
	                2);
	CU_ASSERT_EQUAL(replaced("\x97\xa5"
	                         "b",
	                         1),
	                0);
	CU_ASSERT_EQUAL(replaced("\x97\xa5\x97\xa5"
	                         "b",
	                         2),
	                1);
	CU_ASSERT_EQUAL(replaced("b\xe6\x97", 1), 0);
	CU_ASSERT_EQUAL(replaced("b\xf0\x9f\x98", 1), 0);
	CU_ASSERT_EQUAL(replaced("\xe6", 0), 0);
	CU_ASSERT_EQUAL(replaced("\xe6\x97\xa5\xa5", 2), 1);
}

static vn_garbage of(vn_garbage_sign sign, int64_t n, int64_t all, int64_t n_prompt, int64_t all_prompt)
{
	vn_garbage g = { 0 };

	g.chosen.period = 1;
	g.chosen.n[sign] = n;
	g.chosen.of[sign] = all;
	g.prompt.n[sign] = n_prompt;
	g.prompt.of[sign] = all_prompt;
	return g;
}

static bool shows(vn_garbage_sign sign, int64_t n, int64_t all, int64_t n_ref, int64_t all_ref, int64_t n_prompt)
{
	const vn_garbage g = of(sign, n, all, n_prompt, 100), ref = of(sign, n_ref, all_ref, n_prompt, 100);
	char             words[VN_GARBAGE_WORDS];

	return vn_garbage_shows(&g, all_ref < 0 ? NULL : &ref, sign, words);
}

static void half_of_enough_tokens_must_repeat_and_twice_what_is_expected(void)
{
	CU_ASSERT(shows(VN_GARBAGE_REPEATS, 60, 100, 4, 100, 0));
	CU_ASSERT(!shows(VN_GARBAGE_REPEATS, 50, 100, 4, 100, 0));
	CU_ASSERT(!shows(VN_GARBAGE_REPEATS, 60, 100, 30, 100, 0)); /* the reference repeats too */
	CU_ASSERT(!shows(VN_GARBAGE_REPEATS, 60, 100, 4, 100, 30)); /* the prompt does */
	CU_ASSERT(!shows(VN_GARBAGE_REPEATS, 31, 31, 0, 31, 0));
	CU_ASSERT(shows(VN_GARBAGE_REPEATS, 32, 32, 0, 32, 0));
	CU_ASSERT(!shows(VN_GARBAGE_REPEATS, 32, 32, 0, 0, 0)); /* nothing to compare with */
	CU_ASSERT(shows(VN_GARBAGE_REPEATS, 32, 32, 0, -1, 0)); /* alone: against the prompt */
}

static void few_characters_and_few_unused_ids_are_chance(void)
{
	for (vn_garbage_sign s = VN_GARBAGE_CHARACTERS; s <= VN_GARBAGE_ENDS; s++) {
		CU_ASSERT(shows(s, 30, 100, 0, 100, 0));
		CU_ASSERT(!shows(s, 5, 100, 0, 100, 0));
		CU_ASSERT(!shows(s, 30, 100, 20, 100, 0));
		CU_ASSERT(!shows(s, 7, 7, 0, 7, 0));
		CU_ASSERT(shows(s, 8, 8, 0, -1, 0));
	}
}

static void the_sentence_has_the_numbers_of_both(void)
{
	vn_garbage g = of(VN_GARBAGE_REPEATS, 60, 100, 0, 10), ref = of(VN_GARBAGE_REPEATS, 4, 100, 0, 10);
	char       words[VN_GARBAGE_WORDS] = "";

	g.chosen.id = 17;
	CU_ASSERT(vn_garbage_shows(&g, &ref, VN_GARBAGE_REPEATS, words));
	CU_ASSERT_STRING_EQUAL(
		words,
		"chosen tokens repeat: 60 of 100 are token 17 over and over; the reference's longest repetition has 4 of 100");
	g.chosen.period = 3;
	CU_ASSERT(vn_garbage_shows(&g, NULL, VN_GARBAGE_REPEATS, words));
	CU_ASSERT_STRING_EQUAL(
		words,
		"chosen tokens repeat: 60 of 100 are the same 3 tokens, from token 17 on, over and over; the prompt's longest "
		"repetition has 0 of 10");
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_repetition_is_four_times_the_same_of_one_to_eight_tokens),
		TEST(the_end_of_a_vocabulary_is_its_last_thousandth_and_what_is_beyond),
		TEST(characters_cut_at_the_ends_are_not_replaced_ones),
		TEST(half_of_enough_tokens_must_repeat_and_twice_what_is_expected),
		TEST(few_characters_and_few_unused_ids_are_chance),
		TEST(the_sentence_has_the_numbers_of_both),
		CU_TEST_INFO_NULL,
	};
	return run_suite("garbage", tests);
}
