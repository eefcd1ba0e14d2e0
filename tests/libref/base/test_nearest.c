/* test_nearest.c: finds the word that a misspelt word resembles most. */
#include "libref/base/nearest.h"
#include "tests/support/suite.h"

#include <string.h>

static const char *nearest(const char *word, const char *words)
{
	static vn_nearest n;

	vn_nearest_start(&n, word);
	vn_nearest_try_words(&n, words);
	return vn_nearest_found(&n) ? vn_nearest_found(&n) : "";
}

static void a_few_letters_may_be_wrong(void)
{
	static const char words[] = "compare|capture|calibrate|show|q_rope|layer0.q_rope|fp16";

	CU_ASSERT_STRING_EQUAL(nearest("compar", words), "compare");   /* one is missing, */
	CU_ASSERT_STRING_EQUAL(nearest("comparre", words), "compare"); /* too many, */
	CU_ASSERT_STRING_EQUAL(nearest("cumpare", words), "compare");  /* another, */
	CU_ASSERT_STRING_EQUAL(nearest("comapre", words), "compare");  /* or two are exchanged */
	CU_ASSERT_STRING_EQUAL(nearest("sohw", words), "show");
	CU_ASSERT_STRING_EQUAL(nearest("layer0.qrope", words), "layer0.q_rope");
	CU_ASSERT_STRING_EQUAL(nearest("Q-ROPE", words), "q_rope");
}

static void a_word_of_other_letters_has_no_neighbour(void)
{
	CU_ASSERT_STRING_EQUAL(nearest("evaluate", "compare|capture|show"), "");
	CU_ASSERT_STRING_EQUAL(nearest("", "a|b"), "");
	CU_ASSERT_STRING_EQUAL(nearest("ab", "ac|b"), ""); /* of two letters one is half of it */
	CU_ASSERT_STRING_EQUAL(nearest("ab", "ac|AB"), "AB");
	CU_ASSERT_STRING_EQUAL(nearest("show", ""), "");
}

static void the_first_of_equals_stays(void)
{
	CU_ASSERT_STRING_EQUAL(nearest("boat", "coat|goat"), "coat");
	CU_ASSERT_STRING_EQUAL(nearest("boat", "coat|boats|boat"), "boat");
}

static void a_star_stands_for_any_letters(void)
{
	CU_ASSERT_STRING_EQUAL(nearest("layer*.q_rop", "layer12.k_rope|layer12.q_rope"), "layer12.q_rope");
	CU_ASSERT_STRING_EQUAL(nearest("layer?.q_rop", "layer1.q_rope"), "layer1.q_rope");
}

static void words_of_any_length_are_safe(void)
{
	char       a[4 * VN_NEAREST_MAX], b[4 * VN_NEAREST_MAX];
	vn_nearest n;

	for (int length = 0; length < 4 * VN_NEAREST_MAX - 1; length += 61) {
		memset(a, 'a', sizeof a);
		memset(b, 'a', sizeof b);
		a[length] = b[length] = '\0';
		vn_nearest_start(&n, a);
		vn_nearest_try(&n, b);
		CU_ASSERT_EQUAL(vn_nearest_found(&n) != NULL, length > 0 && length < VN_NEAREST_MAX);
		CU_ASSERT_EQUAL(vn_nearest_distance(a, ""), length);
	}
}

static void the_hint_is_a_sentence_or_nothing(void)
{
	vn_nearest n;

	vn_nearest_start(&n, "compar");
	CU_ASSERT_STRING_EQUAL(vn_nearest_hint(&n), "");
	vn_nearest_try(&n, "compare");
	CU_ASSERT_STRING_EQUAL(vn_nearest_hint(&n), " (did you mean 'compare'?)");
	vn_nearest_settle(&n, "capture");
	CU_ASSERT_STRING_EQUAL(vn_nearest_hint(&n), " (did you mean 'capture'?)");
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_few_letters_may_be_wrong),
		TEST(a_word_of_other_letters_has_no_neighbour),
		TEST(the_first_of_equals_stays),
		TEST(a_star_stands_for_any_letters),
		TEST(words_of_any_length_are_safe),
		TEST(the_hint_is_a_sentence_or_nothing),
		CU_TEST_INFO_NULL,
	};
	return run_suite("nearest", tests);
}
