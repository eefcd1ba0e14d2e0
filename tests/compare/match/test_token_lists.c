/* test_token_lists.c: tests compare/match/token_lists.c. */
#include "compare/match/token_lists.h"

#include "tests/support/suite.h"

static char words[VN_TOKENS_WORDS];

#define IDS(...) (const int32_t[]) { __VA_ARGS__ }, NULL, sizeof((const int32_t[]) { __VA_ARGS__ }) / sizeof(int32_t)

static const char *said(vn_token_list ref, vn_token_list cand)
{
	return vn_tokens_differ(&ref, &cand, "candidate", NULL, words);
}

static void one_more_in_front(void)
{
	static char *const text[] = { "<s>", "The", " cat" };

	CU_ASSERT_STRING_EQUAL(said((vn_token_list) { IDS(1, 7, 8) }, (vn_token_list) { IDS(1, 1, 7, 8) }),
	                       "; the candidate has 1 more in front: 1, which is there twice: the text has one, and the "
	                       "tokenizer adds another");
	CU_ASSERT_STRING_EQUAL(
		said((vn_token_list) { (const int32_t[]) { 1, 7, 8 }, text, 3 }, (vn_token_list) { IDS(7, 8) }),
		"; the reference has 1 more in front: 1 (\"<s>\")");
}

static void more_at_another_place(void)
{
	CU_ASSERT_STRING_EQUAL(said((vn_token_list) { IDS(1, 7, 8) }, (vn_token_list) { IDS(1, 7, 8, 2) }),
	                       "; the candidate has 1 more at the end: 2");
	CU_ASSERT_STRING_EQUAL(said((vn_token_list) { IDS(1, 7, 5, 6, 5, 6, 9) }, (vn_token_list) { IDS(1, 7, 5, 6, 9) }),
	                       "; the reference has 2 more from number 2 on: 5, 6, which are there twice");
}

static void one_text_in_other_tokens(void)
{
	static char *const text[] = { "a", "12", "34", "b", "c" }, *const other[] = { "a", "1", "234", "b", "c" };

	const vn_token_list ref = { (const int32_t[]) { 1, 2, 3, 4, 5 }, text, 5 },
						cand = { (const int32_t[]) { 1, 12, 13, 4, 5 }, other, 5 };

	CU_ASSERT_STRING_EQUAL(said(ref, cand),
	                       "; the first 1 and the last 2 are equal, between them the reference has 2, 3 (\"1234\"), "
	                       "the candidate 12, 13 (\"1234\"): the same text, divided by another tokenizer or "
	                       "pre-tokenizer");
	CU_ASSERT_STRING_EQUAL(said((vn_token_list) { IDS(1, 2, 3, 4, 5) }, (vn_token_list) { IDS(1, 2, 9, 9, 4, 5) }),
	                       "; the first 2 and the last 2 are equal, between them the reference has 3, the candidate "
	                       "9, 9");
	CU_ASSERT_STRING_EQUAL(said((vn_token_list) { IDS(1, 2, 3, 4, 5) }, (vn_token_list) { IDS(1, 2, 9, 4, 5) }), "");
}

static void nothing_in_common_or_no_difference(void)
{
	CU_ASSERT_STRING_EQUAL(said((vn_token_list) { IDS(1, 2, 3) }, (vn_token_list) { IDS(4, 5, 6, 7) }), "");
	CU_ASSERT_STRING_EQUAL(said((vn_token_list) { IDS(1, 2, 3) }, (vn_token_list) { IDS(1, 2, 3) }), "");
	CU_ASSERT_STRING_EQUAL(said((vn_token_list) { NULL, NULL, 0 }, (vn_token_list) { IDS(1) }),
	                       "; the candidate has 1 more in front: 1");
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(one_more_in_front),
		TEST(more_at_another_place),
		TEST(one_text_in_other_tokens),
		TEST(nothing_in_common_or_no_difference),
		CU_TEST_INFO_NULL,
	};
	return run_suite("token_lists", tests);
}
