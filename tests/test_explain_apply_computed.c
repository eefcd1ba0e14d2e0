/* test_explain_apply_computed.c: tests compare/explain/apply_computed.c. */
#include "compare/explain/apply_computed.h"
#include "compare/explain/edit_matrix.h"
#include "tests/explain_help.h"

#include <math.h>

/* The product is layer1.q_proj of the llama, without a bias. */
enum { T = 3, N = 48, M = 48 };

static float  x[T * N], q[T * M], matrix[M * N];
static double rounded[T * N], rounded_matrix[M * N], want[T * M];

/* Each token has 127, so that its scale is 1, three numbers in the middle between two integers, and integers. */
static void fill_inputs(void)
{
	for (int t = 0; t < T; t++)
		for (int n = 0; n < N; n++)
			x[t * N + n] = n == 0 ? 127 : n < 4 ? (float)(t + n) - 2.5f : (float)((7 * n + 5 * t) % 11 - 5);
}

/* Weights of no pattern, the largest of each row 127. */
static void fill_matrix(void)
{
	for (int m = 0; m < M; m++)
		for (int n = 0; n < N; n++)
			matrix[m * N + n] = n == m ? 127 : (float)((31 * m + 17 * n + m * n) % 101 - 50);
}

/* To the nearest integer; in the middle up, or down. */
static double middle(double v, bool up)
{
	return up ? floor(v + 0.5) : ceil(v - 0.5);
}

static void multiply(const double *w)
{
	for (int t = 0; t < T; t++)
		for (int m = 0; m < M; m++) {
			want[t * M + m] = 0;
			for (int n = 0; n < N; n++)
				want[t * M + m] += rounded[t * N + n] * w[m * N + n];
			q[t * M + m] = (float)want[t * M + m];
		}
}

static double distance(const void *y)
{
	double most = 0;
	for (int i = 0; i < T * M; i++)
		most = fmax(most, fabs(((const double *)y)[i] - want[i]));
	return most;
}

/* A trial at the product that recorded x and q, with `matrix` as its weight. */
typedef struct product {
	explained     e;
	vn_site       site;
	vn_tensor    *weights;
	vn_hypothesis h;
	vn_made       made;
} product;

static void open_product(product *p, vn_matrix_edit edit)
{
	const given of[] = { { "layer1.attn_norm", x }, { "layer1.q_proj", q } };

	*p = (product) { .h.change = { .kind = VN_BY_MATRIX, .matrix = edit } };
	compare_given(&p->e, T, 0, of, 2);
	stand_at(&p->e, "layer1.q_proj", 0);
	p->site = *p->e.t.site;
	p->weights = malloc((size_t)p->site.plan->n_weights * sizeof *p->weights);
	memcpy(p->weights, p->site.weights, (size_t)p->site.plan->n_weights * sizeof *p->weights);
	p->h.node = node_named(&p->e, "layer1.q_proj");
	p->weights[p->site.plan->node[p->h.node].w[0]] = (vn_tensor) { VN_F32, { 2, { M, N } }, matrix };
	p->site.weights = p->weights;
	p->made.weights = p->weights;
	p->e.t.site = &p->site;
	CU_ASSERT_EQUAL_FATAL(vn_apply_matrix(&p->e.t, &p->h, &p->made, &p->e.err), VN_OK);
}

static void close_product(product *p)
{
	vn_made_finish(&p->made);
	free(p->weights);
	end_explained(&p->e);
}

static const vn_matrix_edit of_inputs = {
	.kind = VN_EDIT_FORMAT, .format = VN_FORMAT_INT8, .of = VN_OF_INPUTS, .scaled = VN_SCALE_OF_ROWS
};

/* Bit i of `ways`: middle number i was rounded up. */
static void inputs_went_all_ways(void)
{
	for (unsigned ways = 0; ways < 1u << 9; ways += 73) { /* 0: all down; 511: all up */
		product p;
		double  weights[M * N];
		for (int i = 0; i < M * N; i++)
			weights[i] = (double)matrix[i];
		for (int t = 0; t < T; t++)
			for (int n = 0; n < N; n++)
				rounded[t * N + n] = middle((double)x[t * N + n], n >= 1 && n < 4 && ways >> (3 * t + n - 1) & 1);
		multiply(weights);
		open_product(&p, of_inputs);
		CU_ASSERT_PTR_NOT_NULL_FATAL(p.made.fine.data);
		CU_ASSERT_PTR_NULL(p.made.plan);
		CU_ASSERT_EQUAL(distance(p.made.fine.data), 0); /* sums of integers are exact */
		CU_ASSERT_EQUAL(distance(p.made.own.data), 0);
		close_product(&p);
	}
}

static void inputs_in_the_middle_went_where_the_candidate_says(void)
{
	fill_inputs();
	fill_matrix();
	inputs_went_all_ways();
}

/* The weights of one are twice those of another: judged by itself, the smaller would follow the greater. */
static void inputs_of_one_token_are_settled_together(void)
{
	fill_inputs();
	fill_matrix();
	for (int m = 0; m < M; m++)
		matrix[m * N + 2] = 2 * matrix[m * N + 1];
	inputs_went_all_ways();
}

/* Zeros, which another mistake made, would be nearer if inputs were smaller. */
static void what_is_not_in_the_middle_stays(void)
{
	product p;
	double  weights[M * N];

	fill_inputs();
	fill_matrix();
	for (int i = 0; i < T * N; i++) {
		x[i] = x[i] == 127 ? 127 : truncf(x[i]) + 0.499f;
		rounded[i] = middle((double)x[i], true);
	}
	for (int i = 0; i < M * N; i++)
		weights[i] = (double)matrix[i];
	multiply(weights);
	memset(q, 0, sizeof q);
	open_product(&p, of_inputs);
	CU_ASSERT_EQUAL(distance(p.made.fine.data), 0);
	close_product(&p);
}

static void weights_in_the_middle_went_where_the_candidate_says(void)
{
	const vn_matrix_edit edit = {
		.kind = VN_EDIT_FORMAT, .format = VN_FORMAT_INT8, .of = VN_OF_WEIGHTS, .scaled = VN_SCALE_OF_ROWS
	};

	for (int way = 0; way < 2; way++) {
		product p;
		fill_inputs();
		fill_matrix();
		for (int i = 0; i < T * N; i++)
			rounded[i] = (double)x[i];
		for (int m = 0; m < M; m++)
			matrix[m * N + (m + 5) % N] = (float)(m % 7) - 3.5f;
		for (int i = 0; i < M * N; i++)
			rounded_matrix[i] = middle((double)matrix[i], way == 1);
		multiply(rounded_matrix);
		open_product(&p, edit);
		CU_ASSERT_PTR_NULL(p.made.fine.data);
		CU_ASSERT_PTR_NOT_NULL_FATAL(p.made.table);
		const vn_tensor *w = &p.made.table[p.site.plan->node[p.h.node].w[0]];
		CU_ASSERT_EQUAL_FATAL(w->dtype, VN_F32);
		int wrong = 0;
		for (int i = 0; i < M * N; i++)
			wrong += (double)((const float *)w->data)[i] != rounded_matrix[i];
		CU_ASSERT_EQUAL(wrong, 0);
		close_product(&p);
	}
}

/* float16 keeps 11 bits: 1 + 2^-12 becomes 1, and 1 + 2^-10 stays. */
static void inputs_without_a_scale_are_rounded_alone(void)
{
	const vn_matrix_edit edit = { .kind = VN_EDIT_FORMAT, .format = VN_FORMAT_F16, .of = VN_OF_INPUTS };
	double               weights[M * N];
	product              p;

	fill_matrix();
	for (int i = 0; i < T * N; i++) {
		x[i] = i % 2 ? 1 + 0x1p-12f : 1 + 0x1p-10f;
		rounded[i] = i % 2 ? 1 : 1 + 0x1p-10;
	}
	for (int i = 0; i < M * N; i++)
		weights[i] = (double)matrix[i];
	multiply(weights);
	open_product(&p, edit);
	CU_ASSERT_EQUAL(distance(p.made.fine.data), 0);
	close_product(&p);
}

/* A mistake in an operation behind the checkpoint, or of another kind, makes nothing there. */
static void an_edit_of_what_is_no_product_makes_nothing(void)
{
	product p;

	fill_inputs();
	fill_matrix();
	open_product(&p, of_inputs);
	vn_made_finish(&p.made);
	p.h.node = node_named(&p.e, "layer1.attn_norm");
	CU_ASSERT_EQUAL(vn_apply_matrix(&p.e.t, &p.h, &p.made, &p.e.err), VN_OK);
	CU_ASSERT_TRUE(!p.made.plan && !p.made.fine.data);
	p.h.change = (vn_change) { .kind = VN_BY_ROTATION };
	p.h.node = node_named(&p.e, "layer1.q_proj");
	CU_ASSERT_EQUAL(vn_apply_rotation(&p.e.t, &p.h, &p.made, &p.e.err), VN_OK);
	CU_ASSERT_TRUE(!p.made.plan && !p.made.fine.data);
	close_product(&p);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(inputs_in_the_middle_went_where_the_candidate_says),
		TEST(what_is_not_in_the_middle_stays),
		TEST(inputs_of_one_token_are_settled_together),
		TEST(weights_in_the_middle_went_where_the_candidate_says),
		TEST(inputs_without_a_scale_are_rounded_alone),
		TEST(an_edit_of_what_is_no_product_makes_nothing),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("computed hypotheses", tests);
	return !remove_folder() || failed;
}
