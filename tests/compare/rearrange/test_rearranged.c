/* test_rearranged.c: tests compare/rearrange/rearranged.c. */
#include "compare/rearrange/rearranged.h"
#include "tests/support/explain_help.h"

#include <math.h>

/* Value 0 is made by node 0, value 1 of it by node 1, value 2 of nothing by node 2;
 * value 3 is a view of value 1. */
static void what_is_made_of_a_value_is_found_through_its_inputs(void)
{
	vn_node       node[] = { { .out = { 0 } }, { .n_in = 1, .in = { 3 }, .out = { 4 } }, { .out = { 2 } } };
	vn_value      value[] = { { .node = 0, .alias_of = -1 },
		                      { .node = 0, .alias_of = -1 },
		                      { .node = 2, .alias_of = -1 },
		                      { .node = 0, .alias_of = 0 },
		                      { .node = 1, .alias_of = -1 } };
	const vn_plan p = { .n_nodes = 3, .node = node, .n_values = 5, .value = value };

	CU_ASSERT_TRUE(vn_rearrange_is_made_of(&p, 0, 0));
	CU_ASSERT_TRUE(vn_rearrange_is_made_of(&p, 4, 0)); /* by the view */
	CU_ASSERT_FALSE(vn_rearrange_is_made_of(&p, 0, 4));
	CU_ASSERT_FALSE(vn_rearrange_is_made_of(&p, 2, 0));
}

static void numbers_are_doubles_whatever_they_were(void)
{
	const uint16_t  half[] = { 0x3c00, 0xc000, 0x7c00 }; /* 1, -2, infinity */
	const vn_tensor x = { VN_F16, { 1, { 3 } }, half };
	double         *y = vn_case_all_doubles_of(&x);

	CU_ASSERT_PTR_NOT_NULL_FATAL(y);
	CU_ASSERT_EQUAL(y[0], 1);
	CU_ASSERT_EQUAL(y[1], -2);
	CU_ASSERT_TRUE(isinf(y[2]));
	CU_ASSERT_TRUE(vn_rearrange_any_finite(y, 3));
	CU_ASSERT_FALSE(vn_rearrange_any_finite(y + 2, 1));
	free(y);
}

static void the_operation_of_another_checkpoint_may_be_wrong_itself(void)
{
	explained e;

	compare_llama(&e, "R1@layer1.q_rope");
	const vn_comparison *c = &e.compared.c;
	CU_ASSERT_TRUE(vn_rearrange_is_wrong_itself(&c->result, checkpoint_at(&e, "layer1.q_rope", 0)->cand));
	CU_ASSERT_FALSE(vn_rearrange_is_wrong_itself(&c->result, checkpoint_at(&e, "layer1.q_proj", 0)->cand));
	/* its error is that of the capture of its input */
	vn_checkpoint *p = &e.compared.c.result.checkpoints
	                        .of[checkpoint_at(&e, "layer1.q_rope", 0) - c->result.checkpoints.of];
	p->replay.charged_to = (int)(checkpoint_at(&e, "layer1.q_proj", 0) - c->result.checkpoints.of);
	CU_ASSERT_FALSE(vn_rearrange_is_wrong_itself(&c->result, p->cand));
	finish(&e.compared);
}

/* The queries of a step with adjacent columns paired: the recorded numbers, judged as an
 * arrangement, leave no error. */
static void an_arrangement_is_judged_as_the_stored_result(void)
{
	explained e;

	compare_llama(&e, "R1@layer1.q_rope");
	stand_at(&e, "layer1.q_rope", 0);
	const vn_tensor *cand = &e.t.site->cand;
	vn_rearranged    r = { .t = &e.t, .n = vn_shape_count(&cand->shape), .like = cand };
	vn_trial         h = { .finding = VN_FINDING_FACTOR };
	r.a = vn_case_all_doubles_of(cand);
	r.b = vn_case_all_doubles_of(cand);
	CU_ASSERT_FATAL(r.a && r.b);
	r.a[0] += 1e-12; /* below float32, in which the engine stores */
	CU_ASSERT_EQUAL((vn_rearranged_judge(&r, NULL, &h), e.failed.st), VN_OK);
	CU_ASSERT_EQUAL_FATAL(e.x.n, 1);
	CU_ASSERT_EQUAL(e.x.by[0].applied.kind, VN_BY_RESULT);
	CU_ASSERT_EQUAL(e.x.by[0].node, node_named(&e, "layer1.q_rope"));
	CU_ASSERT_TRUE(e.x.by[0].limit_fraction <= 1);
	CU_ASSERT_EQUAL((double)(float)r.a[0], r.a[0]);
	r.a[0] = r.b[0] = 9; /* one number off */
	h = (vn_trial) { .finding = VN_FINDING_FACTOR };
	CU_ASSERT_EQUAL((vn_rearranged_judge(&r, &r.t->reference_variants, &h), e.failed.st), VN_OK);
	CU_ASSERT_EQUAL_FATAL(e.x.n, 2);
	CU_ASSERT_TRUE(e.x.by[1].limit_fraction > 1);
	free(r.a);
	free(r.b);
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(what_is_made_of_a_value_is_found_through_its_inputs),
		TEST(numbers_are_doubles_whatever_they_were),
		TEST(the_operation_of_another_checkpoint_may_be_wrong_itself),
		TEST(an_arrangement_is_judged_as_the_stored_result),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("rearranged", tests);
	return !remove_folder() || failed;
}
