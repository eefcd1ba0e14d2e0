/* test_estimate.c: tests compare/estimate/estimate.c. */
#include "compare/estimate/estimate.h"
#include "tests/support/attention_help.h"

enum { CALL = 16, D = H * K };

static float x[CALL * D], y[CALL * D];

/* Rows of different sizes, normed with an eps under the root, or outside it. */
static vn_trial normed(double under, double outside)
{
	const given of[] = { { "layer1.input", x }, { "layer1.attn_norm", y } };
	int64_t     n;
	double     *w = given_weight("layer1.attn_norm", 0, &n);
	explained   e;

	for (int t = 0; t < CALL; t++) {
		double square = 0;
		for (int d = 0; d < D; d++) {
			x[t * D + d] = given_number(t * D + d, 1) * (float)(1 + t) / 40;
			square += (double)x[t * D + d] * (double)x[t * D + d] / D;
		}
		for (int d = 0; d < D; d++)
			y[t * D + d] = (float)((double)x[t * D + d] * w[d] / (sqrt(square + under) + outside));
	}
	free(w);
	compare_given(&e, CALL, 0, of, 2);
	stand_at(&e, "layer1.attn_norm", 0);
	CU_ASSERT_EQUAL((vn_estimate(&e.t), e.failed.st), VN_OK);
	const vn_trial h = answer_of(&e);
	end_explained(&e);
	return h;
}

static void the_eps_of_a_norm_is_found(void)
{
	vn_trial h = normed(1e-3, 0);

	CU_ASSERT_EQUAL(h.finding, VN_FINDING_EPS);
	CU_ASSERT_DOUBLE_EQUAL(vn_trial_constant(&h, "eps"), 1e-3, 1e-9);
	h = normed(0, 0.02);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_EPS_OUTSIDE);
	CU_ASSERT_DOUBLE_EQUAL(vn_trial_constant(&h, "eps"), 0.02, 1e-8);
	CU_ASSERT_EQUAL(vn_trial_constant(&h, "eps_outside"), 1);
}

static void the_scale_of_scores_is_found(void)
{
	explained e;

	make_up_inputs();
	attend_all(&(mistake) { .times = 0.5 * sqrt(K) }, 0, CALL);
	stand_at_context(&e, CALL, 0, 0);
	CU_ASSERT_EQUAL((vn_estimate(&e.t), e.failed.st), VN_OK);
	const vn_trial h = answer_of(&e);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_SCORE_SCALE);
	CU_ASSERT_DOUBLE_EQUAL(vn_trial_constant(&h, "scale"), 0.5, 1e-6);
	end_explained(&e);
}

/* Rotated queries and keys were not recorded: one theta for both, or one for the queries alone. */
static vn_trial of_both(double of_keys, const char *named)
{
	float       plain_q[TOKENS * H * K], plain_k[TOKENS * G * K];
	const given of[] = { { "layer1.q_proj", plain_q },
		                 { "layer1.k_proj", plain_k },
		                 { "layer1.v_proj", v },
		                 { "layer1.attn_context", context } };
	explained   e;

	make_up_inputs();
	rotate_inputs(CALL, 10000, of_keys, plain_q, plain_k);
	attend_all(&(mistake) { 0 }, 0, CALL);
	compare_given(&e, CALL, 0, of, 4);
	stand_at(&e, "layer1.attn_context", 0);
	CU_ASSERT_EQUAL((vn_estimate(&e.t), e.failed.st), VN_OK);
	const vn_trial h = answer_of(&e);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_THETA);
	CU_ASSERT_DOUBLE_EQUAL(vn_trial_constant(&h, "theta"), 10000, 1);
	CU_ASSERT_TRUE(!named || h.node == node_named(&e, named));
	end_explained(&e);
	return h;
}

static void one_number_of_several_operations_is_found(void)
{
	vn_trial h = of_both(10000, NULL);

	CU_ASSERT_EQUAL(h.places, 2);
	CU_ASSERT_NOT_EQUAL(h.applied.constants.places, VN_AT_NODE);
	h = of_both(500000, "layer1.q_rope");
	CU_ASSERT_EQUAL(h.places, 0);
	CU_ASSERT_EQUAL(h.applied.constants.places, VN_AT_NODE);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(the_eps_of_a_norm_is_found),
		TEST(the_scale_of_scores_is_found),
		TEST(one_number_of_several_operations_is_found),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("estimate", tests);
	return !remove_folder() || failed;
}
