/* test_rearrange_number.c: tests compare/rearrange/rearrange_number.c. */
#include "compare/rearrange/rearranged.h"
#include "tests/support/explain_help.h"

#include <math.h>

/* A case at a checkpoint of the llama. The candidate is f of the expected numbers. */
typedef struct changed {
	explained     e;
	vn_site       site;
	float        *cand;
	vn_rearranged r;
} changed;

static void change(changed *c, const char *point, double (*f)(double))
{
	*c = (changed) { 0 };
	compare_llama(&c->e, NULL);
	stand_at(&c->e, point, 0);
	vn_case      *t = &c->e.t;
	const int64_t n = vn_shape_count(&t->own.shape);
	c->site = *t->site;
	c->cand = malloc((size_t)n * sizeof *c->cand);
	c->r = (vn_rearranged) { t,
		                     n,
		                     vn_case_all_doubles_of(&t->own),
		                     vn_case_all_doubles_of(&t->fine),
		                     vn_case_all_doubles_of(&t->own),
		                     vn_case_all_doubles_of(&t->own),
		                     vn_case_all_doubles_of(&t->own),
		                     &c->site.cand };
	for (int64_t i = 0; i < n; i++) {
		c->cand[i] = (float)f(c->r.own[i]);
		c->r.cand[i] = (double)c->cand[i];
	}
	c->site.cand = (vn_tensor) { VN_F32, t->own.shape, c->cand };
	t->site = &c->site;
	CU_ASSERT_EQUAL_FATAL((vn_score_unmodified(t), c->e.failed.st), VN_OK);
}

static void end_changed(changed *c)
{
	free(c->cand);
	free(c->r.own);
	free(c->r.fine);
	free(c->r.cand);
	free(c->r.a);
	free(c->r.b);
	end_explained(&c->e);
}

/* Checks that the best trial explains the checkpoint and has that finding and number. Returns
 * its first list entry. */
static int expect_number(const char *point, double (*f)(double), vn_finding finding, double number)
{
	changed c;

	change(&c, point, f);
	CU_ASSERT_EQUAL((vn_rearrange_numbers(&c.r), c.e.failed.st), VN_OK);
	CU_ASSERT_FATAL(c.e.x.n > 0);
	const vn_trial best = c.e.x.by[0];
	CU_ASSERT_TRUE(best.limit_fraction <= 1);
	CU_ASSERT_EQUAL(best.finding, finding);
	CU_ASSERT_EQUAL(best.applied.kind, VN_BY_RESULT);
	CU_ASSERT_DOUBLE_EQUAL(best.applied.result.number, number, 1e-6 * fabs(number));
	end_changed(&c);
	return best.finding == VN_FINDING_CLAMPED ? (int)best.applied.result.clamp : best.applied.result.factor;
}

static double twice(double x)
{
	return 2 * x;
}
static double quarter(double x)
{
	return x / 4;
}
static double over_root_8(double x)
{
	return x / sqrt(8);
}
static double some(double x)
{
	return 0.731 * x;
}
static double cooler(double x)
{
	return x / 0.7;
}
static double shifted(double x)
{
	return x + 0.3;
}
static double cut_above(double x)
{
	return fmin(x, 0.25);
}
static double cut_below(double x)
{
	return fmax(x, -0.25);
}
static double cut_both(double x)
{
	return fmin(fmax(x, -0.25), 0.25);
}
static double capped(double x)
{
	return 3 * tanh(x / 3);
}
static double none(double x)
{
	return 0 * x;
}
static double always_one(double x)
{
	return 0 * x + 0.375;
}

/* Heads are 8 wide, so a factor of 1 / sqrt 8 is no coincidence where there are heads. */
static void a_factor_has_its_name_where_it_means_something(void)
{
	CU_ASSERT_EQUAL(expect_number("layer1.q_proj", over_root_8, VN_FINDING_FACTOR, 1 / sqrt(8)),
	                VN_OVER_ROOT_HEAD_WIDTH);
	CU_ASSERT_EQUAL(expect_number("layer1.q_proj", twice, VN_FINDING_FACTOR, 2), VN_PLAIN_FACTOR);
	CU_ASSERT_EQUAL(expect_number("layer1.q_proj", some, VN_FINDING_FACTOR, 0.731), VN_NO_NAME);
	CU_ASSERT_EQUAL(expect_number("layer1.mlp_norm", over_root_8, VN_FINDING_FACTOR, 1 / sqrt(8)), VN_NO_NAME);
}

static void where_ranks_are_added_it_is_their_sum_or_average(void)
{
	expect_number("layer1.down_proj", twice, VN_FINDING_SUM_TIMES, 2);
	expect_number("layer1.attn_out", quarter, VN_FINDING_AVERAGE, 0.25);
}

static void of_logits_it_is_a_temperature_or_a_cap(void)
{
	expect_number("logits", cooler, VN_FINDING_TEMPERATURE, 1 / 0.7);
	expect_number("logits", capped, VN_FINDING_CAP, 3);
}

static void a_number_is_added_or_cuts_off(void)
{
	expect_number("layer1.q_proj", shifted, VN_FINDING_ADDEND, 0.3);
	CU_ASSERT_EQUAL(expect_number("layer1.q_proj", cut_above, VN_FINDING_CLAMPED, 0.25), 0);
	CU_ASSERT_EQUAL(expect_number("layer1.q_proj", cut_below, VN_FINDING_CLAMPED, -0.25), 1);
	CU_ASSERT_EQUAL(expect_number("layer1.q_proj", cut_both, VN_FINDING_CLAMPED, 0.25), 2);
}

static void one_number_everywhere_is_zero_or_another(void)
{
	static double (*const f[])(double) = { none, always_one, twice };
	static const vn_finding finding[] = { VN_FINDING_ZERO, VN_FINDING_ONE_VALUE };
	static const double     number[] = { 0, 0.375 };

	for (int i = 0; i < 3; i++) {
		changed c;
		change(&c, "layer1.q_proj", f[i]);
		CU_ASSERT_EQUAL((vn_rearrange_one_value(&c.r), c.e.failed.st), VN_OK);
		CU_ASSERT_EQUAL_FATAL(c.e.x.n, i < 2);
		if (i < 2) {
			CU_ASSERT_EQUAL(c.e.x.by[0].finding, finding[i]);
			CU_ASSERT_EQUAL(c.e.x.by[0].applied.result.number, number[i]);
			CU_ASSERT_TRUE(c.e.x.by[0].limit_fraction <= 1);
		}
		end_changed(&c);
	}
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(a_factor_has_its_name_where_it_means_something), TEST(where_ranks_are_added_it_is_their_sum_or_average),
		TEST(of_logits_it_is_a_temperature_or_a_cap),         TEST(a_number_is_added_or_cuts_off),
		TEST(one_number_everywhere_is_zero_or_another),       CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("rearranged by a number", tests);
	return !remove_folder() || failed;
}
