/* test_recompute_estimate_first.c: tests compare/replay/recompute_estimate.c. */
#include "tests/support/explain_help.h"

#include "compare/replay/recompute.h"

#include <math.h>

/* The error that the plan leaves in the first tokens, by the estimate and by a run of all. */
static vn_status first_by(explained *e, const char *what, double *estimated, double *computed)
{
	vn_faulty *f = NULL;
	vn_tensor  z = { 0 };
	double     dd = 0, cc = 0;

	CU_ASSERT_EQUAL_FATAL(vn_faulty_create(e->t.site->plan, e->t.site->weights, &f, &e->err), VN_OK);
	if (what)
		CU_ASSERT_EQUAL_FATAL(vn_faulty_inject(f, what, &e->err), VN_OK);
	const vn_status st = vn_recompute_estimate_first(e->t.recompute, vn_faulty_plan(f), vn_faulty_weights(f), estimated,
	                                                 &e->err);
	CU_ASSERT_EQUAL_FATAL(
		vn_recompute_run(e->t.recompute, vn_faulty_plan(f), vn_faulty_weights(f), VN_OWN_WIDTH, &z, &e->err), VN_OK);
	const vn_tensor *c = &e->t.site->cand;
	for (int64_t i = 0; i < vn_shape_count(&c->shape) / 8; i++) {
		const double d = vn_tensor_number(&z, i) - vn_tensor_number(c, i);
		dd += d * d;
		cc += vn_tensor_number(c, i) * vn_tensor_number(c, i);
	}
	*computed = dd / cc;
	vn_tensor_free(&z);
	vn_faulty_destroy(f);
	return st;
}

enum { LONG = 80, SHORT = 48, D = 48 /* of the llama */ };
static float input[LONG * D], out[LONG * D];

/* A layer of which the input and the end of the attention are recorded. */
static void stand_at_attention(explained *e, int tokens)
{
	const given of[] = { { "layer0.output", input }, { "layer1.attn_out", out } };
	for (int i = 0; i < LONG * D; i++) {
		input[i] = (float)sin(i * 1.7 + i / D);
		out[i] = (float)cos(i * 2.3);
	}
	compare_given(e, tokens, 0, of, 2);
	stand_at(e, "layer1.attn_out", 0);
}

static void the_first_tokens_are_those_of_a_run_of_all(void)
{
	const char *const at[] = { "N1.1e-6@layer1.attn_norm", "R2@layer1.q_rope", "A1@layer1.attn_context",
		                       "A3.strict@layer1.attn_context" };
	double            estimated, computed;
	explained         e;

	stand_at_attention(&e, LONG);
	for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
		CU_ASSERT_EQUAL(first_by(&e, at[i], &estimated, &computed), VN_OK);
		CU_ASSERT_TRUE(computed > 0.1);
		CU_ASSERT_DOUBLE_EQUAL(estimated, computed, 1e-6 * computed);
	}
	end_explained(&e);
}

/* A key after its query is not among the first. */
static void what_reads_later_tokens_is_not_estimated(void)
{
	double    estimated, computed;
	explained e;

	stand_at_attention(&e, LONG);
	CU_ASSERT_EQUAL(first_by(&e, "A2@layer1.attn_context", &estimated, &computed), VN_ERR_UNSUPPORTED);
	CU_ASSERT_TRUE(isnan(estimated));
	end_explained(&e);
}

static void few_tokens_are_not_estimated(void)
{
	double    estimated, computed;
	explained e;

	stand_at_attention(&e, SHORT);
	CU_ASSERT_EQUAL(first_by(&e, "N1.1e-6@layer1.attn_norm", &estimated, &computed), VN_ERR_UNSUPPORTED);
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(the_first_tokens_are_those_of_a_run_of_all),
		TEST(what_reads_later_tokens_is_not_estimated),
		TEST(few_tokens_are_not_estimated),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("recompute_estimate_first", tests);
	return !remove_folder() || failed;
}
