/* test_estimate_arithmetic.c: tests compare/estimate/estimate_arithmetic.c. */
#include "compare/estimate/estimate.h"
#include "compare/trial/trial_apply.h"
#include "tests/support/narrow_help.h"

#include <math.h>

/* ---- squares beyond float32 ------------------------------------------------------------------ */

/* layer1.attn_norm of twelve tokens, as recorded, and its input. */
enum { ROWS = 12 };

static float norm_in[ROWS * D], norm_out[ROWS * D];

/* Rows 3 and 7 of the input have these numbers; the norm recorded 0 in row 3,
 * and in row 7 if `both`. */
static bool tried(float row3, float row7, bool both)
{
	const given of[] = { { "layer0.output", norm_in }, { "layer1.attn_norm", norm_out } };
	explained   e;
	int64_t     n;
	double     *weight = given_weight("layer1.attn_norm", 0, &n);

	CU_ASSERT_EQUAL_FATAL(n, D);
	for (int t = 0; t < ROWS; t++) {
		double squares = 0;
		for (int i = 0; i < D; i++) {
			const double by = t == 3 ? (double)row3 : t == 7 ? (double)row7 : 1;
			norm_in[t * D + i] = (float)(by * ((37 * (t * D + i) % 101) / 50.0 - 1));
			squares += (double)norm_in[t * D + i] * (double)norm_in[t * D + i];
		}
		for (int i = 0; i < D; i++)
			norm_out[t * D + i] = t == 3 || (both && t == 7)
			                          ? 0
			                          : (float)((double)norm_in[t * D + i] / sqrt(squares / D + 1e-5) * weight[i]);
	}
	free(weight);
	compare_given(&e, ROWS, 0, of, 2);
	stand_at(&e, "layer1.attn_norm", 0);
	CU_ASSERT_EQUAL((vn_estimate_squares(&e.t), e.failed.st), VN_OK);
	const bool all = e.x.n == 1;
	CU_ASSERT_TRUE(!e.x.n || (all && e.x.by[0].finding == VN_FINDING_SQUARES_OVERFLOW));
	end_explained(&e);
	return all;
}

static void rows_whose_squares_pass_float32_are_zero(void)
{
	CU_ASSERT_TRUE(tried(1e25f, 1, false));
	CU_ASSERT_TRUE(tried(1e25f, 1e30f, true));
}

/* A row of usual size that is 0 is a mistake, also beside one that is too large. */
static void other_rows_are_not(void)
{
	CU_ASSERT_FALSE(tried(1, 1, false));
	CU_ASSERT_FALSE(tried(1e15f, 1, false));
	CU_ASSERT_FALSE(tried(1e25f, 1, true));
}

/* ---- a narrower format ----------------------------------------------------------------------- */

enum { BF16 = 8, F16 = 11 };

static void estimate(explained *e, vn_consumed consumed)
{
	stand_at_sum(e);
	e->t.consumed = consumed;
	CU_ASSERT_EQUAL((vn_estimate_narrow(&e->t), e->failed.st), VN_OK);
}

static vn_trial estimated(vn_consumed consumed)
{
	explained e;

	estimate(&e, consumed);
	const vn_trial h = answer_of(&e);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_NARROW);
	CU_ASSERT_EQUAL(h.node, node_named(&e, "layer1.attn_residual"));
	end_explained(&e);
	return h;
}

static void the_format_and_what_is_in_it_are_found(void)
{
	for (int i = 0; i < 4; i++) {
		const bool bf16 = i & 1, whole = i & 2;
		add_numbers(bf16 ? BF16 : F16, whole);
		const vn_trial h = estimated(VN_CONSUMED_UNKNOWN);
		CU_ASSERT_EQUAL(h.applied.narrow.format, bf16 ? VN_FORMAT_BF16 : VN_FORMAT_F16);
		CU_ASSERT_EQUAL(h.applied.narrow.whole, whole);
		CU_ASSERT_FALSE(h.recorder_fault);
	}
}

/* The run continued with other numbers, so only the recorded tensor is in the format. */
static void a_wrong_capture_is_rounded_alone(void)
{
	explained e;

	add_numbers(BF16, false);
	CU_ASSERT_TRUE(estimated(VN_CONSUMED_OTHERS).recorder_fault);
	add_numbers(BF16, true);
	estimate(&e, VN_CONSUMED_OTHERS);
	for (int i = 0; i < e.x.n; i++)
		CU_ASSERT_FALSE(e.x.by[i].applied.narrow.whole);
	end_explained(&e);
}

/* One number of the last token has more bits than the formats. */
static void a_number_of_another_format_rules_it_out(void)
{
	explained e;

	add_numbers(BF16, false);
	sum[N - 1] = nextafterf(sum[N - 1], 9);
	estimate(&e, VN_CONSUMED_UNKNOWN);
	CU_ASSERT_EQUAL(e.x.n, 0);
	end_explained(&e);
}

/* ---- another activation ---------------------------------------------------------------------- */

enum { TOKENS_OF_ACT = 5, F = 128 };

static float gate[TOKENS_OF_ACT * F], up[TOKENS_OF_ACT * F], act[TOKENS_OF_ACT * F];

static void record_with(double (*f)(double x))
{
	for (int i = 0; i < TOKENS_OF_ACT * F; i++) {
		gate[i] = 3 * given_number(i, 1);
		up[i] = given_number(i, 2);
		act[i] = (float)(f((double)gate[i]) * (double)up[i]);
	}
}

static void stand_with(explained *e, const char *point)
{
	const given of[] = { { "layer1.gate_proj", gate }, { "layer1.up_proj", up }, { "layer1.mlp_act", act } };

	compare_given(e, TOKENS_OF_ACT, 0, of, 3);
	stand_at(e, point, 0);
}

static void is_found(double (*f)(double x), const char *name)
{
	explained e;

	record_with(f);
	stand_with(&e, "layer1.mlp_act");
	CU_ASSERT_EQUAL((vn_estimate_activation(&e.t), e.failed.st), VN_OK);
	const vn_trial h = answer_of(&e);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_OTHER_ACTIVATION);
	CU_ASSERT_STRING_EQUAL(vn_act_name((vn_act)h.applied.activation), name);
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
	CU_ASSERT_EQUAL((vn_estimate_activation(&e.t), e.failed.st), VN_OK);
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

/* The run continued with other numbers: the recorded tensor is no activation of this run. */
static void of_a_wrong_capture_none_is_tried(void)
{
	tries(tanh, "layer1.mlp_act", VN_CONSUMED_OTHERS, 0);
	tries(tanh, "layer1.mlp_act", VN_CONSUMED_AS_RECORDED, 1);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(rows_whose_squares_pass_float32_are_zero),
		TEST(other_rows_are_not),
		TEST(the_format_and_what_is_in_it_are_found),
		TEST(a_wrong_capture_is_rounded_alone),
		TEST(a_number_of_another_format_rules_it_out),
		TEST(another_activation_is_found),
		TEST(of_other_mistakes_none_is_tried),
		TEST(of_a_wrong_capture_none_is_tried),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("estimate_arithmetic", tests);
	return !remove_folder() || failed;
}
