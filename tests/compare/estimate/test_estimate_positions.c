/* test_estimate_positions.c: tests the learned positions of compare/estimate/estimate.c,
 * in a model that has them. */
#define GIVEN_MODEL VERNIER_SOURCE "/fixtures/gpt2-trained"
#include "compare/estimate/estimate.h"
#include "tests/support/explain_help.h"

/* The table of gpt2 has 512 rows. */
enum { CALL = 6, STEPS = 2, S = CALL + STEPS, D = 48, ROWS = 512 };

static float y[S * D];

/* Token t of calls from `from` on has the row of position t + by; one outside the table its own. */
static void give_positions(int by, int from)
{
	int64_t n;
	double *table = given_weight("pos_embed", 0, &n);

	CU_ASSERT_EQUAL_FATAL(n, ROWS * D);
	for (int t = 0; t < S; t++) {
		const int row = t + (t >= from ? by : 0);
		for (int d = 0; d < D; d++)
			y[t * D + d] = (float)table[(row >= 0 && row < ROWS ? row : t) * D + d];
	}
	free(table);
}

static void estimate(explained *e, int step)
{
	const given of[] = { { "pos_embed", y } };

	compare_given(e, CALL, STEPS, of, 1);
	stand_at(e, "pos_embed", step);
	CU_ASSERT_EQUAL((vn_estimate(&e->t), e->failed.st), VN_OK);
}

static void the_shift_of_the_rows_is_found(void)
{
	static const int by[] = { 2, 300, -3 };

	for (int i = 0; i < 3; i++) {
		explained e;
		give_positions(by[i], 0);
		estimate(&e, 0);
		const vn_trial h = answer_of(&e);
		CU_ASSERT_EQUAL(h.finding, VN_FINDING_TABLE_OFFSET);
		CU_ASSERT_EQUAL(h.applied.kind, VN_BY_ROWS);
		CU_ASSERT_EQUAL(h.applied.rows, by[i]);
		end_explained(&e);
	}
}

/* In a later call, the shift may be of this call and those behind it, or of all. */
static void a_later_call_leaves_open_when_it_began(void)
{
	explained e;
	int       all = 0, later = 0;

	give_positions(-4, CALL);
	estimate(&e, 1);
	for (int i = 0; i < e.x.n; i++) {
		const vn_trial *h = &e.x.by[i];
		if (h->limit_fraction > 1)
			continue;
		CU_ASSERT_EQUAL(h->applied.rows, -4);
		all += h->finding == VN_FINDING_TABLE_OFFSET && !h->applied.later;
		later += h->finding == VN_FINDING_TABLE_OFFSET_LATER && h->applied.later;
	}
	CU_ASSERT_EQUAL(all, 1);
	CU_ASSERT_EQUAL(later, 1);
	end_explained(&e);
}

static void rows_of_no_table_have_no_answer(void)
{
	explained e;

	give_positions(0, 0);
	for (int i = 0; i < S * D; i++)
		y[i] += given_number(i, 1) / 10;
	estimate(&e, 0);
	CU_ASSERT_FALSE(vn_case_answered(&e.t));
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(the_shift_of_the_rows_is_found),
		TEST(a_later_call_leaves_open_when_it_began),
		TEST(rows_of_no_table_have_no_answer),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("estimate_positions", tests);
	return !remove_folder() || failed;
}
