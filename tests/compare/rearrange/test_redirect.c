/* test_redirect.c: tests compare/rearrange/redirect.c. */
#include "compare/rearrange/rearrange.h"
#include "tests/support/explain_help.h"

#include <math.h>

/* The llama's widths, a prompt and the steps behind it. */
enum { CALL = 6, STEPS = 2, S = CALL + STEPS, D = 48 };

static float x0[S * D], x1[S * D], y[S * D];

static void fill_inputs(void)
{
	for (int i = 0; i < S * D; i++) {
		x0[i] = (float)((37 * i + i / D) % 101) / 50 - 1;
		x1[i] = (float)((43 * i + i / D) % 103) / 50 - 1;
	}
}

/* y = x times the matrix of the product `of`, for all tokens. */
static void multiply(const char *of, const float *x)
{
	int64_t   size;
	double   *w = given_weight(of, 0, &size);
	const int M = (int)size / D;

	for (int t = 0; t < S; t++)
		for (int m = 0; m < M; m++) {
			double sum = 0;
			for (int n = 0; n < D; n++)
				sum += (double)x[t * D + n] * w[m * D + n];
			y[t * M + m] = (float)sum;
		}
	free(w);
}

/* y: row t is the embedding of this id. */
static void embed(int t, int id)
{
	int64_t n;
	double *w = given_weight("embed", 0, &n);

	for (int d = 0; d < D; d++)
		y[t * D + d] = (float)w[id * D + d];
	free(w);
}

static void stand_with(explained *e, const char *point, int step)
{
	const given of[] = { { "layer0.attn_norm", x0 }, { "layer1.attn_norm", x1 }, { point, y } };

	compare_given(e, CALL, STEPS, of, 3);
	stand_at(e, point, step);
}

/* The best answer at a product of the prompt that recorded y. */
static vn_trial redirected(const char *point)
{
	explained e;

	stand_with(&e, point, 0);
	CU_ASSERT_EQUAL((vn_redirect(&e.t), e.failed.st), VN_OK);
	CU_ASSERT_FATAL(e.x.n > 0);
	const vn_trial h = e.x.by[0];
	CU_ASSERT_TRUE(h.limit_fraction <= 1);
	CU_ASSERT_EQUAL(h.applied.kind, VN_BY_READS);
	CU_ASSERT_EQUAL(h.node, node_named(&e, point));
	end_explained(&e);
	return h;
}

static vn_model *llama;

/* A value of its plan. */
static int value_of(const char *name)
{
	return vn_plan_root(vn_model_plan(llama), vn_plan_find(vn_model_plan(llama), name));
}

/* The node that makes the value. */
static int node_of(const char *name)
{
	return vn_model_plan(llama)->value[value_of(name)].node;
}

static void the_weights_of_another_layer_are_found(void)
{
	fill_inputs();
	multiply("layer0.q_proj", x1);
	const vn_trial h = redirected("layer1.q_proj");
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_OTHER_WEIGHTS);
	CU_ASSERT_EQUAL(h.applied.reads.weights, 1 + node_of("layer0.q_proj"));
	CU_ASSERT_EQUAL(h.applied.reads.in[0], 0);
}

static void the_matrix_of_another_product_is_found(void)
{
	fill_inputs();
	multiply("layer1.v_proj", x1);
	vn_trial h = redirected("layer1.k_proj");
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_PARTNERS_MATRIX);
	CU_ASSERT_EQUAL(h.applied.reads.weights, 1 + node_of("layer1.v_proj"));
	multiply("layer1.attn_out", x1);
	h = redirected("layer1.q_proj");
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_OTHER_MATRIX);
	CU_ASSERT_EQUAL(h.applied.reads.weights, 1 + node_of("layer1.attn_out"));
}

static void another_input_is_found(void)
{
	fill_inputs();
	multiply("layer1.q_proj", x0);
	const vn_trial h = redirected("layer1.q_proj");
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_OTHER_INPUT);
	CU_ASSERT_EQUAL(h.applied.reads.in[0], 1 + value_of("layer0.attn_norm"));
	CU_ASSERT_EQUAL(h.applied.reads.weights, 0);
}

static void a_correct_product_and_a_wrong_capture_are_not_redirected(void)
{
	explained e;

	fill_inputs();
	multiply("layer1.q_proj", x1);
	stand_with(&e, "layer1.q_proj", 0);
	CU_ASSERT_EQUAL((vn_redirect(&e.t), e.failed.st), VN_OK);
	CU_ASSERT_EQUAL(e.x.n, 0);
	end_explained(&e);
	multiply("layer1.q_proj", x0);
	stand_with(&e, "layer1.q_proj", 0);
	e.t.consumed = VN_CONSUMED_OTHERS; /* the run continued with other numbers */
	CU_ASSERT_EQUAL((vn_redirect(&e.t), e.failed.st), VN_OK);
	CU_ASSERT_EQUAL(e.x.n, 0);
	end_explained(&e);
}

/* Is a trial of that finding an answer at that step? tokens: of its change, if it has them. */
static bool answered_in_time(const char *point, int step, vn_finding finding, int tokens)
{
	explained e;
	bool      found = false;

	stand_with(&e, point, step);
	CU_ASSERT_EQUAL((vn_redirect_in_time(&e.t), e.failed.st), VN_OK);
	for (int i = 0; i < e.x.n; i++) {
		const vn_trial *h = &e.x.by[i];
		found = found || (h->finding == finding && h->limit_fraction <= 1 &&
		                  (h->applied.kind != VN_BY_TOKENS || h->applied.tokens == tokens));
	}
	end_explained(&e);
	return found;
}

/* The second step holds what the first recorded, or should have recorded. */
static void content_of_the_step_before_is_found(void)
{
	fill_inputs();
	multiply("layer1.q_proj", x1);
	memcpy(y + (CALL + 1) * D, y + CALL * D, D * sizeof *y);
	CU_ASSERT_TRUE(answered_in_time("layer1.q_proj", 2, VN_FINDING_STEP_STALE, 0));
	for (int d = 0; d < D; d++)
		y[CALL * D + d] *= 3;
	CU_ASSERT_FALSE(answered_in_time("layer1.q_proj", 2, VN_FINDING_STEP_STALE, 0));
	CU_ASSERT_TRUE(answered_in_time("layer1.q_proj", 2, VN_FINDING_STEP_LATE, 0));
}

/* Token t has the id 5 + t. */
static void embeddings_of_other_tokens_are_found(void)
{
	fill_inputs();
	for (int t = 0; t < S; t++)
		embed(t, t == CALL + 1 ? 5 + t - 3 : 5 + t);
	CU_ASSERT_TRUE(answered_in_time("embed", 2, VN_FINDING_OTHER_TOKEN, -3));
	CU_ASSERT_FALSE(answered_in_time("embed", 2, VN_FINDING_OTHER_TOKEN, -2));
	CU_ASSERT_FALSE(answered_in_time("embed", 2, VN_FINDING_POSITION_FOR_ID, 0));
	for (int t = 0; t < S; t++)
		embed(t, t);
	CU_ASSERT_TRUE(answered_in_time("embed", 0, VN_FINDING_POSITION_FOR_ID, 0));
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(the_weights_of_another_layer_are_found),
		TEST(the_matrix_of_another_product_is_found),
		TEST(another_input_is_found),
		TEST(a_correct_product_and_a_wrong_capture_are_not_redirected),
		TEST(content_of_the_step_before_is_found),
		TEST(embeddings_of_other_tokens_are_found),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder() || vn_model_open(LLAMA, &llama, NULL))
		return 1;
	const int failed = run_suite("redirect", tests);
	vn_model_close(llama);
	return !remove_folder() || failed;
}
