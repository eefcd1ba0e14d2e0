/* test_apply_computed.c: tests compare/hypothesis/apply_computed.c. */
#include "compare/hypothesis/apply_computed.h"
#include "tests/narrow_help.h"

#include <math.h>

/* ---- rotations ------------------------------------------------------------------------------- */

/* Two heads of six columns, of which four are rotated: columns 0 and 2 by 1 radian a position,
 * 1 and 3 by 0.01. */
enum { HEADS = 2, COLUMNS = 6, MOST = 4 };

static const double input[MOST * HEADS * COLUMNS] = { 1, 2, 3, 4, 5, 6, -1,  0.5, 2, -3, 7, 8, 1, 0, 0, 1,
	                                                  9, 9, 2, 2, 2, 2, 2,   2,   3, 1,  4, 1, 5, 9, 2, 6,
	                                                  5, 3, 5, 8, 9, 7, 9.5, 3,   2, 3,  8, 4, 6, 2, 6, 4 };

static double *rotated(const vn_rotate_edit *edit, const int32_t *ids, int64_t first, int64_t n, double *y)
{
	static const int64_t begins[] = { -1, -1, -1, -1, -1, 5, 5, -1 }; /* a call of 5, of 2, and of 1 token */
	const vn_plan        p = { 0 };
	const vn_node        rope = { .op = VN_OP_ROPE, .c.rope.rope = { .theta = 10000, .rotary_dim = 4 } };

	CU_ASSERT_TRUE_FATAL(vn_rotate_rows(&p, &rope, edit, ids, begins, input, first, n, first + n, HEADS, COLUMNS, y));
	return y;
}

/* Row t is rotated with these sines and cosines, of pair 0 and pair 1. */
static void row_has(const double *y, int t, const double c[2], const double s[2], double within)
{
	for (int h = 0; h < HEADS; h++) {
		const double *in = input + (t * HEADS + h) * COLUMNS, *out = y + (t * HEADS + h) * COLUMNS;
		for (int i = 0; i < 2; i++) {
			CU_ASSERT_DOUBLE_EQUAL(out[i], in[i] * c[i] - in[i + 2] * s[i], within);
			CU_ASSERT_DOUBLE_EQUAL(out[i + 2], in[i + 2] * c[i] + in[i] * s[i], within);
		}
		CU_ASSERT_EQUAL(out[4], in[4]);
		CU_ASSERT_EQUAL(out[5], in[5]);
	}
}

/* Same, by the angles of pair 0 and pair 1. */
static void row_is_at(const double *y, int t, double angle, double other)
{
	row_has(y, t, (const double[]) { cos(angle), cos(other) }, (const double[]) { sin(angle), sin(other) }, 1e-6);
}

static void rows_are_rotated_by_their_positions(void)
{
	double y[MOST * HEADS * COLUMNS];

	rotated(&(vn_rotate_edit) { 0 }, NULL, 5, MOST, y);
	for (int t = 0; t < MOST; t++)
		row_is_at(y, t, 5 + t, 0.01 * (5 + t));
}

static void positions_restart_or_are_the_ids(void)
{
	const int32_t ids[] = { 40, 2, 2, 7 };
	double        y[MOST * HEADS * COLUMNS];

	rotated(&(vn_rotate_edit) { .call = 3 }, NULL, 4, MOST, y); /* positions 4, 5, 6, 7 */
	for (int t = 0; t < MOST; t++) {
		const int at[] = { 1, 2, 0, 1 };
		row_is_at(y, t, at[t], 0.01 * at[t]);
	}
	rotated(&(vn_rotate_edit) { .by_ids = true }, ids, 4, MOST, y);
	for (int t = 0; t < MOST; t++)
		row_is_at(y, t, ids[t], 0.01 * ids[t]);
}

/* Calls of one token, and the first call, are left as they are. */
static void positions_restart_in_the_calls_of_the_recording(void)
{
	static const int at[] = { 4, 0, 1, 7 };
	double           y[MOST * HEADS * COLUMNS];

	rotated(&(vn_rotate_edit) { .call = VN_OWN_CALLS }, NULL, 4, MOST, y);
	for (int t = 0; t < MOST; t++)
		row_is_at(y, t, at[t], 0.01 * at[t]);
}

static void some_tokens_are_at_other_positions(void)
{
	static const struct {
		vn_position_map map;
		double          at[MOST];
	} maps[] = {
		{ { .first = 5, .last = 6, .times = 1, .plus = -3 }, { 4, 2, 3, 7 } },
		{ { .first = 6, .open = true, .times = 0.25 }, { 4, 5, 1.5, 1.75 } },
		{ { .first = 0, .last = 6, .times = 0.5, .whole = true }, { 2, 2, 3, 7 } },
	};
	double y[MOST * HEADS * COLUMNS];

	for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
		rotated(&(vn_rotate_edit) { .moved = true, .map = maps[i].map }, NULL, 4, MOST, y);
		for (int t = 0; t < MOST; t++)
			row_is_at(y, t, maps[i].at[t], 0.01 * maps[i].at[t]);
	}
}

static void sine_and_cosine_are_exchanged(void)
{
	double y[MOST * HEADS * COLUMNS];

	rotated(&(vn_rotate_edit) { .exchanged = true }, NULL, 1, 1, y);
	row_has(y, 0, (const double[]) { sin(1), sin(0.01) }, (const double[]) { cos(1), cos(0.01) }, 1e-6);
}

static void each_number_is_rounded_where_the_edit_says(void)
{
	double y[MOST * HEADS * COLUMNS];

	/* bfloat16 has no 257 */
	rotated(&(vn_rotate_edit) { .positions = VN_FORMAT_BF16 }, NULL, 257, 1, y);
	row_is_at(y, 0, 256, 2.56);
	/* 0.01 is 1.28 / 128; bfloat16 has 164 / 128 for 1.28, and 1 itself */
	rotated(&(vn_rotate_edit) { .frequencies = VN_FORMAT_BF16 }, NULL, 100, 1, y);
	row_is_at(y, 0, 100, 100 * 164.0 / 128 / 128);
	/* from 2048 on float16 has even numbers: 3001 is a tie, 3000 / 2 is even.
	 * 30.01 lies between 30 and 30 + 1/64 */
	rotated(&(vn_rotate_edit) { .angles = VN_FORMAT_F16 }, NULL, 3001, 1, y);
	row_is_at(y, 0, 3000, 30 + 1.0 / 64);
	/* cos 1 = 1106.54 / 2048, sin 1 = 1723.33 / 2048; cos 0.01 = 2047.9 / 2048,
	 * sin 0.01 = 1310.7 / 2^17 */
	rotated(&(vn_rotate_edit) { .table = VN_FORMAT_F16 }, NULL, 1, 1, y);
	row_has(y, 0, (const double[]) { 1107.0 / 2048, 1 }, (const double[]) { 1723.0 / 2048, 1311 * 0x1p-17 }, 1e-12);
}

/* ---- activations ----------------------------------------------------------------------------- */

enum { TWO = 2, FF = 128 };

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
	static float gate[TWO * FF], up[TWO * FF], act[TWO * FF];
	const given  of[] = { { "layer1.gate_proj", gate }, { "layer1.up_proj", up }, { "layer1.mlp_act", act } };
	double       y[KNOWN], two[2];
	explained    e;

	for (int i = 0; i < TWO * FF; i++) {
		gate[i] = (float)(i < KNOWN ? known[i].x : i == FF ? 3 : 0);
		up[i] = i == FF ? 2 : 0.5f;
	}
	compare_given(&e, TWO, 0, of, 3);
	stand_at(&e, "layer1.mlp_act", 0);
	CU_ASSERT_TRUE(vn_activation_is_known(&e.t));
	for (int i = 0; i < KNOWN; i++) {
		const int which = activation_named(known[i].name);
		CU_ASSERT_FATAL(which >= 0);
		CU_ASSERT_EQUAL_FATAL(vn_activation_make(&e.t, which, KNOWN, 1, y, &e.err), VN_OK);
		CU_ASSERT_DOUBLE_EQUAL(y[i], known[i].y / 2, 1e-14 + 1e-15 * fabs(known[i].x));
	}
	/* the first number of each token */
	CU_ASSERT_EQUAL_FATAL(vn_activation_make(&e.t, activation_named("squared relu"), 2, FF, two, &e.err), VN_OK);
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
	static double y[FF];
	const void   *gate;
	double        x, own;
	explained     e;

	compare_llama(&e, NULL);
	stand_at(&e, "layer1.mlp_act", 2);
	const int at = vn_recording_find(e.compared.c.opened.cand, 2, "layer1.gate_proj");
	CU_ASSERT_EQUAL_FATAL(vn_recording_data(e.compared.c.opened.cand, at, &gate, &e.err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_activation_make(&e.t, activation_named("sigmoid"), FF, 1, y, &e.err), VN_OK);
	for (int i = 0; i < FF; i++) {
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

	compare_llama(&e, NULL);
	stand_at(&e, "layer1.gate_proj", 0);
	CU_ASSERT_FALSE(vn_activation_is_known(&e.t));
	CU_ASSERT_EQUAL(vn_activation_make(&e.t, 0, 1, 1, y, &e.err), VN_ERR_UNSUPPORTED);
	end_explained(&e);
}

/* ---- narrower formats ------------------------------------------------------------------------ */

enum { BF16 = 8, F16 = 11 };

static double in_narrow[N];

/* Returns how many numbers are off, for an operation that stores its results so. */
static int64_t made_narrow_in(vn_dtype storage, vn_narrow_edit edit)
{
	explained e;
	int64_t   off = -2;

	stand_at_sum(&e);
	e.compared.c.opened.policy.storage = storage;
	CU_ASSERT_EQUAL(vn_narrow_make(&e.t, &edit, in_narrow, &off, &e.err), VN_OK);
	end_explained(&e);
	return off;
}

static int64_t made_narrow(vn_narrow_edit edit)
{
	return made_narrow_in(VN_F32, edit);
}

static int differing(void)
{
	int n = 0;
	for (int i = 0; i < N; i++)
		n += in_narrow[i] != (double)sum[i];
	return n;
}

static void a_result_is_rounded_alone_or_with_its_inputs(void)
{
	static const struct {
		int                bits;
		vn_rounding_format format;
	} of[] = { { BF16, VN_FORMAT_BF16 }, { F16, VN_FORMAT_F16 } };

	for (int i = 0; i < 4; i++) {
		const bool whole = i & 1;
		add_numbers(of[i / 2].bits, whole);
		CU_ASSERT_EQUAL(made_narrow((vn_narrow_edit) { of[i / 2].format, whole }), 0);
		CU_ASSERT_EQUAL(differing(), 0);
		CU_ASSERT_NOT_EQUAL(made_narrow((vn_narrow_edit) { of[i / 2].format, !whole }), 0);
	}
}

/* The next number of that format, away from 0. */
static double next_in_bits(double x, int bits)
{
	int e;
	frexp(x, &e);
	return x + copysign(ldexp(1, e - bits), x);
}

static void a_few_numbers_may_be_off_by_one_place(void)
{
	add_numbers(BF16, false);
	for (int i = 0; i < 3; i++)
		sum[50 * i] = (float)next_in_bits((double)sum[50 * i], BF16);
	CU_ASSERT_EQUAL(made_narrow((vn_narrow_edit) { VN_FORMAT_BF16, false }), 3);
	CU_ASSERT_EQUAL(differing(), 0); /* they are the candidate's */
}

static void more_than_a_quarter_may_not(void)
{
	add_numbers(BF16, false);
	for (int i = 0; i < N / 4; i++)
		sum[2 * i] = (float)next_in_bits((double)sum[2 * i], BF16);
	CU_ASSERT_EQUAL(made_narrow((vn_narrow_edit) { VN_FORMAT_BF16, false }), N / 4);
	sum[1] = (float)next_in_bits((double)sum[1], BF16);
	CU_ASSERT_EQUAL(made_narrow((vn_narrow_edit) { VN_FORMAT_BF16, false }), -1);
	CU_ASSERT_EQUAL(differing(), N / 4 + 1); /* they are as computed */
}

static void two_places_are_too_many(void)
{
	add_numbers(BF16, false);
	sum[7] = (float)next_in_bits(next_in_bits((double)sum[7], BF16), BF16);
	CU_ASSERT_EQUAL(made_narrow((vn_narrow_edit) { VN_FORMAT_BF16, false }), -1);
	CU_ASSERT_EQUAL(differing(), 1);
}

/* Two engines in 16 bits sum in float32, in different orders: a small sum of large numbers may be
 * more than one place off. A large one may not. */
static void in_16_bits_only_a_sum_that_nearly_cancels_may_be_two_places_off(void)
{
	const vn_narrow_edit edit = { VN_FORMAT_BF16, false };

	add_numbers(BF16, false);
	a[7] = 1;
	b[7] = -1 + 0x1p-18f;
	sum[7] = (float)next_in_bits(next_in_bits(0x1p-18, BF16), BF16);
	CU_ASSERT_EQUAL(made_narrow_in(VN_F16, edit), 1);
	CU_ASSERT_EQUAL(differing(), 0);
	b[7] = -1 + 0x1p-3f;
	sum[7] = (float)next_in_bits(next_in_bits(0x1p-3, BF16), BF16);
	CU_ASSERT_EQUAL(made_narrow_in(VN_F16, edit), -1);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(rows_are_rotated_by_their_positions),
		TEST(positions_restart_or_are_the_ids),
		TEST(positions_restart_in_the_calls_of_the_recording),
		TEST(some_tokens_are_at_other_positions),
		TEST(sine_and_cosine_are_exchanged),
		TEST(each_number_is_rounded_where_the_edit_says),
		TEST(each_is_its_function_times_up),
		TEST(every_one_has_a_value_here),
		TEST(of_a_later_call_its_own_rows_are_made),
		TEST(a_product_is_made_by_none),
		TEST(a_result_is_rounded_alone_or_with_its_inputs),
		TEST(a_few_numbers_may_be_off_by_one_place),
		TEST(more_than_a_quarter_may_not),
		TEST(two_places_are_too_many),
		TEST(in_16_bits_only_a_sum_that_nearly_cancels_may_be_two_places_off),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("apply_computed", tests);
	return !remove_folder() || failed;
}
