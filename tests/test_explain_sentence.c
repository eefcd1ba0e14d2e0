/* test_explain_sentence.c: tests compare/explain/sentence.c, and the tables of sentences. */
#include "compare/explain/sentence.h"
#include "tests/suite.h"

#include <string.h>

static bool is_there(const vn_sentence_row *r)
{
	return r->words || r->say;
}

static void every_finding_has_one_sentence(void)
{
	for (int f = 0; f < VN_N_FINDINGS; f++)
		CU_ASSERT_EQUAL(is_there(&vn_sentences_of_operations[f]) + is_there(&vn_sentences_of_results[f]), 1);
}

/* A text without a place for its number would be printed as it is. */
static void a_sentence_with_a_number_has_a_place_for_it(void)
{
	for (int f = 0; f < VN_N_FINDINGS; f++)
		for (int i = 0; i < 2; i++) {
			const vn_sentence_row *r = i ? &vn_sentences_of_results[f] : &vn_sentences_of_operations[f];
			if (r->words)
				CU_ASSERT_EQUAL(strchr(r->words, '%') != NULL, r->with != VN_NO_NUMBER);
			CU_ASSERT_FALSE(r->words && r->say);
		}
}

static void numbers_that_fit_as_well_are_told(void)
{
	char text[64];

	CU_ASSERT_STRING_EQUAL(vn_sentence_range(40, 0, 0, text), "40");
	CU_ASSERT_STRING_EQUAL(vn_sentence_range(40, 40, 41, text), "40 or 41");
	CU_ASSERT_STRING_EQUAL(vn_sentence_range(40, 39, 42, text), "39 to 42");
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(every_finding_has_one_sentence),
		TEST(a_sentence_with_a_number_has_a_place_for_it),
		TEST(numbers_that_fit_as_well_are_told),
		CU_TEST_INFO_NULL,
	};
	return run_suite("sentence", tests);
}
