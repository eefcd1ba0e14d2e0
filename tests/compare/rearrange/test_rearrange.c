/* test_rearrange.c: tests compare/rearrange/rearrange.c. */
#include "compare/rearrange/rearrange.h"
#include "tests/support/explain_help.h"

/* layer1.q_proj of twelve tokens; the llama has 6 heads of 8 columns. */
enum { T = 12, N = 48, K = 8 };

static float x[T * N], q[T * N], cand[T * N];

/* q: the product of x and the llama's weight. */
static void fill(void)
{
	int64_t n;
	double *w = given_weight("layer1.q_proj", 0, &n);

	CU_ASSERT_EQUAL_FATAL(n, N * N);
	for (int i = 0; i < T * N; i++)
		x[i] = given_number(i, 0);
	for (int i = 0; i < T * N; i++) {
		double sum = 0;
		for (int k = 0; k < N; k++)
			sum += (double)x[i / N * N + k] * w[i % N * N + k];
		q[i] = (float)sum;
	}
	free(w);
}

/* The finding about `cand` at a projection. Returns false if nothing explains it. */
static bool found(vn_trial *h)
{
	const given of[] = { { "layer1.attn_norm", x }, { "layer1.q_proj", cand } };
	explained   e;

	compare_given(&e, T, 0, of, 2);
	stand_at(&e, "layer1.q_proj", 0);
	vn_rearrange(&e.t);
	if (!e.x.n_fit)
		vn_rearrange_rolled(&e.t);
	CU_ASSERT_EQUAL(e.failed.st, VN_OK);
	const bool is = e.x.n > 0 && e.x.by[0].limit_fraction <= 1;
	*h = is ? e.x.by[0] : (vn_trial) { 0 };
	CU_ASSERT_TRUE(!is || h->applied.kind == VN_BY_RESULT);
	end_explained(&e);
	return is;
}

static void rows_that_moved_are_found_with_their_number(void)
{
	vn_trial h;

	fill();
	for (int t = 0; t < T; t++)
		memcpy(cand + t * N, q + (t + T - 2) % T * N, N * sizeof *q);
	CU_ASSERT_TRUE_FATAL(found(&h));
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_TOKENS_MOVED);
	CU_ASSERT_EQUAL(h.applied.result.number, -2);
	/* zeros come in from outside */
	memset(cand, 0, 2 * N * sizeof *q);
	CU_ASSERT_TRUE_FATAL(found(&h));
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_TOKENS_MOVED);
	CU_ASSERT_EQUAL(h.applied.result.number, -2);
}

static void rows_in_reverse_order_are_found(void)
{
	vn_trial h;

	fill();
	for (int t = 0; t < T; t++)
		memcpy(cand + t * N, q + (T - 1 - t) * N, N * sizeof *q);
	CU_ASSERT_TRUE_FATAL(found(&h));
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_TOKENS_REVERSED);
}

static void exchanged_axes_are_found_with_their_order(void)
{
	vn_trial h;

	fill();
	for (int i = 0; i < T * N; i++)
		cand[i] = q[i % T * N + i / T];
	CU_ASSERT_TRUE_FATAL(found(&h));
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_AXES_RECORDED);
	CU_ASSERT_EQUAL_FATAL(h.applied.result.n, 3);
	for (int i = 0; i < 3; i++) /* heads and columns before tokens */
		CU_ASSERT_EQUAL(h.applied.result.list[i], (i + 1) % 3);
}

/* layer1.q_rope has an axis of heads. Token 0 is rotated by an angle of 0, so the rotation of
 * one token is its input. */
static void heads_in_another_order_are_found_with_the_order(void)
{
	static const int order[] = { 1, 0, 2, 5, 4, 3 };
	static float     in[N], out[N];
	const given      of[] = { { "layer1.q_proj", in }, { "layer1.q_rope", out } };
	explained        e;

	for (int i = 0; i < N; i++)
		in[i] = given_number(i, 1);
	for (int i = 0; i < N; i++)
		out[i] = in[order[i / K] * K + i % K];
	compare_given(&e, 1, 0, of, 2);
	stand_at(&e, "layer1.q_rope", 0);
	CU_ASSERT_EQUAL((vn_rearrange(&e.t), e.failed.st), VN_OK);
	const vn_trial h = answer_of(&e);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_HEADS_REORDERED);
	CU_ASSERT_EQUAL_FATAL(h.applied.result.n, N / K);
	for (int i = 0; i < N / K; i++)
		CU_ASSERT_EQUAL(h.applied.result.list[i], order[i]);
	end_explained(&e);
}

/* Across heads. */
static void columns_that_moved_by_a_few_places_are_found(void)
{
	vn_trial h;

	fill();
	for (int i = 0; i < T * N; i++)
		cand[i] = q[i / N * N + (i % N + N - 3) % N];
	CU_ASSERT_TRUE_FATAL(found(&h));
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_AXIS_REORDERED);
	CU_ASSERT_TRUE(h.applied.result.list[0] == 0 && h.applied.result.list[2] == N - 3);
}

static void other_numbers_are_no_arrangement(void)
{
	vn_trial h;

	fill();
	for (int i = 0; i < T * N; i++)
		cand[i] = given_number(i, 2);
	CU_ASSERT_FALSE(found(&h));
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(rows_that_moved_are_found_with_their_number),
		TEST(rows_in_reverse_order_are_found),
		TEST(exchanged_axes_are_found_with_their_order),
		TEST(heads_in_another_order_are_found_with_the_order),
		TEST(columns_that_moved_by_a_few_places_are_found),
		TEST(other_numbers_are_no_arrangement),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("rearrange", tests);
	return !remove_folder() || failed;
}
