/* test_explain_estimate_activation.c: tests compare/explain/estimate_activation.c. */
#include "compare/explain/activation.h"
#include "compare/explain/estimate_activation.h"
#include "tests/explain_help.h"

#include <math.h>

enum { T = 5, F = 128 };

static float gate[T * F], up[T * F], act[T * F];

static void record_with(double (*f)(double x))
{
	for (int i = 0; i < T * F; i++) {
		gate[i] = 3 * given_number(i, 1);
		up[i] = given_number(i, 2);
		act[i] = (float)(f((double)gate[i]) * (double)up[i]);
	}
}

static void stand_with(explained *e, const char *point)
{
	const given of[] = { { "layer1.gate_proj", gate }, { "layer1.up_proj", up }, { "layer1.mlp_act", act } };

	compare_given(e, T, 0, of, 3);
	stand_at(e, point, 0);
}

static void is_found(double (*f)(double x), const char *name)
{
	explained e;

	record_with(f);
	stand_with(&e, "layer1.mlp_act");
	CU_ASSERT_EQUAL(vn_estimate_activation(&e.t, &e.err), VN_OK);
	const vn_hypothesis h = answer_of(&e);
	CU_ASSERT_EQUAL(h.finding, VN_OTHER_ACTIVATION);
	CU_ASSERT_STRING_EQUAL(vn_activation_name(h.change.activation), name);
	end_explained(&e);
}

static double softplus(double x)
{
	return log1p(exp(x));
}

static double relu6(double x)
{
	return fmin(fmax(x, 0), 6);
}

static void another_activation_is_found(void)
{
	is_found(tanh, "tanh");
	is_found(softplus, "softplus");
	is_found(relu6, "relu6");
}

static double silu(double x)
{
	return x / (1 + exp(-x));
}

static double twisted(double x)
{
	return cos(7 * x);
}

static void tries(double (*f)(double x), const char *point, vn_consumed consumed, int n)
{
	explained e;

	record_with(f);
	stand_with(&e, point);
	e.t.consumed = consumed;
	CU_ASSERT_EQUAL(vn_estimate_activation(&e.t, &e.err), VN_OK);
	CU_ASSERT_EQUAL(e.x.n, n);
	end_explained(&e);
}

/* None of them is near, so that none is computed in full. */
static void of_other_mistakes_none_is_tried(void)
{
	tries(twisted, "layer1.mlp_act", VN_CONSUMED_UNKNOWN, 0);
	tries(silu, "layer1.mlp_act", VN_CONSUMED_UNKNOWN, 0);
	tries(tanh, "layer1.gate_proj", VN_CONSUMED_UNKNOWN, 0); /* no activation makes it */
}

/* The run went on with other numbers: what was recorded is no activation of it. */
static void of_a_wrong_capture_none_is_tried(void)
{
	tries(tanh, "layer1.mlp_act", VN_CONSUMED_OTHERS, 0);
	tries(tanh, "layer1.mlp_act", VN_CONSUMED_AS_RECORDED, 1);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(another_activation_is_found),
		TEST(of_other_mistakes_none_is_tried),
		TEST(of_a_wrong_capture_none_is_tried),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("estimate_activation", tests);
	return !remove_folder() || failed;
}
