/* test_sentences_operation.c: tests compare/explain/sentences_operation.c. */
#include "compare/explain/sentence_writers.h"
#include "tests/support/suite.h"

#include <string.h>

/* A trial is told in these words, which need neither a plan nor a comparison. */
static void says(vn_sentence_writer *writer, vn_trial h, const char *want)
{
	char text[200] = "";

	writer(&(vn_sentence) { .h = &h, .text = text, .size = sizeof text });
	CU_ASSERT_STRING_EQUAL(text, want);
}

static void a_format_says_of_what_and_with_how_many_scales(void)
{
	vn_trial h = { .finding = VN_FINDING_PRODUCT_ROUNDED,
		           .applied = { .kind = VN_BY_MATRIX,
		                        .matrix = { .kind = VN_MATRIX_FORMAT, .format = VN_FORMAT_BF16, .of = VN_OF_BOTH } } };

	says(vn_sentence_format, h, "inputs and weights in bfloat16: rounded");
	h.applied.matrix.format = VN_FORMAT_INT8;
	h.applied.matrix.scaled = VN_SCALE_OF_ROWS;
	says(vn_sentence_format, h,
	     "inputs and weights in int8: rounded, with one scale for each output channel and one scale for each token");
	h.applied.matrix.of = VN_OF_INPUTS;
	says(vn_sentence_format, h, "inputs in int8: rounded, with one scale for each token");
	h.applied.matrix.of = VN_OF_WEIGHTS;
	h.applied.matrix.scaled = VN_SCALE_OF_ALL;
	says(vn_sentence_format, h, "weights in int8: rounded, with one scale for each matrix");
}

static void moved_tokens_are_told_by_their_map(void)
{
	static const struct {
		vn_position_map map;
		const char     *want;
	} maps[] = {
		{ { .first = 20, .last = 20, .times = 1, .plus = -1 }, "token 20 is rotated as if 1 position earlier" },
		{ { .first = 30, .last = 45, .plus = 7 }, "tokens 30-45 are rotated as if at position 7" },
		{ { .first = 40, .open = true, .times = 0.5, .whole = true },
		  "tokens from 40 on are rotated as if at 0.5 times their positions, rounded down" },
		{ { .first = 40, .open = true, .times = 2, .plus = -40 },
		  "tokens from 40 on are rotated as if their distance from position 40 were 2 times as large" },
	};

	for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
		says(vn_sentence_moved_tokens,
		     (vn_trial) { .finding = VN_FINDING_POSITIONS_OF_SOME,
		                  .applied = { .kind = VN_BY_ROTATION, .rotate = { .moved = true, .map = maps[i].map } } },
		     maps[i].want);
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
		TEST(a_format_says_of_what_and_with_how_many_scales),
		TEST(moved_tokens_are_told_by_their_map),
		TEST(numbers_that_fit_as_well_are_told),
		CU_TEST_INFO_NULL,
	};
	return run_suite("sentences_operation", tests);
}
