/* test_trial_apply.c: tests compare/trial/trial_apply.c. */
#include "compare/trial/trial_apply.h"
#include "tests/support/explain_help.h"

static explained e;

/* The value of a constant of a node of a plan; 0 is never one of those that are asked for. */
static double constant(const vn_plan *p, const char *of, const char *name)
{
	const vn_node *n = &p->node[p->value[vn_plan_root(p, vn_plan_find(p, of))].node];

	for (int i = 0; vn_const_name(n->op, i); i++)
		if (strcmp(vn_const_name(n->op, i), name) == 0)
			return vn_const_get(n, i);
	return 0;
}

static vn_trial with_theta(double theta, vn_applied_places places)
{
	vn_trial h = { .finding = VN_FINDING_THETA, .node = node_named(&e, "layer1.q_rope") };

	vn_trial_constant_put(&h, "theta", theta);
	h.applied.constants.places = places;
	return h;
}

static void constants_change_as_far_as_they_reach(void)
{
	static const struct {
		vn_applied_places places;
		bool              beside, below; /* the other rotation of the layer, one of another layer */
	} of[] = { { VN_AT_NODE, false, false }, { VN_IN_LAYER, true, false }, { VN_EVERYWHERE, true, true } };

	stand_at(&e, "layer1.q_rope", 0);
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		const vn_trial h = with_theta(123.0, of[i].places);
		vn_plan       *p = vn_trial_plan(&e.t, &h);
		CU_ASSERT_PTR_NOT_NULL_FATAL(p);
		CU_ASSERT_EQUAL(constant(p, "layer1.q_rope", "theta"), 123.0);
		CU_ASSERT_EQUAL(constant(p, "layer1.k_rope", "theta") == 123.0, of[i].beside);
		CU_ASSERT_EQUAL(constant(p, "layer0.q_rope", "theta") == 123.0, of[i].below);
		CU_ASSERT_TRUE(constant(e.t.site->plan, "layer1.q_rope", "theta") > 123.0);
		vn_plan_destroy(p);
	}
	leave_stand(&e);
}

static void a_constant_out_of_range_makes_no_plan(void)
{
	stand_at(&e, "layer1.q_rope", 0);
	const vn_trial h = with_theta(-1.0, VN_AT_NODE);
	CU_ASSERT_PTR_NULL(vn_trial_plan(&e.t, &h));
	CU_ASSERT_EQUAL(e.failed.st, VN_OK);
	leave_stand(&e);
}

static void what_is_true_of_later_calls_changes_nothing_in_the_first(void)
{
	for (int step = 0; step < 2; step++) {
		vn_made made;
		stand_at(&e, "layer1.q_rope", step);
		vn_trial h = with_theta(123.0, VN_AT_NODE);
		h.applied.later = true;
		CU_ASSERT_EQUAL((vn_trial_apply(&e.t, &h, &made), e.failed.st), VN_OK);
		CU_ASSERT_EQUAL(made.plan != NULL, step > 0);
		vn_made_finish(&made);
		leave_stand(&e);
	}
}

static void weights_of_another_product_are_read(void)
{
	stand_at(&e, "layer1.q_proj", 0);
	vn_trial       h = { .node = node_named(&e, "layer1.q_proj"), .applied = { .kind = VN_BY_READS } };
	const int      other = node_named(&e, "layer0.q_proj");
	const vn_plan *own = e.t.site->plan;

	h.applied.reads.weights = 1 + other;
	vn_plan *p = vn_trial_plan(&e.t, &h);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_EQUAL(p->node[h.node].w[0], own->node[other].w[0]);
	CU_ASSERT_NOT_EQUAL(own->node[h.node].w[0], own->node[other].w[0]);
	vn_plan_destroy(p);
	leave_stand(&e);
}

/* The weights of a neighbouring layer, which the first and the last of two layers
 * lack on one side. */
static void a_trial_moves_with_what_it_reads(void)
{
	stand_at(&e, "layer1.q_proj", 0);
	vn_trial h = { .node = node_named(&e, "layer0.q_proj"), .applied = { .kind = VN_BY_READS } };

	h.applied.reads.weights = 1 + node_named(&e, "layer1.q_proj");
	CU_ASSERT_FALSE(vn_trial_move(&e.t, &h, node_named(&e, "layer1.q_proj")));
	h = (vn_trial) { .node = node_named(&e, "layer1.q_proj"), .applied = { .kind = VN_BY_READS } };
	h.applied.reads.weights = 1 + node_named(&e, "layer0.q_proj");
	CU_ASSERT_FALSE(vn_trial_move(&e.t, &h, node_named(&e, "layer0.q_proj")));
	h = with_theta(123.0, VN_AT_NODE);
	CU_ASSERT_TRUE(vn_trial_move(&e.t, &h, node_named(&e, "layer0.k_rope")));
	CU_ASSERT_EQUAL(h.node, node_named(&e, "layer0.k_rope"));
	leave_stand(&e);
}

static void only_what_existed_and_fits_may_be_read(void)
{
	stand_at(&e, "layer1.q_proj", 0);
	const vn_plan *p = e.t.site->plan;
	const vn_node *n = &p->node[node_named(&e, "layer1.q_proj")];
	const struct {
		const char *name;
		bool        may;
	} of[] = {
		{ "layer0.attn_norm", true },  { "layer0.output", true }, { "layer1.attn_norm", false }, /* its own */
		{ "layer1.mlp_norm", false },                                                            /* made later */
		{ "layer0.gate_proj", false },                                                           /* another shape */
	};
	for (size_t i = 0; i < sizeof of / sizeof *of; i++)
		CU_ASSERT_EQUAL(vn_case_could_read(&e.t, n, 0, vn_plan_root(p, vn_plan_find(p, of[i].name))), of[i].may);
	leave_stand(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(constants_change_as_far_as_they_reach),
		TEST(a_constant_out_of_range_makes_no_plan),
		TEST(what_is_true_of_later_calls_changes_nothing_in_the_first),
		TEST(weights_of_another_product_are_read),
		TEST(a_trial_moves_with_what_it_reads),
		TEST(only_what_existed_and_fits_may_be_read),
		CU_TEST_INFO_NULL,
	};
	return run_suite_of_correct("trial_apply", tests, &e);
}
