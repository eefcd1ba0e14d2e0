/* test_choices.c: whole numbers and sets of ids, right, wrong and tied. */
#include "compare/judge/choices.h"
#include "tests/support/suite.h"

#include <CUnit/Basic.h>
#include <math.h>

enum { K = 2, E = 5 };

/* What becomes of one row of ids, by a table of scores. */
static vn_ids_found of_row(const float *cand, const float *expected, const float *scores, double margin)
{
	const vn_tensor ids[] = { { VN_F32, { 2, { 1, K } }, cand }, { VN_F32, { 2, { 1, K } }, expected } },
					table = { VN_F32, { 2, { 1, E } }, scores };

	return vn_choices_sets(&(vn_choice) { { &ids[0], &ids[1] }, { &table, &table }, margin });
}

static void the_order_of_a_choice_is_no_part_of_it(void)
{
	const vn_ids_found x = of_row((const float[]) { 3, 1 }, (const float[]) { 1, 3 }, (const float[]) { 0, 2, 0, 1, 0 },
	                              0);

	CU_ASSERT(x.n == 2 && x.other == 0 && x.ties == 0);
}

static void another_id_is_a_tie_where_the_scores_are_equal_within_the_margin(void)
{
	const float scores[] = { 2, 1, 0.75f, 0.5f, 0 };
	const struct {
		float   cand[K];
		double  margin;
		int64_t other, ties;
	} row[] = {
		{ { 0, 2 }, 0.25, 0, 1 }, { { 0, 2 }, 0.2, 1, 0 },  { { 0, 3 }, 0.25, 1, 0 },  { { 2, 3 }, 0.5, 1, 1 },
		{ { 0, 5 }, 100, 1, 0 },  { { 0, -1 }, 100, 1, 0 }, { { 0, NAN }, 100, 1, 0 },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const vn_ids_found x = of_row(row[i].cand, (const float[]) { 0, 1 }, scores, row[i].margin);
		CU_ASSERT_EQUAL(x.other, row[i].other);
		CU_ASSERT_EQUAL(x.ties, row[i].ties);
	}
}

/* A padding token has a row of zeros. */
static void equal_scores_are_all_ties(void)
{
	const vn_ids_found x = of_row((const float[]) { 2, 4 }, (const float[]) { 0, 1 }, (const float[]) { 0, 0, 0, 0, 0 },
	                              0);

	CU_ASSERT_EQUAL(x.other, 0);
	CU_ASSERT_EQUAL(x.ties, 2);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(the_order_of_a_choice_is_no_part_of_it),
		TEST(another_id_is_a_tie_where_the_scores_are_equal_within_the_margin),
		TEST(equal_scores_are_all_ties),
		CU_TEST_INFO_NULL,
	};
	return run_suite("choices", tests);
}
