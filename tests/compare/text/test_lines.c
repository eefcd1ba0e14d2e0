/* test_lines.c: tests compare/text/lines.c. */
#include "compare/text/lines.h"
#include "tests/support/suite.h"

#include <string.h>

/* A refusal is identified by its word, not by the line's text. */
static void a_refusal_is_known_by_what_allows_it(void)
{
	vn_lines l = { 0 };

	vn_lines_add(&l, "the floor is of other weights (--allow weights)");
	CU_ASSERT_FALSE(vn_lines_refused(&l, "weights"));
	vn_lines_refuse(&l, "weights", "%d weights differ", 3);
	CU_ASSERT_STRING_EQUAL(l.line[1], "3 weights differ (--allow weights)");
	CU_ASSERT_TRUE(vn_lines_refused(&l, "weights"));
	CU_ASSERT_FALSE(vn_lines_refused(&l, "weight"));
	vn_lines_refuse_as(&l, "precision", "in f16 (use it anyway: --allow precision)");
	CU_ASSERT_STRING_EQUAL(l.line[2], "in f16 (use it anyway: --allow precision)");
	CU_ASSERT_TRUE(vn_lines_refused(&l, "precision"));
	vn_lines_free(&l);
}

static void a_repeated_line_is_counted(void)
{
	vn_lines l = { 0 };

	vn_lines_once(&l, " (rank0.h5)", "ranks", "ranks: %d heads", 4);
	CU_ASSERT_STRING_EQUAL(l.line[0], "ranks: 4 heads (rank0.h5)");
	vn_lines_once(&l, " (rank1.h5)", "ranks", "ranks: %d heads", 4);
	vn_lines_once(&l, " (rank2.h5)", "ranks", "ranks: %d heads", 4);
	CU_ASSERT_EQUAL_FATAL(l.n, 1);
	CU_ASSERT_STRING_EQUAL(l.line[0], "ranks: 4 heads (3 ranks)");
	/* a line that only begins like it, or has the count as its own words, is another */
	vn_lines_once(&l, "", "ranks", "ranks: %d heads of 8", 4);
	vn_lines_once(&l, "", "ranks", "ranks: %d heads (3 ranks)", 4);
	CU_ASSERT_EQUAL(l.n, 3);
	vn_lines_free(&l);
}

static void what_is_known_of_a_line_moves_with_it(void)
{
	vn_lines l = { 0 };

	vn_lines_once(&l, "", "times", "twice");
	vn_lines_refuse(&l, "steps", "steps");
	vn_lines_first(&l, "first");
	CU_ASSERT_STRING_EQUAL(l.line[0], "first");
	CU_ASSERT_PTR_NULL(l.facts[0].allow);
	CU_ASSERT_STRING_EQUAL(l.facts[2].allow, "steps");
	vn_lines_once(&l, "", "times", "twice");
	CU_ASSERT_STRING_EQUAL(l.line[1], "twice (2 times)");
	vn_lines_free(&l);
	CU_ASSERT_PTR_NULL(l.line);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(a_refusal_is_known_by_what_allows_it),
		TEST(a_repeated_line_is_counted),
		TEST(what_is_known_of_a_line_moves_with_it),
		CU_TEST_INFO_NULL,
	};
	return run_suite("lines", tests);
}
