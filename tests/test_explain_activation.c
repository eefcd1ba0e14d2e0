/* test_explain_activation.c: tests compare/explain/activation.c. */
#include "compare/explain/activation.h"
#include "tests/explain_help.h"

#include <math.h>

enum { T = 2, F = 128 };

/* Values from tables of functions, and by hand. */
static const struct {
	const char *name;
	double      x, y;
} known[] = {
	{ "sigmoid", 1, 0.7310585786300049 },
	{ "sigmoid", -1, 0.2689414213699951 },
	{ "tanh", 1, 0.7615941559557649 },
	{ "softplus", 1, 1.3132616875182228 },
	{ "softplus", 0, 0.6931471805599453 },
	{ "softplus", 1000, 1000 },
	{ "mish", 1, 0.8650983882673103 },
	{ "mish", 0, 0 },
	{ "elu", -1, -0.6321205588285577 },
	{ "elu", 3, 3 },
	{ "selu", 1, 1.0507009873554805 },
	{ "selu", -1, -1.1113307378125625 },
	{ "leaky relu (0.01)", -3, -0.03 },
	{ "leaky relu (0.01)", 3, 3 },
	{ "relu6", 8, 6 },
	{ "relu6", -1, 0 },
	{ "relu6", 5, 5 },
	{ "squared relu", 3, 9 },
	{ "squared relu", -3, 0 },
	{ "hard sigmoid", 1, 2.0 / 3 },
	{ "hard sigmoid", -4, 0 },
	{ "hard sigmoid", 4, 1 },
	{ "hard swish", -1, -1.0 / 3 },
	{ "hard swish", 4, 4 },
	{ "softsign", -1, -0.5 },
	{ "softsign", 3, 0.75 },
	{ "exp", 1, 2.718281828459045 },
};
enum { KNOWN = sizeof known / sizeof *known };

static int activation_named(const char *name)
{
	for (int i = 0; i < vn_n_activations(); i++)
		if (strcmp(vn_activation_name(i), name) == 0)
			return i;
	return -1;
}

/* The gate's numbers are the arguments; `up` multiplies them by a half. */
static void each_is_its_function_times_up(void)
{
	static float gate[T * F], up[T * F], act[T * F];
	const given  of[] = { { "layer1.gate_proj", gate }, { "layer1.up_proj", up }, { "layer1.mlp_act", act } };
	double       y[KNOWN], two[2];
	explained    e;

	for (int i = 0; i < T * F; i++) {
		gate[i] = (float)(i < KNOWN ? known[i].x : i == F ? 3 : 0);
		up[i] = i == F ? 2 : 0.5f;
	}
	compare_given(&e, T, 0, of, 3);
	stand_at(&e, "layer1.mlp_act", 0);
	CU_ASSERT_TRUE(vn_is_activation(&e.t));
	for (int i = 0; i < KNOWN; i++) {
		const int which = activation_named(known[i].name);
		CU_ASSERT_FATAL(which >= 0);
		CU_ASSERT_EQUAL_FATAL(vn_activation_make(&e.t, which, KNOWN, 1, y, &e.err), VN_OK);
		CU_ASSERT_DOUBLE_EQUAL(y[i], known[i].y / 2, 1e-14 + 1e-15 * fabs(known[i].x));
	}
	/* the first number of each token */
	CU_ASSERT_EQUAL_FATAL(vn_activation_make(&e.t, activation_named("squared relu"), 2, F, two, &e.err), VN_OK);
	CU_ASSERT_EQUAL(two[0], 0.5);
	CU_ASSERT_EQUAL(two[1], 18);
	end_explained(&e);
}

static void every_one_has_a_value_here(void)
{
	for (int i = 0; i < vn_n_activations(); i++) {
		bool there = false;
		for (int k = 0; k < KNOWN; k++)
			there = there || strcmp(known[k].name, vn_activation_name(i)) == 0;
		CU_ASSERT_TRUE(there);
	}
}

/* The model's own is x sigmoid(x) up, so sigmoid(x) up, times x, is what was recorded. */
static void of_a_later_call_its_own_rows_are_made(void)
{
	static double y[F];
	const void   *gate;
	double        x, own;
	explained     e;

	compare_llama(&e, NULL, false);
	stand_at(&e, "layer1.mlp_act", 2);
	const int at = vn_recording_find(e.compared.c.opened.cand, 2, "layer1.gate_proj");
	CU_ASSERT_EQUAL_FATAL(vn_recording_data(e.compared.c.opened.cand, at, &gate, &e.err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_activation_make(&e.t, activation_named("sigmoid"), F, 1, y, &e.err), VN_OK);
	for (int i = 0; i < F; i++) {
		vn_to_f64(&x, (const float *)gate + i, VN_F32, 1);
		vn_to_f64(&own, (const float *)e.t.site->cand.data + i, VN_F32, 1);
		CU_ASSERT_DOUBLE_EQUAL(y[i] * x, own, 1e-6 * fabs(own) + 1e-12);
	}
	vn_recording_release(e.compared.c.opened.cand, at);
	end_explained(&e);
}

static void a_product_is_made_by_none(void)
{
	double    y[1];
	explained e;

	compare_llama(&e, NULL, false);
	stand_at(&e, "layer1.gate_proj", 0);
	CU_ASSERT_FALSE(vn_is_activation(&e.t));
	CU_ASSERT_EQUAL(vn_activation_make(&e.t, 0, 1, 1, y, &e.err), VN_ERR_UNSUPPORTED);
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(each_is_its_function_times_up),
		TEST(every_one_has_a_value_here),
		TEST(of_a_later_call_its_own_rows_are_made),
		TEST(a_product_is_made_by_none),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("activations", tests);
	return !remove_folder() || failed;
}
