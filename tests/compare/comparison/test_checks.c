/* test_checks.c: checks of a checkpoint are kept unchanged, and their equal parts are stored
 * once. */
#include "compare/comparison/checks.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>

enum { MANY = 3000 };

/* As the checks of one name are, step for step, but for their values. */
static void give_checks(vn_comparison *c, vn_checkpoint *p, double value)
{
	const vn_check k[] = {
		{ .metric = VN_M_NMSE, .form = VN_PLAIN, .limit = 1e-4, .value = value, .holds = value <= 1e-4, .line = 3 },
		{ .metric = VN_M_COSINE,
		  .form = VN_PLAIN,
		  .limit = (double)NAN,
		  .value = (double)NAN,
		  .note = "not measured",
		  .steps = 8 },
	};
	vn_checks_keep(&c->result.checkpoints.terms, p, k, 2);
}

static void checks_come_back_as_they_were_given(void)
{
	vn_comparison c = { 0 };
	vn_checkpoint p = { .name = "x" };

	give_checks(&c, &p, 1e-5);
	CU_ASSERT_EQUAL_FATAL(p.n_checks, 2);
	const vn_check a = vn_check_at(&p, 0), b = vn_check_at(&p, 1);
	CU_ASSERT(a.metric == VN_M_NMSE && a.form == VN_PLAIN && a.limit == 1e-4 && a.value == 1e-5 && a.holds &&
	          a.line == 3 && !a.note && a.steps == 0);
	CU_ASSERT(b.metric == VN_M_COSINE && isnan(b.limit) && isnan(b.value) && !b.holds && b.steps == 8);
	CU_ASSERT_STRING_EQUAL(b.note, "not measured");
	vn_checks_drop(&p);
	CU_ASSERT_EQUAL(p.n_checks, 0);
	vn_terms_free(&c.result.checkpoints.terms);
}

static void what_is_equal_is_kept_once(void)
{
	vn_comparison  c = { 0 };
	vn_checkpoint *p = calloc(MANY, sizeof *p);

	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	for (int i = 0; i < MANY; i++)
		give_checks(&c, &p[i], i % 2 ? 1e-5 + 1e-9 * i : 1.0 + i);
	int wrong = 0;
	for (int i = 0; i < MANY; i++) /* nmse that holds and that does not, and cosine, whose limit is a NaN */
		wrong += p[i].check[0].terms != p[i % 2].check[0].terms || p[i].check[1].terms != p[0].check[1].terms;
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_PTR_NOT_EQUAL(p[0].check[0].terms, p[1].check[0].terms);
	for (int i = 0; i < MANY; i++)
		wrong += vn_check_at(&p[i], 0).value != (i % 2 ? 1e-5 + 1e-9 * i : 1.0 + i) ||
		         vn_check_at(&p[i], 0).holds != (i % 2 == 1);
	CU_ASSERT_EQUAL(wrong, 0);
	for (int i = 0; i < MANY; i++)
		vn_checks_drop(&p[i]);
	free(p);
	vn_terms_free(&c.result.checkpoints.terms);
}

static void terms_that_differ_in_anything_are_two(void)
{
	static const vn_rule rule[2];
	const vn_check       k[] = {
			  { .limit = 0 },       { .limit = -0.0 },    { .metric = VN_M_NMSE }, { .form = VN_OVER_FLOOR },
			  { .best = 1 },        { .has_best = true }, { .holds = true },       { .rule = &rule[0] },
			  { .rule = &rule[1] }, { .line = 1 },        { .note = "" },          { .steps = 1 },
	};
	enum { N = sizeof k / sizeof *k };
	vn_comparison c = { 0 };
	vn_checkpoint p = { .name = "x" };

	for (int turn = 0; turn < 2; turn++)
		for (int i = 0; i < N; i++)
			vn_checks_add(&c.result.checkpoints.terms, &p, &k[i]);
	CU_ASSERT_EQUAL_FATAL(p.n_checks, 2 * N);
	for (int i = 0; i < N; i++)
		for (int j = 0; j < 2 * N; j++)
			CU_ASSERT_EQUAL(p.check[i].terms == p.check[j].terms, i == j % N);
	vn_checks_drop(&p);
	vn_terms_free(&c.result.checkpoints.terms);
}

static void one_that_is_set_leaves_those_of_other_checkpoints(void)
{
	vn_comparison c = { 0 };
	vn_checkpoint p = { .name = "x" }, q = { .name = "x" };

	give_checks(&c, &p, 1e-5);
	give_checks(&c, &q, 1e-5);
	vn_check k = vn_check_at(&p, 0);
	k.best = 1e-6;
	k.has_best = true;
	vn_checks_set(&c.result.checkpoints.terms, &p, 0, &k);
	CU_ASSERT(vn_check_at(&p, 0).has_best && vn_check_at(&p, 0).best == 1e-6 && vn_check_at(&p, 0).value == 1e-5);
	CU_ASSERT_FALSE(vn_check_at(&q, 0).has_best);
	vn_checks_drop(&p);
	vn_checks_drop(&q);
	vn_terms_free(&c.result.checkpoints.terms);
}

int main(void)
{
	static CU_TestInfo tests[] = { TEST(checks_come_back_as_they_were_given), TEST(what_is_equal_is_kept_once),
		                           TEST(terms_that_differ_in_anything_are_two),
		                           TEST(one_that_is_set_leaves_those_of_other_checkpoints), CU_TEST_INFO_NULL };
	return run_suite("checks", tests);
}
