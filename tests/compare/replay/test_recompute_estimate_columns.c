/* test_recompute_estimate_columns.c: tests compare/replay/recompute_estimate.c: which
 * columns are chosen. */
#include "compare/replay/recompute_internal.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>

/* Two rows of logits over a vocabulary whose last block of 256 columns overlaps the one before. */
enum { V = 20000, ROWS = 2, BLOCK = 256, HALF = VN_SOME_BLOCKS / 2 };

static float own[ROWS * V], is[ROWS * V];

static vn_plan *plan_of(int vocab)
{
	vn_builder *b = vn_plan_begin(1, vocab, 64);
	const int   table = vn_plan_weight(b, "embed", 2, (int64_t[]) { vocab, 4 });
	vn_plan    *p = NULL;

	vn_plan_layer(b, -1);
	vn_plan_linear(b, vn_plan_embed(b, table, VN_POINT_EMBED), table, -1, 0, VN_POINT_LOGITS);
	CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &p, NULL), VN_OK);
	return p;
}

static vn_tensor tensor_of(const float *x, int vocab)
{
	return (vn_tensor) { VN_F32, { 2, { ROWS, vocab } }, x };
}

/* Chooses among these columns in the last n rows; *some gets the choice. */
static bool choose_in(int n, int vocab, vn_some_rows *some, double *off)
{
	vn_plan     *plan = plan_of(vocab);
	vn_recompute p = { .site = { .plan = plan, .target = vn_plan_find(plan, "logits"), .cand = tensor_of(is, vocab) },
		               .n_sample = n,
		               .threads = 1 };
	const vn_tensor made = tensor_of(own, vocab);
	p.site.first = 3; /* the checkpoint's first token */
	for (int i = 0; i < n; i++)
		p.sample[i] = p.site.first + ROWS - n + i;
	const bool chosen = vn_recompute_choose(&p, &made) != NULL;

	*some = p.some;
	*off = p.some_off;
	vn_plan_destroy(plan);
	return chosen;
}

static bool choose(int vocab, vn_some_rows *some, double *off)
{
	return choose_in(ROWS, vocab, some, off);
}

static void fill(void)
{
	for (int i = 0; i < ROWS * V; i++)
		own[i] = is[i] = 1 + (float)(i % 7);
}

static bool covers(const vn_some_rows *s, int column)
{
	for (int i = 0; i < s->n; i++)
		if (column >= s->first[i] && column < s->first[i] + s->width)
			return true;
	return false;
}

static void the_worst_blocks_and_some_at_equal_distances_are_chosen(void)
{
	static const int wrong[] = { 700, 5000, 9999, 15001, 19990 };
	vn_some_rows     s;
	double           off, dd = 0, cc = 0;

	fill();
	for (int i = 0; i < 5; i++)
		is[i % ROWS * V + wrong[i]] += 1;
	CU_ASSERT_TRUE_FATAL(choose(V, &s, &off));
	CU_ASSERT_EQUAL(s.of, V);
	CU_ASSERT_EQUAL(s.width, BLOCK);
	CU_ASSERT_TRUE(s.n >= HALF && s.n <= VN_SOME_BLOCKS);
	for (int i = 0; i < 5; i++)
		CU_ASSERT_TRUE(covers(&s, wrong[i]));
	CU_ASSERT_TRUE(covers(&s, 0) && covers(&s, V - 1)); /* both ends */
	for (int i = 1; i < s.n; i++)
		CU_ASSERT_TRUE(s.first[i] > s.first[i - 1]);
	for (int r = 0; r < ROWS; r++)
		for (int i = 0; i < s.n; i++)
			for (int64_t c = s.first[i]; c < s.first[i] + BLOCK; c++) {
				const double d = (double)own[r * V + c] - (double)is[r * V + c], y = (double)is[r * V + c];
				dd += d * d;
				cc += y * y;
			}
	CU_ASSERT_DOUBLE_EQUAL(off, dd / cc, 1e-12);
}

/* With errors everywhere, those of one block are larger. */
static void of_many_errors_the_largest_count(void)
{
	vn_some_rows s;
	double       off;

	fill();
	for (int i = 0; i < ROWS * V; i++)
		is[i] += 1e-3f;
	for (int i = 0; i < HALF; i++) /* blocks that lie at no equal distance */
		is[(9 * i + 5) * BLOCK + 3] += 2;
	CU_ASSERT_TRUE_FATAL(choose(V, &s, &off));
	CU_ASSERT_EQUAL(s.n, VN_SOME_BLOCKS);
	for (int i = 0; i < HALF; i++)
		CU_ASSERT_TRUE(covers(&s, (9 * i + 5) * BLOCK + 3));
}

static void without_an_error_or_with_few_columns_none_are(void)
{
	vn_some_rows s;
	double       off;

	fill();
	CU_ASSERT_FALSE(choose(V, &s, &off));
	CU_ASSERT_EQUAL(s.n, 0);
	is[3] = 9;
	CU_ASSERT_TRUE(choose(4 * VN_SOME_BLOCKS * BLOCK, &s, &off));
	CU_ASSERT_FALSE(choose(4 * VN_SOME_BLOCKS * BLOCK - 1, &s, &off));
}

static void only_the_sampled_rows_count(void)
{
	vn_some_rows s;
	double       off;

	fill();
	is[3] = 9;
	CU_ASSERT_TRUE(choose(V, &s, &off));
	CU_ASSERT_FALSE(choose_in(1, V, &s, &off));
	is[V + 10003] = 9;
	CU_ASSERT_TRUE(choose_in(1, V, &s, &off));
	CU_ASSERT_TRUE(covers(&s, 10003));
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(the_worst_blocks_and_some_at_equal_distances_are_chosen),
		TEST(of_many_errors_the_largest_count),
		TEST(without_an_error_or_with_few_columns_none_are),
		TEST(only_the_sampled_rows_count),
		CU_TEST_INFO_NULL,
	};
	return run_suite("recompute_estimate_columns", tests);
}
