/* test_explain_point.c: tests compare/explain/explain_point.c. */
#include "compare/explain/explain_point.h"
#include "tests/support/explain_help.h"

/* A run whose queries and keys are rotated with adjacent columns paired,
 * and an explanation that is empty. */
typedef struct asked {
	explained   e;
	vn_findings other; /* of the same point in another layer */
	vn_trial    by[VN_EXPLAIN_KEPT];
} asked;

static void explain_fault(asked *a, const char *fault, const char *name)
{
	*a = (asked) { .other = { .same_answer_as = -1 } };
	compare_llama(&a->e, fault);
	a->e.x.checkpoint = (int)(checkpoint_at(&a->e, name, 0) - a->e.compared.c.result.checkpoints.of);
	a->e.x.by = a->by;
	a->e.t = (vn_case) {
		.failed = &a->e.failed, .opened = &a->e.compared.c.opened, .result = &a->e.compared.c.result, .x = &a->e.x
	};
	CU_ASSERT_EQUAL_FATAL(vn_recompute_create(a->e.t.opened, &a->e.t.result->checkpoints, &a->e.t.recompute, &a->e.err),
	                      VN_OK);
	a->e.t.site = vn_recompute_site(a->e.t.recompute);
}

static void end_asked(asked *a)
{
	CU_ASSERT_PTR_NULL(a->e.t.own.data); /* nothing is left of a point */
	CU_ASSERT_PTR_NULL(a->e.t.like);
	vn_lines_free(&a->e.x.error_shape);
	vn_recompute_destroy(a->e.t.recompute);
	finish(&a->e.compared);
}

static const char *id_of(const asked *a, int i)
{
	static char id[VN_ID];
	return vn_trial_id(&a->e.x.by[i], id);
}

static void a_fault_of_the_catalogue_comes_before_fitted_numbers(void)
{
	asked a;

	explain_fault(&a, "R1@layer1.q_rope", "layer1.q_rope");
	CU_ASSERT_EQUAL((vn_explain_point(&a.e.t, NULL), a.e.failed.st), VN_OK);
	CU_ASSERT_FATAL(a.e.x.n_fit > 0);
	CU_ASSERT_STRING_EQUAL(id_of(&a, 0), "R1");
	CU_ASSERT_FALSE(a.e.x.fitted);
	CU_ASSERT_TRUE(a.e.x.n_tried > 5);
	end_asked(&a);
}

/* Answers that other steps refuted are not found again: neither those of the catalogue, nor, if a
 * fitted one was refuted, what the same fit would find. Pairs of faults and faults in some heads,
 * which are tried on either occasion, are left out here. */
static void what_was_refuted_is_not_tried_again(void)
{
	for (int fitted = 0; fitted < 2; fitted++) {
		asked a;
		explain_fault(&a, "R1@layer1.q_rope", "layer1.q_rope");
		a.e.t.brief = a.e.t.whole = true;
		CU_ASSERT_EQUAL((vn_explain_further(&a.e.t, fitted), a.e.failed.st), VN_OK);
		CU_ASSERT_EQUAL(a.e.x.n_tried, 0);
		CU_ASSERT_TRUE(a.e.x.fitted);
		CU_ASSERT_EQUAL(a.e.x.n == 0, fitted);
		for (int i = 0; i < a.e.x.n; i++)
			CU_ASSERT_STRING_NOT_EQUAL(id_of(&a, i), "R1");
		end_asked(&a);
	}
}

static void nothing_is_tried_after_a_failure(void)
{
	asked a;

	explain_fault(&a, "R1@layer1.q_rope", "layer1.q_rope");
	a.e.failed.st = VN_ERR_IO;
	vn_explain_point(&a.e.t, NULL);
	CU_ASSERT_EQUAL(a.e.x.n, 0);
	CU_ASSERT_EQUAL(a.e.x.n_tried, 0);
	end_asked(&a);
}

/* On every occasion; the reference variants of the checkpoint before do not stay. */
static void the_unmodified_operation_is_scored_at_its_own_checkpoint(void)
{
	double local[3], variants[3];

	for (int i = 0; i < 3; i++) {
		const vn_trial h = { .fault = { 1 + vn_fault_find("R1") } };
		asked          a;
		explain_fault(&a, "R1@layer1.q_rope", "layer1.q_rope");
		a.e.t.reference_variants.local = a.e.x.unmodified.residual.local = 7; /* of another checkpoint */
		if (i == 0)
			vn_explain_point(&a.e.t, NULL);
		else if (i == 1)
			vn_explain_with(&a.e.t, &h);
		else
			vn_explain_further(&a.e.t, false);
		CU_ASSERT_EQUAL(a.e.failed.st, VN_OK);
		local[i] = a.e.x.unmodified.residual.local;
		variants[i] = a.e.t.reference_variants.local;
		end_asked(&a);
	}
	CU_ASSERT_TRUE(local[0] > 0 && local[0] != 7 && variants[0] != 7);
	for (int i = 1; i < 3; i++) {
		CU_ASSERT_EQUAL(local[i], local[0]);
		CU_ASSERT_EQUAL(variants[i], variants[0]);
	}
}

/* At a checkpoint like another one, that one's answer and its runner-up are tried. */
static void a_twin_tries_the_answers_of_the_other(void)
{
	vn_trial    theirs[] = { { .fault = { 1 + vn_fault_find("R1") } }, { .fault = { 1 + vn_fault_find("R12") } } };
	vn_findings other = { .by = theirs, .n = 2, .n_fit = 1, .n_alias = 1, .same_answer_as = -1 };
	asked       a;

	explain_fault(&a, "R1@layer1.q_rope", "layer1.q_rope");
	CU_ASSERT_EQUAL((vn_explain_point(&a.e.t, &other), a.e.failed.st), VN_OK);
	CU_ASSERT_EQUAL(a.e.x.n_tried, 2);
	CU_ASSERT_FATAL(a.e.x.n_fit > 0);
	CU_ASSERT_STRING_EQUAL(id_of(&a, 0), "R1");
	end_asked(&a);
	/* They do not fit: nothing else is tried. */
	theirs[0].fault[0] = 1 + vn_fault_find("R2.1e4");
	explain_fault(&a, "R1@layer1.q_rope", "layer1.q_rope");
	CU_ASSERT_EQUAL((vn_explain_point(&a.e.t, &other), a.e.failed.st), VN_OK);
	CU_ASSERT_EQUAL(a.e.x.n_tried, 2);
	CU_ASSERT_EQUAL(a.e.x.n_fit, 0);
	end_asked(&a);
}

static void one_trial_is_tried_alone(void)
{
	vn_trial h = { .finding = VN_FINDING_THETA };
	asked    a;

	vn_trial_constant_put(&h, "theta", 10000);
	explain_fault(&a, "R2.1e4@layer1.q_rope", "layer1.q_rope");
	const vn_plan *p = vn_model_plan(a.e.compared.c.opened.model);
	h.node = p->value[vn_plan_root(p, vn_plan_find(p, "layer1.q_rope"))].node;
	h.refuted = true;
	CU_ASSERT_EQUAL((vn_explain_with(&a.e.t, &h), a.e.failed.st), VN_OK);
	CU_ASSERT_EQUAL_FATAL(a.e.x.n, 1);
	CU_ASSERT_TRUE(a.e.x.by[0].limit_fraction <= 1);
	CU_ASSERT_FALSE(a.e.x.by[0].refuted);
	CU_ASSERT_TRUE(a.e.x.fitted);
	end_asked(&a);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(a_fault_of_the_catalogue_comes_before_fitted_numbers),
		TEST(what_was_refuted_is_not_tried_again),
		TEST(the_unmodified_operation_is_scored_at_its_own_checkpoint),
		TEST(a_twin_tries_the_answers_of_the_other),
		TEST(one_trial_is_tried_alone),
		TEST(nothing_is_tried_after_a_failure),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("explain_point", tests);
	return !remove_folder() || failed;
}
