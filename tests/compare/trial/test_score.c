/* test_score.c: tests compare/trial/score.c. */
#include "tests/support/explain_help.h"

#include <math.h>

static vn_trial leaving(double limit_fraction, double nmse)
{
	return (vn_trial) { .limit_fraction = limit_fraction, .residual.local = nmse };
}

static void those_that_leave_least_stand_first_and_the_rest_are_dropped(void)
{
	vn_trial     by[VN_EXPLAIN_KEPT];
	vn_findings  x = { .by = by };
	const double in_turn[] = { 5, (double)NAN, 3, 9, 1, 7, 2, 8, 4, 6, 0.5, 1 };

	for (size_t i = 0; i < sizeof in_turn / sizeof *in_turn; i++) {
		const vn_trial h = leaving(in_turn[i], 0);
		vn_case_keep(&x, &h);
	}
	const double kept[] = { 0.5, 1, 1, 2, 3, 4, 5, 6 };
	CU_ASSERT_EQUAL_FATAL(x.n, VN_EXPLAIN_KEPT);
	for (int i = 0; i < x.n; i++)
		CU_ASSERT_EQUAL(by[i].limit_fraction, kept[i]);
}

/* Does a trial that leaves this much explain the checkpoint, given what the unmodified
 * operation leaves? */
static bool fits(double unmodified, bool fitted, double left, double share_of_nmse)
{
	vn_findings    x = { .fitted = fitted, .unmodified = leaving(unmodified, 1) };
	const vn_case  t = { .x = &x };
	const vn_trial h = leaving(left, share_of_nmse);

	return vn_case_fits(&t, &h);
}

static void an_answer_leaves_what_a_correct_operation_may_and_a_share_of_the_error(void)
{
	CU_ASSERT_TRUE(fits(1e6, false, 1, 0.1));
	CU_ASSERT_FALSE(fits(1e6, false, 1.01, 0.1));
	CU_ASSERT_FALSE(fits(1e6, false, (double)NAN, 0.1));
	CU_ASSERT_FALSE(fits(1e6, false, 0.5, 0.6)); /* a wide floor of its own */
	CU_ASSERT_TRUE(fits(4, false, 1, 0.1));      /* a quarter */
	CU_ASSERT_FALSE(fits(4, true, 1, 0.1));      /* a sixteenth of what is fitted */
	CU_ASSERT_TRUE(fits(4, true, 0.25, 0.1));
	CU_ASSERT_FALSE(fits(3.9, false, 0.9, 0.1)); /* and of little */
}

static void aliases_leave_less_than_twice_as_much_and_a_refuted_one_is_none(void)
{
	vn_trial    by[VN_EXPLAIN_KEPT] = { leaving(0.3, 0), leaving(0.5, 0), leaving(0.7, 0), leaving(30, 0) };
	vn_findings x = { .by = by, .n = 4, .unmodified = leaving(1e6, 1) };
	vn_case     t = { .x = &x };

	vn_case_conclude(&t);
	CU_ASSERT_EQUAL(x.n_fit, 3);
	CU_ASSERT_EQUAL(x.n_alias, 2);
	CU_ASSERT_DOUBLE_EQUAL(x.margin, 0.7 / 0.3, 1e-12);
	CU_ASSERT_TRUE(vn_case_answered(&t));
	by[1].refuted = true;
	vn_case_conclude(&t);
	CU_ASSERT_EQUAL(x.n_fit, 1);
	by[0].limit_fraction = 2;
	vn_case_conclude(&t);
	CU_ASSERT_EQUAL(x.n_fit, 0);
	CU_ASSERT_FALSE(vn_case_answered(&t));
	/* what is next to nothing is not told apart from nothing */
	by[0] = leaving(0, 0);
	by[1] = leaving(0.1, 0);
	vn_case_conclude(&t);
	CU_ASSERT_EQUAL(x.n_alias, 2);
}

/* Numbers of slots are computed in double, so that an answer of bits that agree does not exclude
 * them; they exclude what leaves more, unless a factor of the result says the same. */
static void an_answer_of_slots_is_alone_if_others_leave_more(void)
{
	const double   half = 0.6 / VN_LOCAL_LIMIT, none = 1e-3 / VN_LOCAL_LIMIT; /* of a floor */
	const vn_trial slots = { .limit_fraction = none, .applied.kind = VN_BY_SLOTS, .finding = VN_FINDING_SLOTS_MOVED },
				   scaled = { .limit_fraction = none,
		                      .applied.kind = VN_BY_CHANGED,
		                      .finding = VN_FINDING_CACHE_SCALED };
	vn_trial other = { .limit_fraction = half, .finding = VN_FINDING_FAULT }, also = slots;

	CU_ASSERT_FALSE(vn_case_as_small(&other, &slots));
	CU_ASSERT_FALSE(vn_case_as_small(&other, &scaled));
	other.finding = VN_FINDING_FACTOR;
	CU_ASSERT_FALSE(vn_case_as_small(&other, &slots));
	CU_ASSERT_TRUE(vn_case_as_small(&other, &scaled));
	also.limit_fraction = half;
	other.limit_fraction = none;
	CU_ASSERT_TRUE(vn_case_as_small(&also, &other));
	also.limit_fraction = 4 * half;
	CU_ASSERT_FALSE(vn_case_as_small(&also, &other));
}

static void an_equal_answer_of_slots_stands_before_one_that_leaves_less_and_is_not(void)
{
	const double one = 1 / VN_LOCAL_LIMIT; /* a floor */
	vn_trial     slots = { .limit_fraction = 0.01 * one, .applied.kind = VN_BY_SLOTS, .node = 1 }, also = slots;
	vn_trial     by[VN_EXPLAIN_KEPT] = { slots, leaving(0.6 * one, 0), also, leaving(0.8 * one, 0) };
	vn_findings  x = { .by = by, .n = 4, .unmodified = leaving(1e6, 1) };
	vn_case      t = { .x = &x };

	by[2].limit_fraction = 0.7 * one;
	for (int i = 0; i < x.n; i++) { /* four mistakes at four places */
		by[i].finding = i % 2 ? VN_FINDING_SCORE_SCALE : VN_FINDING_SLOTS_MOVED;
		by[i].node = i + 1;
	}
	vn_case_conclude(&t);
	CU_ASSERT_EQUAL_FATAL(x.n, 4);
	CU_ASSERT_EQUAL(x.n_fit, 4);
	CU_ASSERT_EQUAL(x.n_alias, 2);
	CU_ASSERT_EQUAL(by[1].node, 3);
	CU_ASSERT_EQUAL(by[2].node, 2);
	CU_ASSERT_DOUBLE_EQUAL(x.margin, 0.6 / 0.25, 1e-12);
	/* a later one that is best changes who is equal, and the others stand in order again */
	const vn_trial best = { .limit_fraction = 0.005 * one, .finding = VN_FINDING_FAULT };
	vn_case_keep(&x, &best);
	vn_case_conclude(&t);
	CU_ASSERT_EQUAL(x.n_alias, 3);
	CU_ASSERT_EQUAL(by[0].node, 0);
	CU_ASSERT_EQUAL(by[3].node, 2);
	CU_ASSERT_EQUAL(by[4].node, 4);
}

static void one_mistake_made_and_read_off_the_numbers_is_one_answer(void)
{
	vn_trial    by[VN_EXPLAIN_KEPT] = { leaving(0.3, 0), leaving(0.4, 0), leaving(0.5, 0) };
	vn_findings x = { .by = by, .n = 3, .unmodified = leaving(1e6, 1) };
	vn_case     t = { .x = &x };

	by[0].fault[0] = 1 + vn_fault_find("A9");
	by[1].finding = VN_FINDING_AXES_BEFORE_TOKENS;
	by[2].finding = VN_FINDING_AXES_BEFORE_TOKENS;
	by[2].node = 7; /* elsewhere */
	vn_case_conclude(&t);
	CU_ASSERT_EQUAL_FATAL(x.n, 2);
	CU_ASSERT_EQUAL(by[0].finding, VN_FINDING_FAULT);
	CU_ASSERT_EQUAL(by[1].node, 7);
	CU_ASSERT_EQUAL(x.n_alias, 2);
}

static void a_key_that_has_a_probability_is_not_masked(void)
{
	vn_trial  window = { .finding = VN_FINDING_WINDOW }, scale = { .finding = VN_FINDING_SCORE_SCALE };
	explained e;

	compare_llama(&e, "A1.missing@layer1.attn_context");
	stand_at(&e, "layer1.attn_probs", 0);
	window.node = scale.node = node_named(&e, "layer1.attn_probs");
	vn_trial_constant_put(&window, "window", PROMPT - 1); /* the last query does not see the first key */
	vn_trial_constant_put(&scale, "scale", 1);
	CU_ASSERT_EQUAL((vn_score(&e.t, &window), e.failed.st), VN_OK);
	CU_ASSERT_EQUAL(window.residual.bad, e.t.site->plan->node[window.node].c.attention.heads);
	CU_ASSERT_TRUE(isinf(window.limit_fraction));
	CU_ASSERT_EQUAL((vn_score(&e.t, &scale), e.failed.st), VN_OK);
	CU_ASSERT_TRUE(scale.residual.bad == 0 && scale.limit_fraction <= 1);
	end_explained(&e);
}

/* In 16 bits another correct softmax rounds differently from the reference's, in every order. */
static void an_arrangement_has_the_floors_of_other_correct_engines(void)
{
	vn_trial  plain = { .finding = VN_FINDING_AXES_BEFORE_TOKENS, .applied.kind = VN_BY_RESULT }, h = plain;
	explained e;

	compare_llama(&e, "A9@layer1.attn_context");
	stand_at(&e, "layer1.attn_context", 0);
	e.t.reference_variants.floor = e.t.reference_variants.floor_token = 1;
	e.t.reference_variants.floor_max = 1e3;
	CU_ASSERT_EQUAL((vn_try_numbers(&e.t, &e.t.own, &e.t.fine, NULL, &plain), e.failed.st), VN_OK);
	CU_ASSERT_EQUAL((vn_try_numbers(&e.t, &e.t.own, &e.t.fine, &e.t.reference_variants, &h), e.failed.st), VN_OK);
	CU_ASSERT_TRUE(plain.limit_fraction > 1000);
	CU_ASSERT_TRUE(h.limit_fraction <= 1);
	end_explained(&e);
}

static void the_mistake_that_was_made_leaves_nothing_and_the_unmodified_operation_much(void)
{
	vn_trial  right = { .finding = VN_FINDING_THETA }, wrong;
	explained e;

	compare_llama(&e, "R2.1e4@layer1.q_rope");
	stand_at(&e, "layer1.q_rope", 0);
	right.node = node_named(&e, "layer1.q_rope");
	vn_trial_constant_put(&right, "theta", 1e4);
	wrong = right;
	vn_trial_constant_put(&wrong, "theta", 1e3);
	CU_ASSERT_TRUE(e.x.unmodified.limit_fraction > 1000);
	CU_ASSERT_EQUAL((vn_try(&e.t, &wrong), e.failed.st), VN_OK);
	CU_ASSERT_EQUAL((vn_try(&e.t, &right), e.failed.st), VN_OK);
	CU_ASSERT_TRUE(right.limit_fraction <= 1 && wrong.limit_fraction > 1000);
	CU_ASSERT_EQUAL(e.x.n, 2);
	vn_case_conclude(&e.t);
	CU_ASSERT_EQUAL(e.x.n_alias, 1);
	CU_ASSERT_EQUAL(vn_trial_constant(&e.x.by[0], "theta"), 1e4);
	end_explained(&e);
}

static void what_changes_nothing_here_is_no_trial(void)
{
	vn_trial  h = { .finding = VN_FINDING_EPS };
	explained e;

	compare_llama(&e, "R2.1e4@layer1.q_rope");
	stand_at(&e, "layer1.q_rope", 0);
	h.node = node_named(&e, "layer1.mlp_norm"); /* behind it */
	vn_trial_constant_put(&h, "eps", 3);
	CU_ASSERT_EQUAL((vn_try(&e.t, &h), e.failed.st), VN_OK);
	CU_ASSERT_TRUE(isnan(h.limit_fraction));
	CU_ASSERT_EQUAL(e.x.n, 0);
	end_explained(&e);
}

static void what_the_step_before_recorded_is_held_against_this_one(void)
{
	vn_trial  h = { .finding = VN_FINDING_STEP_STALE, .applied.kind = VN_BY_STEP };
	explained e;

	compare_llama(&e, "R2.1e4@layer1.q_rope");
	stand_at(&e, "layer1.q_rope", 2);
	h.node = node_named(&e, "layer1.q_rope");
	CU_ASSERT_EQUAL((vn_score(&e.t, &h), e.failed.st), VN_OK);
	CU_ASSERT_TRUE(isnan(h.limit_fraction)); /* the step before is wrong, too */
	end_explained(&e);
	compare_llama(&e, "R2.1e4@layer1.q_rope");
	stand_at(&e, "layer0.q_rope", 2);
	h.node = node_named(&e, "layer0.q_rope");
	CU_ASSERT_EQUAL((vn_score(&e.t, &h), e.failed.st), VN_OK);
	CU_ASSERT_TRUE(h.limit_fraction > 1000);
	h.applied.step.due = true;
	CU_ASSERT_EQUAL((vn_score(&e.t, &h), e.failed.st), VN_OK);
	CU_ASSERT_TRUE(h.limit_fraction > 1000);
	CU_ASSERT_TRUE(e.t.site->first == TOKENS - 1); /* and the recomputation is back */
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(those_that_leave_least_stand_first_and_the_rest_are_dropped),
		TEST(an_answer_leaves_what_a_correct_operation_may_and_a_share_of_the_error),
		TEST(aliases_leave_less_than_twice_as_much_and_a_refuted_one_is_none),
		TEST(an_answer_of_slots_is_alone_if_others_leave_more),
		TEST(an_equal_answer_of_slots_stands_before_one_that_leaves_less_and_is_not),
		TEST(one_mistake_made_and_read_off_the_numbers_is_one_answer),
		TEST(a_key_that_has_a_probability_is_not_masked),
		TEST(an_arrangement_has_the_floors_of_other_correct_engines),
		TEST(the_mistake_that_was_made_leaves_nothing_and_the_unmodified_operation_much),
		TEST(what_changes_nothing_here_is_no_trial),
		TEST(what_the_step_before_recorded_is_held_against_this_one),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("score", tests);
	return !remove_folder() || failed;
}
