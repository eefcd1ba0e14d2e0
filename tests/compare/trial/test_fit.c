/* test_fit.c: tests compare/trial/fit.c. */
#include "compare/trial/fit.h"
#include "tests/support/explain_help.h"

#include <math.h>

/* A case at a checkpoint of the llama; the candidate was made with one constant changed. */
typedef struct changed {
	explained e;
	vn_site   site;
	vn_tensor made;
	vn_trial  h;
} changed;

static void change(changed *c, const char *point, const char *constant, double value)
{
	vn_plan *p = NULL;

	*c = (changed) { 0 };
	compare_llama(&c->e, NULL);
	stand_at(&c->e, point, 0);
	c->h.node = node_named(&c->e, point);
	CU_ASSERT_EQUAL_FATAL(vn_plan_clone(c->e.t.site->plan, &p, &c->e.err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_const_set(&p->node[c->h.node], constant, value, &c->e.err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(
		vn_recompute_run(c->e.t.recompute, p, c->e.t.site->weights, VN_OWN_WIDTH, &c->made, &c->e.err), VN_OK);
	vn_plan_destroy(p);
	c->site = *c->e.t.site;
	c->site.cand = c->made;
	c->e.t.site = &c->site;
	CU_ASSERT_EQUAL_FATAL((vn_score_unmodified(&c->e.t), c->e.failed.st), VN_OK);
}

static void end_changed(changed *c)
{
	vn_tensor_free(&c->made);
	end_explained(&c->e);
}

/* 31400 lies between points of the grid, and is written with three digits. */
static void a_constant_is_found_between_the_points_of_a_grid(void)
{
	changed c;

	change(&c, "layer1.q_rope", "theta", 31400);
	c.h.finding = VN_FINDING_THETA;
	const vn_range in = { .low = 100, .high = 1e7, .steps = 40 };
	CU_ASSERT_EQUAL((vn_fit_constant(&c.e.t, &c.h, in), c.e.failed.st), VN_OK);
	CU_ASSERT_EQUAL_FATAL(c.e.x.n, 1);
	CU_ASSERT_EQUAL(vn_trial_constant(&c.e.x.by[0], "theta"), 31400);
	CU_ASSERT_TRUE(c.e.x.by[0].limit_fraction <= 1);
	end_changed(&c);
}

/* The candidate has another kind of mistake: no theta removes a quarter of its error. */
static void a_vague_search_ends_where_no_point_is_near(void)
{
	changed c;

	change(&c, "layer1.q_rope", "theta", 31400);
	for (int64_t i = 0; i < vn_shape_count(&c.made.shape); i++)
		((float *)(uintptr_t)c.made.data)[i] = i % 2 ? 100 : -100;
	CU_ASSERT_EQUAL_FATAL((vn_score_unmodified(&c.e.t), c.e.failed.st), VN_OK);
	c.h.finding = VN_FINDING_THETA;
	const vn_range in = { .low = 100, .high = 1e7, .steps = 40, .vague = true };
	CU_ASSERT_EQUAL((vn_fit_constant(&c.e.t, &c.h, in), c.e.failed.st), VN_OK);
	for (int i = 0; i < c.e.x.n; i++)
		CU_ASSERT_TRUE(c.e.x.by[i].limit_fraction > 1);
	end_changed(&c);
}

static void as_few_digits_as_do_are_kept(void)
{
	changed c;

	change(&c, "layer1.q_rope", "theta", 31400);
	c.h.finding = VN_FINDING_THETA;
	vn_trial_constant_put(&c.h, "theta", 1);
	CU_ASSERT_EQUAL((vn_fit_digits(&c.e.t, &c.h, 31400.0003), c.e.failed.st), VN_OK);
	CU_ASSERT_EQUAL(vn_trial_constant(&c.h, "theta"), 31400);
	/* 31000 would be written more shortly, and does not explain it */
	CU_ASSERT_EQUAL(c.e.x.n, 1);
	end_changed(&c);
}

static void the_whole_number_that_leaves_least_is_found(void)
{
	changed c;

	change(&c, "layer1.attn_context", "window", 5);
	c.h.finding = VN_FINDING_WINDOW;
	vn_trial_constant_put(&c.h, "window", 1);
	const vn_least best = vn_case_best_whole(&c.e.t, &c.h, 1, PROMPT);
	CU_ASSERT_EQUAL(best.x, 5);
	CU_ASSERT_EQUAL(vn_trial_constant(&c.h, "window"), 5);
	CU_ASSERT_TRUE(best.error < 1e-10);
	end_changed(&c);
}

static void a_neighbour_of_the_estimate_may_be_better(void)
{
	for (int64_t estimate = 4; estimate <= 6; estimate++) {
		changed c;
		change(&c, "layer1.attn_context", "window", 5);
		c.h.finding = VN_FINDING_WINDOW;
		vn_trial_constant_put(&c.h, "window", 1);
		CU_ASSERT_EQUAL((vn_fit_whole(&c.e.t, &c.h, estimate, 1, PROMPT), c.e.failed.st), VN_OK);
		CU_ASSERT_EQUAL(vn_trial_constant(&c.h, "window"), 5);
		CU_ASSERT_TRUE(c.h.limit_fraction <= 1 && c.h.first == 0 && c.h.last == 0); /* it alone */
		CU_ASSERT_EQUAL(c.e.x.n, 1);
		end_changed(&c);
	}
}

/* One of at least as many keys as there are hides none: all of them fit, up to 64 on each side. */
static void numbers_that_fit_as_well_are_a_range(void)
{
	vn_whole_range good;
	changed        c;

	change(&c, "layer1.attn_context", "window", 0);
	c.h.finding = VN_FINDING_WINDOW;
	vn_trial_constant_put(&c.h, "window", 20);
	good = vn_case_as_good(&c.e.t, &c.h, 20, (vn_whole_range) { 1, 30 });
	CU_ASSERT_EQUAL(good.low, PROMPT);
	CU_ASSERT_EQUAL(good.high, 30);
	good = vn_case_as_good(&c.e.t, &c.h, 20, (vn_whole_range) { 19, 1000 });
	CU_ASSERT_EQUAL(good.low, 19);
	CU_ASSERT_EQUAL(good.high, 84);
	CU_ASSERT_EQUAL((vn_fit_whole(&c.e.t, &c.h, 20, 1, 30), c.e.failed.st), VN_OK);
	CU_ASSERT_TRUE(c.h.first == PROMPT && c.h.last == 30);
	end_changed(&c);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(a_constant_is_found_between_the_points_of_a_grid),
		TEST(a_vague_search_ends_where_no_point_is_near),
		TEST(as_few_digits_as_do_are_kept),
		TEST(the_whole_number_that_leaves_least_is_found),
		TEST(a_neighbour_of_the_estimate_may_be_better),
		TEST(numbers_that_fit_as_well_are_a_range),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("fit", tests);
	return !remove_folder() || failed;
}
