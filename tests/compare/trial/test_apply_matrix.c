/* test_apply_matrix.c: tests compare/trial/apply_matrix.c. */
#include "compare/trial/apply_matrix.h"
#include "tests/support/explain_help.h"

#include <math.h>

/* ---- a plan of products, and what its matrices become ---------------------------------------- */

enum { PRODUCTS = 4, INPUT = 7, WIDEST = 8 };

static const float six[] = { 1, 2, 3, 4, 5, 6 };
static vn_node     node[PRODUCTS];
static vn_tensor   weight[PRODUCTS];

/* Product i reads INPUT in layer 0, and its matrix_of is weight[i]. */
static vn_plan plan_of(int n)
{
	for (int i = 0; i < n; i++)
		node[i] = (vn_node) { .op = VN_OP_LINEAR, .n_in = 1, .n_w = 2, .in = { INPUT }, .w = { i, -1 } };
	return (vn_plan) { .n_nodes = n, .n_weights = n, .node = node };
}

static vn_tensor matrix_of(vn_dtype dtype, int64_t rows, int64_t cols, const void *data)
{
	return (vn_tensor) { dtype, { 2, { rows, cols } }, data };
}

static void row_is(vn_matrix_made *e, const vn_applied_matrix *edit, int64_t m, const double *want)
{
	double row[WIDEST];

	vn_matrix_made_row(e, edit, m, row);
	for (int64_t n = 0; n < e->N; n++)
		CU_ASSERT_EQUAL(row[n], want[n]);
}

/* Checks row m of a single edited matrix, rounded to `storage`. */
static void alone_is(const vn_tensor *w, vn_dtype storage, const vn_applied_matrix *edit, int64_t m, const double *want)
{
	const vn_plan  p = plan_of(1);
	vn_matrix_made e;

	CU_ASSERT_TRUE_FATAL(vn_matrix_made_open(&e, &p, w, 0, false, storage));
	row_is(&e, edit, m, want);
}

/* ---- kinds of edits -------------------------------------------------------------------------- */

static void each_kind_takes_the_numbers_from_where_it_says(void)
{
	static const float five[] = { 1, 2, 3, 4, 5 };
	const vn_tensor    w = matrix_of(VN_F32, 2, 3, six), wide = matrix_of(VN_F32, 1, 5, five),
					tall = matrix_of(VN_F32, 6, 1, six);
	const vn_applied_matrix transposed = { .kind = VN_MATRIX_TRANSPOSED }, back = { .kind = VN_MATRIX_BACK },
							tail = { .kind = VN_MATRIX_TAIL, .n = 2 },
							ranks = { .kind = VN_MATRIX_RANKS, .n = 2, .from = { 1, 0 } },
							rows = { .kind = VN_MATRIX_ROWS, .n = 3, .from = { 2, 0, 1 } },
							zero = { .kind = VN_MATRIX_ZERO }, factor = { .kind = VN_MATRIX_FACTOR, .factor = -0.5 };

	/* (2,3) is 1 2 3, 4 5 6. As (3,2) the same bytes are 1 2, 3 4, 5 6, whose columns are: */
	alone_is(&w, VN_F32, &transposed, 0, (const double[]) { 1, 3, 5 });
	alone_is(&w, VN_F32, &transposed, 1, (const double[]) { 2, 4, 6 });
	/* Transposed it is 1 4, 2 5, 3 6; read as (2,3): */
	alone_is(&w, VN_F32, &back, 0, (const double[]) { 1, 4, 2 });
	alone_is(&w, VN_F32, &back, 1, (const double[]) { 5, 3, 6 });
	alone_is(&w, VN_F32, &tail, 1, (const double[]) { 4, 0, 0 });
	/* two ranks of two inputs; the fifth belongs to none */
	alone_is(&wide, VN_F32, &ranks, 0, (const double[]) { 3, 4, 1, 2, 5 });
	for (int64_t m = 0; m < 6; m++)
		alone_is(&tall, VN_F32, &rows, m, (const double[]) { (const double[]) { 5, 6, 1, 2, 3, 4 }[m] });
	/* a block of one row each; what is left belongs to none */
	const vn_tensor five_rows = matrix_of(VN_F32, 5, 1, five), two_rows = matrix_of(VN_F32, 2, 1, five);
	for (int64_t m = 0; m < 5; m++)
		alone_is(&five_rows, VN_F32, &rows, m, (const double[]) { (const double[]) { 3, 1, 2, 4, 5 }[m] });
	alone_is(&two_rows, VN_F32, &rows, 1, (const double[]) { 2 }); /* fewer than blocks */
	alone_is(&w, VN_F32, &zero, 0, (const double[]) { 0, 0, 0 });
	alone_is(&w, VN_F32, &factor, 1, (const double[]) { -2, -2.5, -3 });
}

static void a_matrix_that_the_file_transposes_has_the_same_rows(void)
{
	static const float      columns[] = { 1, 4, 2, 5, 3, 6 };
	const vn_tensor         w = matrix_of(VN_F32, 3, 2, columns);
	const vn_applied_matrix tail = { .kind = VN_MATRIX_TAIL, .n = 1 }, transposed = { .kind = VN_MATRIX_TRANSPOSED };
	const vn_plan           p = plan_of(1);
	vn_matrix_made          e;

	node[0].c.linear.transposed = true;
	CU_ASSERT_TRUE_FATAL(vn_matrix_made_open(&e, &p, &w, 0, false, VN_F32));
	CU_ASSERT_TRUE(e.M == 2 && e.N == 3);
	row_is(&e, &tail, 0, (const double[]) { 1, 2, 0 });
	row_is(&e, &tail, 1, (const double[]) { 4, 5, 0 });
	row_is(&e, &transposed, 1, (const double[]) { 2, 4, 6 });
}

/* The second and third products of one input: 1 2, 3 4 and 5 6 lie in one piece, 1 2 3,
 * 4 5 6 if it is transposed. */
static void a_fused_matrix_is_edited_before_it_is_split(void)
{
	const vn_plan           p = plan_of(4);
	const vn_applied_matrix transposed = { .kind = VN_MATRIX_TRANSPOSED }, back = { .kind = VN_MATRIX_BACK },
							none = { .kind = VN_MATRIX_FACTOR, .factor = 1 };
	vn_matrix_made first, second;

	weight[0] = matrix_of(VN_F32, 1, 2, six);
	weight[1] = matrix_of(VN_F32, 2, 2, six);
	weight[2] = matrix_of(VN_F32, 1, 2, six + 4);
	weight[3] = matrix_of(VN_F32, 1, 2, six);
	node[0].layer = 1;         /* of another layer */
	node[3].in[0] = INPUT + 1; /* of another input */
	CU_ASSERT_TRUE_FATAL(vn_matrix_made_open(&first, &p, weight, 1, true, VN_F32));
	CU_ASSERT_TRUE_FATAL(vn_matrix_made_open(&second, &p, weight, 2, true, VN_F32));
	CU_ASSERT_TRUE(first.n == 2 && first.own == 0 && first.M == 2);
	CU_ASSERT_TRUE(second.n == 2 && second.own == 1 && second.M == 1);
	row_is(&first, &none, 1, (const double[]) { 3, 4 });
	row_is(&second, &none, 0, (const double[]) { 5, 6 });
	row_is(&first, &transposed, 0, (const double[]) { 1, 4 });
	row_is(&first, &transposed, 1, (const double[]) { 2, 5 });
	row_is(&second, &transposed, 0, (const double[]) { 3, 6 });
	/* transposed: 1 3 5, 2 4 6 */
	row_is(&first, &back, 0, (const double[]) { 1, 3 });
	row_is(&first, &back, 1, (const double[]) { 5, 2 });
	row_is(&second, &back, 0, (const double[]) { 4, 6 });
}

static void what_has_no_plain_matrix_cannot_be_edited(void)
{
	const vn_plan   p = plan_of(1);
	const vn_tensor plain = matrix_of(VN_F32, 2, 3, six), quantised = matrix_of(VN_Q8_0, 1, 32, six),
					list = { VN_F32, { 1, { 6 } }, six };
	vn_matrix_made e;

	CU_ASSERT_FALSE(vn_matrix_made_open(&e, &p, &quantised, 0, false, VN_F32));
	CU_ASSERT_FALSE(vn_matrix_made_open(&e, &p, &list, 0, false, VN_F32));
	CU_ASSERT_FALSE(vn_matrix_made_open(&e, &p, &plain, 0, true, VN_F32)); /* nothing to fuse */
	CU_ASSERT_TRUE(vn_matrix_made_open(&e, &p, &plain, 0, false, VN_F32));
	node[0].op = VN_OP_RMS_NORM;
	CU_ASSERT_FALSE(vn_matrix_made_open(&e, &p, &plain, 0, false, VN_F32));
}

/* ---- formats --------------------------------------------------------------------------------- */

static double two_to(int e)
{
	return ldexp(1, e);
}

/* Ties go to the even neighbour, except where bits are cut. */
static void each_format_has_its_own_numbers(void)
{
	const struct {
		vn_rounding_format format;
		double             x, y;
	} row[] = {
		{ VN_FORMAT_NONE, 1 + two_to(-40), 1 + two_to(-40) },
		{ VN_FORMAT_BF16, 1 + two_to(-8), 1 },
		{ VN_FORMAT_BF16, 1 + two_to(-8) + two_to(-20), 1 + two_to(-7) },
		{ VN_FORMAT_BF16, 1 + 3 * two_to(-8), 1 + two_to(-6) },
		{ VN_FORMAT_BF16, two_to(100) + two_to(91), two_to(100) },
		{ VN_FORMAT_F16, 1 + two_to(-11), 1 },
		{ VN_FORMAT_F16, -1 - 3 * two_to(-11), -1 - two_to(-9) },
		{ VN_FORMAT_F16, 65519, 65504 },
		{ VN_FORMAT_F16, 65520, (double)INFINITY },
		{ VN_FORMAT_F16, two_to(-25), 0 },
		{ VN_FORMAT_TF32, 1 + two_to(-11), 1 },
		{ VN_FORMAT_TF32, -1 - 3 * two_to(-11), -1 - two_to(-9) },
		{ VN_FORMAT_TF32, two_to(100) + two_to(89), two_to(100) },
		{ VN_FORMAT_TF32, 0, 0 },
		{ VN_FORMAT_TF32, -(double)INFINITY, -(double)INFINITY },
		{ VN_FORMAT_TF32_AWAY, 1 + two_to(-11), 1 + two_to(-10) },
		{ VN_FORMAT_TF32_AWAY, -1 - two_to(-11), -1 - two_to(-10) },
		{ VN_FORMAT_TF32_AWAY, 1 + two_to(-12), 1 },
		{ VN_FORMAT_INT8_128, 127.6, 127 },
		{ VN_FORMAT_INT8_128, -127.6, -128 },
		{ VN_FORMAT_TF32_CUT, 1 + 3 * two_to(-11), 1 + two_to(-10) },
		{ VN_FORMAT_TF32_CUT, -1 - 3 * two_to(-11), -1 - two_to(-10) },
		{ VN_FORMAT_E4M3, 1.0625, 1 },
		{ VN_FORMAT_E4M3, 1.1875, 1.25 },
		{ VN_FORMAT_E4M3, -447, -448 },
		{ VN_FORMAT_E4M3, two_to(-9), two_to(-9) }, /* the smallest above 0 */
		{ VN_FORMAT_E5M2, 1.125, 1 },
		{ VN_FORMAT_E5M2, 1.375, 1.5 },
		{ VN_FORMAT_E5M2, 57000, 57344 },
		{ VN_FORMAT_INT8, 2.5, 2 },
		{ VN_FORMAT_INT8, 3.5, 4 },
		{ VN_FORMAT_INT8, -2.6, -3 },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		CU_ASSERT_EQUAL(vn_in_format(row[i].x, row[i].format), row[i].y);
	CU_ASSERT_TRUE(isnan(vn_in_format((double)NAN, VN_FORMAT_TF32)));
}

static void the_largest_of_a_group_becomes_the_largest_of_the_format(void)
{
	double a[] = { -254, 1, 1.5, 126.4 }, b[] = { 896, 2.125, 2.14 }, c[] = { 2 * 57344, 2.75 }, zero[] = { 0, 0 };

	vn_in_format_scaled(a, 4, VN_FORMAT_INT8); /* scale 2 */
	CU_ASSERT_TRUE(a[0] == -254 && a[1] == 0 && a[2] == 2 && a[3] == 126);
	vn_in_format_scaled(b, 3, VN_FORMAT_E4M3); /* 448 is its largest: scale 2 */
	CU_ASSERT_TRUE(b[0] == 896 && b[1] == 2 && b[2] == 2.25);
	vn_in_format_scaled(c, 2, VN_FORMAT_E5M2); /* 57344 */
	CU_ASSERT_TRUE(c[0] == 2 * 57344 && c[1] == 3);
	vn_in_format_scaled(zero, 2, VN_FORMAT_INT8);
	CU_ASSERT_TRUE(zero[0] == 0 && zero[1] == 0);
}

static void weights_have_a_scale_for_the_matrix_or_for_each_row(void)
{
	static const float x[] = { 1, 1.27f * 2, 127, 254 };
	const vn_tensor    w = matrix_of(VN_F32, 2, 2, x);
	vn_applied_matrix  edit = { .kind = VN_MATRIX_FORMAT, .format = VN_FORMAT_INT8, .scaled = VN_SCALE_OF_ALL };
	const double       scale = (double)x[1] / 127;
	const vn_plan      p = plan_of(1);
	vn_matrix_made     e;

	CU_ASSERT_TRUE_FATAL(vn_matrix_made_open(&e, &p, &w, 0, false, VN_F32));
	row_is(&e, &edit, 0, (const double[]) { 0, 2 }); /* scale 2 */
	CU_ASSERT_EQUAL(e.largest, 254);
	row_is(&e, &edit, 1, (const double[]) { 128, 254 }); /* 63.5 is a tie: 64 */
	edit.scaled = VN_SCALE_OF_ROWS;
	row_is(&e, &edit, 0, (const double[]) { 50 * scale, 127 * scale });
	edit.scaled = VN_NO_SCALE;
	row_is(&e, &edit, 0, (const double[]) { 1, 3 });
	edit.of = VN_OF_INPUTS;
	row_is(&e, &edit, 0, (const double[]) { 1, (double)x[1] });
}

static void weights_may_be_rounded_to_the_storage_before_and_are_after(void)
{
	static const float      x[] = { (float)(1 + 0x1p-8 + 0x1p-12) }, y[] = { 127.0f / 3, 7.2f / 3 };
	const vn_tensor         one = matrix_of(VN_F32, 1, 1, x), two = matrix_of(VN_F32, 1, 2, y);
	const vn_applied_matrix direct = { .kind = VN_MATRIX_FORMAT, .format = VN_FORMAT_BF16 },
							twice = { .kind = VN_MATRIX_FORMAT, .format = VN_FORMAT_BF16, .stored = true },
							rows = { .kind = VN_MATRIX_FORMAT, .format = VN_FORMAT_INT8, .scaled = VN_SCALE_OF_ROWS };
	double row[2];

	alone_is(&one, VN_F16, &direct, 0, (const double[]) { 1 + 0x1p-7 });
	alone_is(&one, VN_F16, &twice, 0, (const double[]) { 1 }); /* float16 makes a tie of it */
	/* 7 thirds, whose nearest float16 is 1195 / 512 */
	const vn_plan  p = plan_of(1);
	vn_matrix_made e;
	CU_ASSERT_TRUE_FATAL(vn_matrix_made_open(&e, &p, &two, 0, false, VN_F16));
	vn_matrix_made_row(&e, &rows, 0, row);
	CU_ASSERT_EQUAL(row[1], 1195.0 / 512);
	CU_ASSERT_TRUE_FATAL(vn_matrix_made_open(&e, &p, &two, 0, false, VN_F32));
	vn_matrix_made_row(&e, &rows, 0, row);
	CU_ASSERT_DOUBLE_EQUAL(row[1], 7.0 / 3, 1e-6);
}

/* ---- ties ------------------------------------------------------------------------------------ */

/* 127 makes the scale 1: 0.5, 1.5 and -2.5 lie in the middle; 3.49 does not. */
static void a_nudge_decides_ties_and_nothing_else(void)
{
	static const float      x[] = { 127, 0.5, 1.5, -2.5, 3.49f };
	const vn_tensor         w = matrix_of(VN_F32, 1, 5, x);
	const vn_applied_matrix rows = { .kind = VN_MATRIX_FORMAT, .format = VN_FORMAT_INT8, .scaled = VN_SCALE_OF_ROWS };
	const vn_plan           p = plan_of(1);
	vn_matrix_made          e;

	CU_ASSERT_TRUE_FATAL(vn_matrix_made_open(&e, &p, &w, 0, false, VN_F32));
	row_is(&e, &rows, 0, (const double[]) { 127, 0, 2, -2, 3 });
	e.nudge = VN_NUDGE;
	row_is(&e, &rows, 0, (const double[]) { 127, 1, 2, -3, 3 });
	e.nudge = -VN_NUDGE;
	row_is(&e, &rows, 0, (const double[]) { 127, 0, 1, -2, 3 });
}

static void inputs_are_rounded_token_by_token_if_the_edit_is_of_them(void)
{
	const double      is[] = { 127, 0.5, 1.5 };
	vn_applied_matrix edit = { .kind = VN_MATRIX_FORMAT, .format = VN_FORMAT_INT8, .of = VN_OF_INPUTS };
	const struct {
		vn_rounded_part  of;
		vn_rounded_scale scaled;
		double           nudge, y[3];
	} row[] = {
		{ VN_OF_INPUTS, VN_SCALE_OF_ROWS, 0, { 127, 0, 2 } },
		{ VN_OF_INPUTS, VN_SCALE_OF_ROWS, VN_NUDGE, { 127, 1, 2 } },
		{ VN_OF_BOTH, VN_SCALE_OF_ROWS, -VN_NUDGE, { 127, 0, 1 } },
		{ VN_OF_INPUTS, VN_NO_SCALE, VN_NUDGE, { 127, 0, 2 } }, /* without a scale nothing was divided */
		{ VN_OF_WEIGHTS, VN_SCALE_OF_ROWS, 0, { 127, 0.5, 1.5 } },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		double x[] = { is[0], is[1], is[2] };
		edit.of = row[i].of;
		edit.scaled = row[i].scaled;
		vn_matrix_made_input(&edit, row[i].nudge, x, 3);
		for (int n = 0; n < 3; n++)
			CU_ASSERT_EQUAL(x[n], row[i].y[n]);
	}
}

/* ---- products with an edited matrix, or edited inputs ---------------------------------------- */

/* The product is layer1.q_proj of the llama, without a bias. */
enum { T = 3, N = 48, M = 48 };

static float  x[T * N], q[T * M], matrix[M * N];
static double rounded[T * N], rounded_matrix[M * N], want[T * M];

/* Each token has 127, so that its scale is 1, three numbers in the middle between two
 * integers, and integers. */
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

/* A case at the product that recorded x and q, with `matrix` as its weight. */
typedef struct product {
	explained  e;
	vn_site    site;
	vn_tensor *weights;
	vn_trial   h;
	vn_made    made;
} product;

static void open_product(product *p, vn_applied_matrix edit)
{
	const given of[] = { { "layer1.attn_norm", x }, { "layer1.q_proj", q } };

	*p = (product) { .h.applied = { .kind = VN_BY_MATRIX, .matrix = edit } };
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
	CU_ASSERT_EQUAL_FATAL((vn_apply_matrix(&p->e.t, &p->h, &p->made), p->e.failed.st), VN_OK);
}

static void close_product(product *p)
{
	vn_made_finish(&p->made);
	free(p->weights);
	end_explained(&p->e);
}

static const vn_applied_matrix of_inputs = {
	.kind = VN_MATRIX_FORMAT, .format = VN_FORMAT_INT8, .of = VN_OF_INPUTS, .scaled = VN_SCALE_OF_ROWS
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

/* One input's weights are twice another's: judged alone, the smaller tie would be settled to
 * compensate for the larger one. */
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
	const vn_applied_matrix edit = {
		.kind = VN_MATRIX_FORMAT, .format = VN_FORMAT_INT8, .of = VN_OF_WEIGHTS, .scaled = VN_SCALE_OF_ROWS
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
	const vn_applied_matrix edit = { .kind = VN_MATRIX_FORMAT, .format = VN_FORMAT_F16, .of = VN_OF_INPUTS };
	double                  weights[M * N];
	product                 p;

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

/* A mistake in a later operation changes nothing at the checkpoint. */
static void an_edit_of_what_is_no_product_makes_nothing(void)
{
	product p;

	fill_inputs();
	fill_matrix();
	open_product(&p, of_inputs);
	vn_made_finish(&p.made);
	p.h.node = node_named(&p.e, "layer1.attn_norm");
	CU_ASSERT_EQUAL((vn_apply_matrix(&p.e.t, &p.h, &p.made), p.e.failed.st), VN_OK);
	CU_ASSERT_TRUE(!p.made.plan && !p.made.fine.data);
	close_product(&p);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(each_kind_takes_the_numbers_from_where_it_says),
		TEST(a_matrix_that_the_file_transposes_has_the_same_rows),
		TEST(a_fused_matrix_is_edited_before_it_is_split),
		TEST(what_has_no_plain_matrix_cannot_be_edited),
		TEST(each_format_has_its_own_numbers),
		TEST(the_largest_of_a_group_becomes_the_largest_of_the_format),
		TEST(weights_have_a_scale_for_the_matrix_or_for_each_row),
		TEST(weights_may_be_rounded_to_the_storage_before_and_are_after),
		TEST(a_nudge_decides_ties_and_nothing_else),
		TEST(inputs_are_rounded_token_by_token_if_the_edit_is_of_them),
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
	const int failed = run_suite("apply_matrix", tests);
	return !remove_folder() || failed;
}
