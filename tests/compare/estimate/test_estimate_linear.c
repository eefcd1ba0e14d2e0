/* test_estimate_linear.c: tests compare/estimate/estimate_linear.c. */
#include "compare/estimate/estimate.h"
#include "tests/support/product_help.h"

#include <math.h>

/* The best answer at the product that recorded p->y; closes p. */
static vn_trial estimated(product *p)
{
	record_product(p);
	CU_ASSERT_EQUAL((vn_estimate_linear(&p->e.t), p->e.failed.st), VN_OK);
	const vn_trial h = answer_of(&p->e);
	CU_ASSERT_EQUAL(h.node, node_named(&p->e, p->point));
	close_product(p);
	return h;
}

static void how_often_a_bias_was_added_is_found(void)
{
	static const double times[] = { 3, 2.5, -1 };

	for (int i = 0; i < 3; i++) {
		product p;
		open_product(&p, "layer1.q_proj", "layer1.attn_norm");
		multiply(&p, p.w);
		for (int k = 0; k < p.T * p.M; k++)
			p.y[k] = (float)((double)p.y[k] + (times[i] - 1) * p.b[k % p.M]);
		const vn_trial h = estimated(&p);
		CU_ASSERT_EQUAL(h.finding, VN_FINDING_BIAS_TIMES);
		CU_ASSERT_EQUAL(h.applied.number.value, times[i]);
	}
}

static void inputs_that_are_missing_at_the_end_are_found(void)
{
	product p;

	open_product(&p, "layer1.down_proj", "layer1.mlp_act");
	for (int m = 0; m < p.M; m++)
		for (int k = p.N - 5; k < p.N; k++)
			p.w[m * p.N + k] = 0;
	multiply(&p, p.w);
	const vn_trial h = estimated(&p);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_INPUTS_MISSING);
	CU_ASSERT_EQUAL(h.applied.matrix.kind, VN_MATRIX_TAIL);
	CU_ASSERT_EQUAL(h.applied.matrix.n, 5);
}

/* A bit for each rank that is in the sum. */
static void the_ranks_that_are_in_a_sum_are_found(void)
{
	static const struct {
		int ranks, present;
	} of[] = { { 4, 0xd }, { 8, 0x5a }, { 2, 0x1 } };

	for (int i = 0; i < 3; i++) {
		product p;
		open_product(&p, "layer1.down_proj", "layer1.mlp_act");
		const int each = p.N / of[i].ranks;
		for (int k = 0; k < p.M * p.N; k++)
			p.w[k] = of[i].present >> (k % p.N / each) & 1 ? p.w[k] : 0;
		multiply(&p, p.w);
		const vn_trial h = estimated(&p);
		CU_ASSERT_EQUAL(h.finding, VN_FINDING_RANKS_SUMMED);
		CU_ASSERT_EQUAL(h.applied.number.value, VN_RANKS_MOST * of[i].present + of[i].ranks);
	}
}

/* The gate's half of a fused product, of four ranks: g0 u0 g1 u1. */
static void fused_shards_that_were_joined_rank_by_rank_are_found(void)
{
	enum { RANKS = 4 };
	product p, up;

	open_product(&p, "layer1.gate_proj", "layer1.mlp_norm");
	open_product(&up, "layer1.up_proj", "layer1.mlp_norm");
	const int each = p.M / RANKS;
	double   *w = calloc((size_t)(p.M * p.N), sizeof *w);
	for (int m = 0; m < p.M; m++) {
		const int shard = m / each, row = shard / 2 * each + m % each;
		memcpy(w + m * p.N, (shard % 2 ? up.w : p.w) + row * p.N, (size_t)p.N * sizeof *w);
	}
	multiply(&p, w);
	const vn_trial h = estimated(&p);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_SHARDS_JOINED);
	CU_ASSERT_EQUAL(h.applied.number.value, RANKS);
	free(w);
	free(up.w);
	free(up.b);
	free(up.x);
	free(up.y);
}

/* Each rank's outputs (T, M / ranks) follow those of the rank before. */
static void shards_that_were_joined_along_the_tokens_are_found(void)
{
	enum { RANKS = 2 };
	product p;

	open_product(&p, "layer1.q_proj", "layer1.attn_norm");
	multiply(&p, p.w);
	const int each = p.M / RANKS;
	float    *y = calloc((size_t)(p.T * p.M), sizeof *y), *to = y;
	for (int rank = 0; rank < RANKS; rank++)
		for (int t = 0; t < p.T; t++)
			for (int m = 0; m < each; m++)
				*to++ = p.y[t * p.M + rank * each + m];
	memcpy(p.y, y, (size_t)(p.T * p.M) * sizeof *y);
	free(y);
	const vn_trial h = estimated(&p);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_SHARDS_ALONG_TOKENS);
	CU_ASSERT_EQUAL(h.applied.number.value, RANKS);
}

/* with_bias: the bias moves with its shard. */
static vn_trial reordered(bool with_bias)
{
	static const int from[3] = { 2, 0, 1 };
	product          p;

	open_product(&p, "layer1.q_proj", "layer1.attn_norm");
	const int each = p.M / 3;
	double   *w = calloc((size_t)(p.M * p.N), sizeof *w), *b = calloc((size_t)p.M, sizeof *b);
	for (int m = 0; m < p.M; m++) {
		const int row = from[m / each] * each + m % each;
		memcpy(w + m * p.N, p.w + row * p.N, (size_t)p.N * sizeof *w);
		b[m] = p.b[with_bias ? row : m];
	}
	memcpy(p.b, b, (size_t)p.M * sizeof *b);
	multiply(&p, w);
	free(w);
	free(b);
	const vn_trial h = estimated(&p);
	const int     *found = with_bias ? h.applied.result.list : h.applied.matrix.from;
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(found[i], from[i]);
	return h;
}

static void shards_in_another_order_are_found(void)
{
	vn_trial h = reordered(true);

	CU_ASSERT_EQUAL(h.finding, VN_FINDING_SHARDS_REORDERED);
	CU_ASSERT_EQUAL(h.applied.result.n, 3);
	h = reordered(false);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_ROWS_REORDERED);
	CU_ASSERT_EQUAL(h.applied.matrix.n, 3);
}

/* The row that becomes row i when the halves of heads of `width` rows become neighbouring pairs. */
static int row_of_pairs(int i, int width)
{
	return i / width * width + i % width % 2 * (width / 2) + i % width / 2;
}

/* Its inverse. */
static int row_of_halves(int i, int width)
{
	return i / width * width + i % width % (width / 2) * 2 + i % width / (width / 2);
}

/* back: rows of keys are permuted as their own heads, and back as those of queries. */
static void rows_permuted_with_the_wrong_number_of_heads_are_found(void)
{
	for (int back = 0; back < 2; back++) {
		product p;
		open_product(&p, "layer1.k_proj", "layer1.attn_norm");
		const int own = p.M / 2, other = p.M / 4;
		double   *w = calloc((size_t)(p.M * p.N), sizeof *w);
		for (int m = 0; m < p.M; m++) {
			const int row = back ? row_of_pairs(row_of_halves(m, other), own) : row_of_pairs(m, other);
			memcpy(w + m * p.N, p.w + row * p.N, (size_t)p.N * sizeof *w);
		}
		multiply(&p, w);
		free(w);
		const vn_trial h = estimated(&p);
		CU_ASSERT_EQUAL(h.finding, VN_FINDING_PAIRS_REORDERED);
		CU_ASSERT_EQUAL(h.applied.matrix.n, 0);
		CU_ASSERT_EQUAL(h.applied.matrix.from[0], back ? own : other);
		CU_ASSERT_EQUAL(h.applied.matrix.from[1], back ? other : 0);
	}
}

/* In memory, each row is followed by padding, which is read as the beginning of the next one. */
static void padding_that_is_read_as_data_is_measured(void)
{
	enum { BY = 5 };
	product p;

	open_product(&p, "layer1.k_proj", "layer1.attn_norm");
	double *memory = calloc((size_t)(p.M * (p.N + BY)), sizeof *memory);
	for (int m = 0; m < p.M; m++)
		memcpy(memory + m * (p.N + BY), p.w + m * p.N, (size_t)p.N * sizeof *memory);
	multiply(&p, memory);
	free(memory);
	const vn_trial h = estimated(&p);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_ROWS_PADDED);
	CU_ASSERT_EQUAL(h.applied.number.value, BY);
}

static void what_is_no_such_mistake_has_no_answer(void)
{
	product p;

	open_product(&p, "layer1.q_proj", "layer1.attn_norm");
	multiply(&p, p.w);
	for (int i = 0; i < p.T * p.M; i++)
		p.y[i] += given_number(i, 8);
	record_product(&p);
	CU_ASSERT_EQUAL((vn_estimate_linear(&p.e.t), p.e.failed.st), VN_OK);
	CU_ASSERT_EQUAL(p.e.x.n, 0); /* none is near enough to be computed in full */
	close_product(&p);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(how_often_a_bias_was_added_is_found),
		TEST(inputs_that_are_missing_at_the_end_are_found),
		TEST(the_ranks_that_are_in_a_sum_are_found),
		TEST(fused_shards_that_were_joined_rank_by_rank_are_found),
		TEST(shards_that_were_joined_along_the_tokens_are_found),
		TEST(shards_in_another_order_are_found),
		TEST(rows_permuted_with_the_wrong_number_of_heads_are_found),
		TEST(padding_that_is_read_as_data_is_measured),
		TEST(what_is_no_such_mistake_has_no_answer),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("estimate_linear", tests);
	return !remove_folder() || failed;
}
