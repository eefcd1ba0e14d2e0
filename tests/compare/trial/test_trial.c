/* test_trial.c: tests compare/trial/trial.c. */
#include "compare/trial/trial_apply.h"
#include "tests/support/explain_help.h"

#include <math.h>

static vn_trial theta(int node, vn_applied_places places, double value)
{
	vn_trial h = { .finding = VN_FINDING_THETA, .node = node };

	vn_trial_constant_put(&h, "theta", value);
	h.applied.constants.places = places;
	return h;
}

static void ids_are_those_of_the_catalogue(void)
{
	char     id[VN_ID];
	vn_trial one = { .fault = { 1 + vn_fault_find("R3.plus") } }, two = one,
			 moved = { .finding = VN_FINDING_SLOTS_MOVED }, paired = theta(0, VN_AT_NODE, 10);

	two.fault[1] = 1 + vn_fault_find("R8");
	paired.paired = true;
	CU_ASSERT_STRING_EQUAL(vn_trial_id(&one, id), "R3.plus");
	CU_ASSERT_STRING_EQUAL(vn_trial_id(&two, id), "R3.plus+R8");
	CU_ASSERT_STRING_EQUAL(vn_trial_id(&paired, id), "R1+R2");
	CU_ASSERT_STRING_EQUAL(vn_trial_id(&(vn_trial) { .finding = VN_FINDING_FACTOR, .applied.kind = VN_BY_RESULT }, id),
	                       "");
	for (int of = 0; of < 3; of++)
		for (int past = 0; past < 2; past++) {
			vn_trial_constant_put(&moved, "cache_of", of);
			vn_trial_constant_put(&moved, "cache_form", past ? VN_CACHE_PAST : VN_CACHE_NEXT);
			CU_ASSERT_STRING_EQUAL(vn_trial_id(&moved, id), of     ? past ? "C3.after" : "C3"
			                                                : past ? "C1.after"
			                                                       : "C1.before");
			vn_trial slots = { .finding = VN_FINDING_NEW_SLOTS_MOVED,
				               .applied = { .kind = VN_BY_SLOTS, .slots = { of, past ? 4 : -4, false } } };
			CU_ASSERT_STRING_EQUAL(vn_trial_id(&slots, id), of     ? past ? "C3.after" : "C3"
			                                                : past ? "C1.late"
			                                                       : "C1.early");
		}
	CU_ASSERT_STRING_EQUAL(vn_trial_id(&(vn_trial) { .finding = VN_FINDING_NARROW }, id), "");
	CU_ASSERT_EQUAL(vn_trial_row(&one), one.fault[0] - 1);
	CU_ASSERT_EQUAL(vn_trial_row(&two), -1);
	CU_ASSERT_EQUAL(vn_trial_row(&paired), -1);
}

static void numbers_are_the_same_in_the_digits_that_are_said(void)
{
	vn_trial a = theta(3, VN_AT_NODE, 20000), b = theta(9, VN_AT_NODE, 20000.001), c = theta(3, VN_AT_NODE, 20001);
	vn_trial wide = { .finding = VN_FINDING_WINDOW, .first = 40, .last = 42 }, other = wide;

	CU_ASSERT_TRUE(vn_trial_same(&a, &b));
	CU_ASSERT_FALSE(vn_trial_same_place(&a, &b));
	CU_ASSERT_FALSE(vn_trial_same(&a, &c));
	c = a;
	c.finding = VN_FINDING_THETA_PLAIN;
	CU_ASSERT_FALSE(vn_trial_same(&a, &c));
	c = a;
	c.heads = 4;
	c.part[2] = true;
	CU_ASSERT_FALSE(vn_trial_same_place(&a, &c));
	c = a;
	c.applied.later = true;
	CU_ASSERT_FALSE(vn_trial_same(&a, &c));
	/* any of 40 to 42 is the same as any other of them */
	vn_trial_constant_put(&wide, "window", 41);
	vn_trial_constant_put(&other, "window", 40);
	CU_ASSERT_TRUE(vn_trial_same(&wide, &other));
	other.last = 43;
	CU_ASSERT_FALSE(vn_trial_same(&wide, &other));
	wide.first = wide.last = other.first = other.last = 0;
	CU_ASSERT_FALSE(vn_trial_same(&wide, &other));
}

/* Two equal answers whose unused bytes differ are one answer. */
static void bytes_that_hold_no_field_do_not_count(void)
{
	vn_trial a, b;

	memset(&a, 0, sizeof a);
	memset(&b, 0xff, sizeof b);
	memset(b.part, 0, sizeof b.part);
	b.finding = a.finding = VN_FINDING_MATRIX_TRANSPOSED;
	b.paired = b.applied.later = false;
	b.fault[0] = b.fault[1] = b.heads = 0;
	b.first = b.last = b.first_also = b.last_also = 0;
	a.applied.kind = b.applied.kind = VN_BY_MATRIX;
	b.applied.matrix.kind = VN_MATRIX_TRANSPOSED;
	b.applied.matrix.fused = b.applied.matrix.stored = false;
	b.applied.matrix.n = 0;
	memset(b.applied.matrix.from, 0, sizeof b.applied.matrix.from);
	b.applied.matrix.factor = 0;
	b.applied.matrix.format = VN_FORMAT_NONE;
	b.applied.matrix.of = VN_OF_WEIGHTS;
	b.applied.matrix.scaled = VN_NO_SCALE;
	CU_ASSERT_TRUE(vn_trial_same(&a, &b));
	b.applied.matrix.stored = true;
	CU_ASSERT_FALSE(vn_trial_same(&a, &b));
	a.applied.kind = b.applied.kind = VN_BY_READS;
	a.applied.reads.weights = b.applied.reads.weights = 3;
	a.applied.reads.matrix = b.applied.reads.matrix = false;
	memset(a.applied.reads.in, 0, sizeof a.applied.reads.in);
	memset(b.applied.reads.in, 0, sizeof b.applied.reads.in);
	CU_ASSERT_TRUE(vn_trial_same(&a, &b));
	b.applied.reads.matrix = true;
	CU_ASSERT_FALSE(vn_trial_same(&a, &b));
}

static void what_is_not_fitted_is_the_same_by_its_id(void)
{
	vn_trial a = { .finding = VN_FINDING_TEMPERATURE, .applied = { .kind = VN_BY_RESULT, .result.number = 1.25 } },
			 b = a;

	b.applied.result.number = 0.8;
	CU_ASSERT_TRUE(vn_trial_same_place(&a, &b));
	CU_ASSERT_FALSE(vn_trial_same(&a, &b));
	b.places = 2;
	CU_ASSERT_FALSE(vn_trial_same_place(&a, &b));
	CU_ASSERT_FALSE(vn_trial_is_fitted(&a));
}

static void slots_of_a_cache_are_the_same_by_what_they_hold(void)
{
	vn_trial a = { .finding = VN_FINDING_CACHE_OTHER_TOKENS,
		           .applied = { .kind = VN_BY_CACHED, .cached = { .first = 3, .n = 2, .holds = 8 } } },
			 b = a;

	CU_ASSERT_TRUE(vn_trial_same(&a, &b));
	CU_ASSERT_FALSE(vn_trial_is_fitted(&a));
	b.applied.cached.holds = 9;
	CU_ASSERT_FALSE(vn_trial_same(&a, &b));
	a = (vn_trial) { .finding = VN_FINDING_CACHE_ONE_ALONE,
		             .applied = { .kind = VN_BY_ONE_CACHED, .one_cached = { .slot = 3, .of = 1, .holds = 8 } } };
	b = a;
	CU_ASSERT_TRUE(vn_trial_same(&a, &b));
	CU_ASSERT_FALSE(vn_trial_is_fitted(&a));
	b.applied.one_cached.of = 2;
	CU_ASSERT_FALSE(vn_trial_same(&a, &b));
}

static void a_clamp_is_the_same_by_the_side_of_its_bound(void)
{
	vn_trial a = { .finding = VN_FINDING_CLAMPED,
		           .applied = { .kind = VN_BY_RESULT, .result = { .number = 3, .clamp = VN_CLAMP_ABOVE } } },
			 b = a;

	CU_ASSERT_TRUE(vn_trial_same(&a, &b));
	b.applied.result.clamp = VN_CLAMP_BELOW;
	CU_ASSERT_FALSE(vn_trial_same(&a, &b));
}

static void a_constant_is_put_once_and_the_last_is_its_number(void)
{
	vn_trial h = theta(0, VN_AT_NODE, 10);

	vn_trial_constant_put(&h, "offset", 3);
	vn_trial_constant_put(&h, "theta", 20);
	CU_ASSERT_EQUAL(h.applied.constants.n, 2);
	CU_ASSERT_EQUAL(vn_trial_constant(&h, "theta"), 20);
	CU_ASSERT_TRUE(isnan(vn_trial_constant(&h, "eps")));
	vn_trial_number_put(&h, 4);
	CU_ASSERT_EQUAL(vn_trial_constant(&h, "offset"), 4);
	CU_ASSERT_TRUE(vn_trial_is_fitted(&h));
}

/* ---- at a checkpoint ------------------------------------------------------------------------- */

static int reached(const explained *e, vn_applied_places places)
{
	const vn_trial h = theta(node_named(e, "layer1.q_rope"), places, 77);
	vn_made        made;
	int            n = 0;

	vn_trial_apply(&e->t, &h, &made);
	CU_ASSERT_PTR_NOT_NULL_FATAL(made.plan);
	for (int i = 0; i < made.plan->n_nodes; i++)
		n += made.plan->node[i].op == VN_OP_ROPE && made.plan->node[i].c.rope.rope.theta == 77;
	vn_made_finish(&made);
	return n;
}

static void a_constant_reaches_its_node_its_layer_or_all(void)
{
	explained e;

	compare_llama(&e, "R2.1e4@layer1.q_rope");
	stand_at(&e, "layer1.q_rope", 0);
	CU_ASSERT_EQUAL(reached(&e, VN_AT_NODE), 1);
	CU_ASSERT_EQUAL(reached(&e, VN_IN_LAYER), 2);
	CU_ASSERT_EQUAL(reached(&e, VN_EVERYWHERE), 2 * e.t.site->plan->layers);
	end_explained(&e);
}

static void what_comes_later_makes_nothing_in_the_first_call(void)
{
	vn_trial  h;
	vn_made   made;
	explained e;

	compare_llama(&e, "R2.1e4@layer1.q_rope");
	for (int step = 0; step < 2; step++) {
		stand_at(&e, "layer1.q_rope", step);
		h = theta(node_named(&e, "layer1.q_rope"), VN_AT_NODE, 77);
		h.applied.later = true;
		CU_ASSERT_EQUAL((vn_trial_apply(&e.t, &h, &made), e.failed.st), VN_OK);
		CU_ASSERT_EQUAL(made.plan != NULL, step > 0);
		vn_made_finish(&made);
		if (!step)
			leave_stand(&e);
	}
	end_explained(&e);
}

static void a_constant_that_it_may_not_be_makes_nothing(void)
{
	vn_trial  h = { .finding = VN_FINDING_ROTARY_WIDTH };
	vn_made   made;
	explained e;

	compare_llama(&e, "R2.1e4@layer1.q_rope");
	stand_at(&e, "layer1.q_rope", 0);
	h.node = node_named(&e, "layer1.q_rope");
	vn_trial_constant_put(&h, "no such constant", -3);
	CU_ASSERT_EQUAL((vn_trial_apply(&e.t, &h, &made), e.failed.st), VN_OK);
	CU_ASSERT_PTR_NULL(made.plan);
	vn_made_finish(&made);
	end_explained(&e);
}

static void what_is_read_moves_with_its_layer_or_not_at_all(void)
{
	vn_trial  h = { .finding = VN_FINDING_OTHER_WEIGHTS, .applied = { .kind = VN_BY_READS } };
	explained e;

	compare_llama(&e, "R2.1e4@layer1.q_rope");
	stand_at(&e, "layer1.q_rope", 0);
	const int here = node_named(&e, "layer1.q_proj"), below = node_named(&e, "layer0.q_proj");
	h.node = below;
	h.applied.reads.weights = 1 + here;
	vn_trial up = h;
	CU_ASSERT_FALSE(vn_trial_move(&e.t, &up, here)); /* there is no layer 2 */
	const vn_plan *p = e.t.site->plan;
	const int      up_proj[] = { node_named(&e, "layer0.up_proj"), node_named(&e, "layer1.up_proj") };
	h = (vn_trial) { .node = up_proj[1],
		             .applied = { .kind = VN_BY_READS,
		                          .reads.in = { 1 + vn_plan_root(p, vn_plan_find(p, "layer1.attn_norm")) } } };
	CU_ASSERT_TRUE(vn_trial_move(&e.t, &h, up_proj[0]));
	CU_ASSERT_EQUAL(h.applied.reads.in[0], 1 + vn_plan_root(p, vn_plan_find(p, "layer0.attn_norm")));
	CU_ASSERT_EQUAL(h.node, up_proj[0]);
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(ids_are_those_of_the_catalogue),
		TEST(numbers_are_the_same_in_the_digits_that_are_said),
		TEST(bytes_that_hold_no_field_do_not_count),
		TEST(what_is_not_fitted_is_the_same_by_its_id),
		TEST(slots_of_a_cache_are_the_same_by_what_they_hold),
		TEST(a_clamp_is_the_same_by_the_side_of_its_bound),
		TEST(a_constant_is_put_once_and_the_last_is_its_number),
		TEST(a_constant_reaches_its_node_its_layer_or_all),
		TEST(what_comes_later_makes_nothing_in_the_first_call),
		TEST(a_constant_that_it_may_not_be_makes_nothing),
		TEST(what_is_read_moves_with_its_layer_or_not_at_all),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("trial", tests);
	return !remove_folder() || failed;
}
