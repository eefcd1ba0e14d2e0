/* test_replay_measure.c: tests compare/replay/replay_measure.c. */
#include "compare/replay/replay_state.h"
#include "tests/support/explain_help.h"

#include <math.h>

/* A residual sum of the llama, in two runs. */
enum { T = 6, D = 48, N = T * D };

static float ref_a[N], ref_b[N], ref_sum[N], a[N], b[N], sum[N];

/* The inputs of the candidate are off by so much, and its sum by `own` beyond them. */
static void fill(double off_a, double off_b, double own)
{
	for (int i = 0; i < N; i++) {
		ref_a[i] = given_number(i, 1);
		ref_b[i] = given_number(i, 2);
		a[i] = (float)((double)ref_a[i] + off_a * (double)given_number(i, 3));
		b[i] = (float)((double)ref_b[i] + off_b * (double)given_number(i, 4));
		ref_sum[i] = ref_a[i] + ref_b[i];
		sum[i] = (float)((double)a[i] + (double)b[i] + own * (double)given_number(i, 5));
	}
}

/* Squares of x - y, over those of y. */
static double apart(const float *x, const float *y)
{
	double dd = 0, yy = 0;
	for (int i = 0; i < N; i++) {
		dd += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
		yy += (double)y[i] * (double)y[i];
	}
	return dd / yy;
}

static const vn_checkpoint *replayed(explained *e)
{
	const given ref[] = { { "layer1.input", ref_a },
		                  { "layer1.attn_out", ref_b },
		                  { "layer1.attn_residual", ref_sum } };
	const given cand[] = { { "layer1.input", a }, { "layer1.attn_out", b }, { "layer1.attn_residual", sum } };

	compare_two(e, T, 0, ref, cand, 3);
	const vn_checkpoint *p = checkpoint_at(e, "layer1.attn_residual", 0);
	CU_ASSERT_TRUE_FATAL(p->replayed);
	return p;
}

static void the_local_error_is_what_the_operation_added(void)
{
	float     right[N];
	explained e;

	fill(1e-3, 2e-3, 1e-2);
	for (int i = 0; i < N; i++)
		right[i] = a[i] + b[i];
	const vn_checkpoint *p = replayed(&e);
	CU_ASSERT_DOUBLE_EQUAL(p->replay.local, apart(sum, right), 1e-5 * p->replay.local);
	CU_ASSERT_EQUAL(p->replay.span, 1);
	CU_ASSERT_EQUAL(p->replay.independent_numbers, N);
	CU_ASSERT_EQUAL(p->replay.charged_to, -1);
	CU_ASSERT_EQUAL(p->replay.bad, 0);
	double most = 0;
	for (int i = 0; i < N; i++)
		most = fmax(most, fabs((double)sum[i] - (double)right[i]));
	CU_ASSERT_DOUBLE_EQUAL(p->replay.local_max, most, 1e-6);
	end_explained(&e);
}

static void the_inherited_error_and_its_gain_come_from_the_inputs(void)
{
	float     right[N];
	explained e;

	fill(1e-3, 2e-3, 0);
	for (int i = 0; i < N; i++)
		right[i] = a[i] + b[i];
	const vn_checkpoint *p = replayed(&e);
	CU_ASSERT_DOUBLE_EQUAL(p->replay.inherited, apart(right, ref_sum), 1e-5 * p->replay.inherited);
	const double in = sqrt(apart(a, ref_a) + apart(b, ref_b));
	CU_ASSERT_DOUBLE_EQUAL(p->replay.gain, sqrt(apart(right, ref_sum)) / in, 1e-4);
	CU_ASSERT_TRUE(p->replay.local < 1e-13); /* a rounding */
	end_explained(&e);
}

/* The same inputs: what differs came with none of them. */
static void without_an_error_of_the_inputs_there_is_no_gain(void)
{
	explained e;

	fill(0, 0, 1e-2);
	const vn_checkpoint *p = replayed(&e);
	CU_ASSERT_TRUE(isnan(p->replay.gain));
	CU_ASSERT_TRUE(p->replay.inherited < 1e-13);
	CU_ASSERT_TRUE(p->replay.local > 1e-5);
	end_explained(&e);
}

static void what_is_not_finite_is_counted(void)
{
	explained e;

	fill(0, 0, 0);
	sum[3] = NAN;
	sum[100] = INFINITY;
	const vn_checkpoint *p = replayed(&e);
	CU_ASSERT_EQUAL(p->replay.bad, 2);
	end_explained(&e);
}

/* A state that grows follows from keys; what is computed on demand is never in
 * memory as a whole. */
static void some_values_have_no_place(void)
{
	vn_error  err = { "" };
	vn_model *m = NULL;

	CU_ASSERT_EQUAL_FATAL(vn_model_open(LLAMA, &m, &err), VN_OK);
	const vn_plan *p = vn_model_plan(m);
	CU_ASSERT_TRUE(vn_replay_no_place(p, vn_plan_find(p, "layer1.k_cache")));
	CU_ASSERT_TRUE(vn_replay_no_place(p, vn_plan_find(p, "layer1.gate_act")));
	CU_ASSERT_FALSE(vn_replay_no_place(p, vn_plan_find(p, "layer1.k_rope")));
	CU_ASSERT_FALSE(vn_replay_no_place(p, vn_plan_find(p, "layer1.attn_residual")));
	vn_model_close(m);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(the_local_error_is_what_the_operation_added),
		TEST(the_inherited_error_and_its_gain_come_from_the_inputs),
		TEST(without_an_error_of_the_inputs_there_is_no_gain),
		TEST(what_is_not_finite_is_counted),
		TEST(some_values_have_no_place),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("replay_measure", tests);
	return !remove_folder() || failed;
}
