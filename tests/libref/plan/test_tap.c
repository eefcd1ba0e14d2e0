/* test_tap.c: choosing checkpoints and rows. */
#include "libref/plan/tap.h"
#include "tests/support/plan_help.h"

/* How many values are chosen; -1: refused. */
static int choose(const vn_plan *p, bool *want, int first, int last, vn_error *e, const char *a, const char *b)
{
	const char *pattern[] = { a, b };
	int         n = 0;

	if (vn_taps_choose(p, pattern, !!a + !!b, (int[]) { first, last }, want, e))
		return -1;
	for (int v = 0; v < p->n_values; v++)
		n += want[v];
	return n;
}

static void without_patterns_all_is_chosen_that_is_not_on_demand(void)
{
	vn_plan *p = toy();
	bool     want[64];
	vn_error e;

	CU_ASSERT_EQUAL(choose(p, want, -1, 0, &e, NULL, NULL), p->n_values - 5 * L);
	CU_ASSERT_FALSE(want[vn_plan_find(p, "layer0.attn_probs")]);
	CU_ASSERT_FALSE(want[vn_plan_find(p, "layer1.gate_act")]);
	CU_ASSERT_TRUE(want[vn_plan_find(p, "logits")]);
	CU_ASSERT_EQUAL(choose(p, want, 1, 1, &e, NULL, NULL),
	                3 + 16 + 1); /* outside layers too, and layer0.output for its alias */
	vn_plan_destroy(p);
}

static void a_pattern_chooses_by_name_even_on_demand(void)
{
	vn_plan *p = toy();
	bool     want[64];
	vn_error e;

	memset(want, 1, sizeof want); /* cleared first */
	CU_ASSERT_EQUAL(choose(p, want, -1, 0, &e, "layer*.{q,k}_rope", NULL), 4);
	CU_ASSERT_EQUAL(choose(p, want, -1, 0, &e, "layer*.attn_probs", "logits"), 3);
	CU_ASSERT_EQUAL(choose(p, want, 1, 1, &e, "layer*.attn_probs", "logits"), 2);
	CU_ASSERT_TRUE(want[vn_plan_find(p, "layer1.attn_probs")]);
	CU_ASSERT_EQUAL(choose(p, want, -1, 0, &e, "*", NULL), p->n_values);
	vn_plan_destroy(p);
}

static void a_second_name_chooses_the_value_it_stands_for(void)
{
	vn_plan *p = toy();
	bool     want[64];
	vn_error e;

	CU_ASSERT_EQUAL(choose(p, want, -1, 0, &e, "layer1.input", NULL), 2);
	CU_ASSERT_TRUE(want[vn_plan_find(p, "layer0.output")]);
	CU_ASSERT_TRUE(want[vn_plan_find(p, "layer1.input")]);
	vn_plan_destroy(p);
}

static void a_pattern_that_selects_nothing_is_named(void)
{
	vn_plan *p = toy();
	bool     want[64];
	vn_error e = { "" };

	CU_ASSERT_EQUAL(choose(p, want, -1, 0, &e, "logits", "layer9.*"), -1);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "'layer9.*'"));
	CU_ASSERT_EQUAL(choose(p, want, -1, 0, &e, "{", NULL), -1);
	CU_ASSERT_EQUAL(choose(p, want, -1, 0, &e, "", NULL), -1);
	CU_ASSERT_EQUAL(choose(p, want, 7, 9, &e, "layer*.q_rope", NULL), -1);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "layers 7-9"));
	vn_plan_destroy(p);
}

static void rows_are_cut_to_the_call(void)
{
	/* clang-format off */
	const struct { vn_tap_rows rows; int64_t first, last, past, tokens, want_first, want_count; } row[] = {
		{ VN_ROWS_ALL, 0, 0, 0, 5, 0, 5 },     { VN_ROWS_ALL, 0, 0, 7, 5, 0, 5 },
		{ VN_ROWS_LAST, 0, 0, 0, 5, 4, 1 },    { VN_ROWS_LAST, 0, 0, 7, 1, 0, 1 },
		{ VN_ROWS_RANGE, 1, 3, 0, 5, 1, 3 },   { VN_ROWS_RANGE, 0, 99, 0, 5, 0, 5 },
		{ VN_ROWS_RANGE, 3, 3, 0, 5, 3, 1 },   { VN_ROWS_RANGE, 8, 9, 7, 5, 1, 2 },
		{ VN_ROWS_RANGE, 4, 8, 7, 5, 0, 2 },   { VN_ROWS_RANGE, 11, 20, 7, 5, 4, 1 },
		{ VN_ROWS_RANGE, 0, 6, 7, 5, -1, 0 },  { VN_ROWS_RANGE, 12, 20, 7, 5, -1, 0 },
		{ VN_ROWS_RANGE, 3, 2, 0, 5, -1, 0 },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const vn_taps t = { .rows = row[i].rows, .first = row[i].first, .last = row[i].last };
		int64_t       first = -9, count = -9;
		vn_taps_select(&t, row[i].past, row[i].tokens, &first, &count);
		CU_ASSERT_EQUAL(count, row[i].want_count);
		CU_ASSERT(row[i].want_count ? first == row[i].want_first : first >= 0 && first <= row[i].tokens);
	}
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(without_patterns_all_is_chosen_that_is_not_on_demand),
		TEST(a_pattern_chooses_by_name_even_on_demand),
		TEST(a_second_name_chooses_the_value_it_stands_for),
		TEST(a_pattern_that_selects_nothing_is_named),
		TEST(rows_are_cut_to_the_call),
		CU_TEST_INFO_NULL,
	};
	return run_suite("tap", tests);
}
