/* test_estimate_matrix.c: tests compare/estimate/estimate_matrix.c. */
#include "compare/estimate/linear_product.h"
#include "tests/support/product_help.h"

#include <math.h>

typedef void (*estimator)(vn_tested_product *p);

/* Runs an estimator at the product that recorded p->y. */
static void estimate(product *p, estimator of)
{
	record_product(p);
	vn_case          *t = &p->e.t;
	vn_tested_product tested = { .t = t, .own = &t->own, .fine = &t->fine, .cand = &t->site->cand };
	CU_ASSERT_TRUE_FATAL(vn_tested_product_open(&tested, node_named(&p->e, p->point)));
	CU_ASSERT_TRUE_FATAL(vn_tested_product_read(&tested));
	of(&tested);
	CU_ASSERT_EQUAL(p->e.failed.st, VN_OK);
	free(tested.x);
	free(tested.wc);
	free(tested.error);
}

static vn_trial estimated(product *p, estimator of)
{
	estimate(p, of);
	const vn_trial h = answer_of(&p->e);
	CU_ASSERT_EQUAL(h.applied.kind, VN_BY_MATRIX);
	close_product(p);
	return h;
}

/* Inputs of rank i met the weights of rank from[i]. */
static void the_order_in_which_ranks_met_is_found(void)
{
	enum { RANKS = 4 };
	static const int from[RANKS] = { 1, 3, 2, 0 };
	product          p;

	open_product(&p, "layer1.down_proj", "layer1.mlp_act");
	double   *w = calloc((size_t)(p.M * p.N), sizeof *w);
	const int each = p.N / RANKS;
	for (int m = 0; m < p.M; m++)
		for (int k = 0; k < p.N; k++)
			w[m * p.N + k] = p.w[m * p.N + from[k / each] * each + k % each];
	multiply(&p, w);
	free(w);
	const vn_trial h = estimated(&p, vn_estimate_crossed_ranks);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_RANKS_CROSSED);
	CU_ASSERT_EQUAL_FATAL(h.applied.matrix.n, RANKS);
	for (int i = 0; i < RANKS; i++)
		CU_ASSERT_EQUAL(h.applied.matrix.from[i], from[i]);
}

static void ranks_that_met_their_own_have_no_order(void)
{
	product p;

	open_product(&p, "layer1.down_proj", "layer1.mlp_act");
	multiply(&p, p.w);
	estimate(&p, vn_estimate_crossed_ranks);
	CU_ASSERT_EQUAL(p.e.x.n, 0);
	close_product(&p);
}

/* back: the file has the transpose, and its bytes are read as the matrix. */
static vn_applied_matrix estimate_transposed(bool back)
{
	product p;

	open_product(&p, "layer1.k_proj", "layer1.attn_norm");
	double *w = calloc((size_t)(p.M * p.N), sizeof *w);
	for (int m = 0; m < p.M; m++)
		for (int k = 0; k < p.N; k++)
			w[back ? k * p.M + m : m * p.N + k] = p.w[back ? m * p.N + k : k * p.M + m];
	multiply(&p, w);
	free(w);
	const vn_trial h = estimated(&p, vn_estimate_matrix_edit);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_MATRIX_TRANSPOSED);
	return h.applied.matrix;
}

static void a_matrix_read_as_its_transpose_is_found(void)
{
	CU_ASSERT_EQUAL(estimate_transposed(false).kind, VN_MATRIX_TRANSPOSED);
	CU_ASSERT_EQUAL(estimate_transposed(true).kind, VN_MATRIX_BACK);
}

static void a_matrix_that_was_never_loaded_is_found(void)
{
	product p;

	open_product(&p, "layer1.k_proj", "layer1.attn_norm");
	memset(p.w, 0, (size_t)(p.M * p.N) * sizeof *p.w);
	multiply(&p, p.w);
	CU_ASSERT_EQUAL(estimated(&p, vn_estimate_matrix_edit).finding, VN_FINDING_NEVER_LOADED);
}

/* Each row in steps of 1/127 of its largest weight, or (all) of the matrix's largest. */
static vn_applied_matrix quantised(bool all)
{
	product p;
	double  most = 0;

	open_product(&p, "layer1.q_proj", "layer1.attn_norm");
	for (int i = 0; i < p.M * p.N; i++)
		most = fmax(most, fabs(p.w[i]));
	for (int m = 0; m < p.M; m++) {
		double *row = p.w + m * p.N, largest = 0;
		for (int k = 0; k < p.N; k++)
			largest = fmax(largest, fabs(row[k]));
		const double step = (all ? most : largest) / 127;
		for (int k = 0; k < p.N; k++)
			row[k] = rint(row[k] / step) * step;
	}
	multiply(&p, p.w);
	const vn_trial h = estimated(&p, vn_estimate_matrix_edit);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_WEIGHTS_QUANTISED);
	CU_ASSERT_EQUAL(h.applied.matrix.format, VN_FORMAT_INT8);
	return h.applied.matrix;
}

static void weights_in_eight_bits_are_told_by_their_scale(void)
{
	CU_ASSERT_EQUAL(quantised(false).scaled, VN_SCALE_OF_ROWS);
	CU_ASSERT_EQUAL(quantised(true).scaled, VN_SCALE_OF_ALL);
}

/* bfloat16 has 8 significant bits, including the leading one; ties go to the even number. */
static double bf16(double x)
{
	int          e;
	const double m = frexp(x, &e);
	return ldexp(rint(ldexp(m, 8)), e - 8);
}

static void inputs_that_were_rounded_are_found(void)
{
	product p;

	open_product(&p, "layer1.q_proj", "layer1.attn_norm");
	float *x = calloc((size_t)(p.T * p.N), sizeof *x);
	memcpy(x, p.x, (size_t)(p.T * p.N) * sizeof *x);
	for (int i = 0; i < p.T * p.N; i++)
		p.x[i] = (float)bf16((double)x[i]);
	multiply(&p, p.w);
	memcpy(p.x, x, (size_t)(p.T * p.N) * sizeof *x);
	free(x);
	const vn_trial h = estimated(&p, vn_estimate_matrix_edit);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_PRODUCT_ROUNDED);
	CU_ASSERT_EQUAL(h.applied.matrix.format, VN_FORMAT_BF16);
	CU_ASSERT_NOT_EQUAL(h.applied.matrix.of, VN_OF_WEIGHTS);
}

static void a_factor_of_the_weights_alone_is_read_off(void)
{
	product p;

	open_product(&p, "layer1.q_proj", "layer1.attn_norm");
	for (int i = 0; i < p.M * p.N; i++)
		p.w[i] *= 0.7;
	multiply(&p, p.w);
	const vn_trial h = estimated(&p, vn_estimate_matrix_factor);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_WEIGHTS_SCALED);
	CU_ASSERT_EQUAL(h.applied.matrix.factor, 0.7);
}

/* Without a bias, it is a factor of the result, which others find. */
static void a_factor_without_a_bias_is_left_to_others(void)
{
	product p;

	open_product(&p, "layer1.down_proj", "layer1.mlp_act");
	for (int i = 0; i < p.M * p.N; i++)
		p.w[i] *= 0.7;
	multiply(&p, p.w);
	estimate(&p, vn_estimate_matrix_factor);
	CU_ASSERT_EQUAL(p.e.x.n, 0);
	close_product(&p);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(the_order_in_which_ranks_met_is_found),
		TEST(ranks_that_met_their_own_have_no_order),
		TEST(a_matrix_read_as_its_transpose_is_found),
		TEST(a_matrix_that_was_never_loaded_is_found),
		TEST(weights_in_eight_bits_are_told_by_their_scale),
		TEST(inputs_that_were_rounded_are_found),
		TEST(a_factor_of_the_weights_alone_is_read_off),
		TEST(a_factor_without_a_bias_is_left_to_others),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("estimate_matrix", tests);
	return !remove_folder() || failed;
}
