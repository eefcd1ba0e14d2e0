/* test_weights_likely.c: tests compare/weights/weights_likely.c, findings about a weight that
 * differs if no digest decides. */
#include "tests/support/weights_help.h"

#include "libref/base/quantise.h"

#include <math.h>
#include <string.h>

enum { ROWS = 32, COLS = 64, N = ROWS * COLS };
#define DOWN "model.layers.0.mlp.down_proj.weight"
#define NORM "model.norm.weight"

static uint64_t state;

/* Between -1 and 1. */
static double uniform(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (double)(int32_t)(state >> 32) / 0x1p31;
}

/* The sum of twelve has a variance of 4. */
static void normal(uint64_t seed, double deviation, double mean, double *x)
{
	state = seed;
	for (int i = 0; i < N; i++) {
		x[i] = mean;
		for (int k = 0; k < 12; k++)
			x[i] += deviation * uniform() / 2;
	}
}

typedef struct made {
	double               x[2][N];
	unsigned char        data[2][N * sizeof(double)];
	vn_tensor            tensor[2];
	vn_weight_row        row[2];
	vn_weight_side       side[2];
	vn_weight_trial      t;
	vn_weight_difference d;
	vn_weight_fate       fate;
} made;

static made m;

/* Of m.x, stored so: rows x cols. */
static void pair(const char *name, vn_dtype a, vn_dtype b, int64_t rows, int64_t cols)
{
	const vn_dtype dtype[2] = { a, b };

	for (int k = 0; k < 2; k++) {
		vn_from_f64(m.data[k], dtype[k], m.x[k], (size_t)(rows * cols));
		m.tensor[k] = (vn_tensor) { dtype[k], { 2, { rows, cols } }, m.data[k] };
		m.row[k] = row_of(name, &m.tensor[k]);
		m.side[k] = (vn_weight_side) { .row = &m.row[k], .n = 1 };
	}
	m.t = (vn_weight_trial) { .side = { &m.side[0], &m.side[1] },
		                      .row = { &m.row[0], &m.row[1] },
		                      .numbers = { &m.tensor[0], &m.tensor[1] },
		                      .name = vn_weight_name_of(NULL, name) };
}

static void without_numbers(void)
{
	m.t.numbers[0] = m.t.numbers[1] = NULL;
}

static void expect_likely(const char *kind, const char *id, vn_weight_proof proof, bool certain, const char *words)
{
	memset(&m.d, 0, sizeof m.d);
	CU_ASSERT_TRUE_FATAL(vn_weight_by_statistics(&m.t, &m.d));
	CU_ASSERT_STRING_EQUAL(m.d.kind, kind);
	CU_ASSERT_STRING_EQUAL(m.d.id, id);
	CU_ASSERT_EQUAL(m.d.proof, proof);
	CU_ASSERT_EQUAL(m.d.certain, certain);
	CU_ASSERT_STRING_EQUAL(m.d.words, words);
}

/* ---- the same numbers -------------------------------------------------------------- */

static bool same(void)
{
	m.fate = vn_weight_same_numbers(&m.t);
	return m.fate != VN_WEIGHT_DIFFERS;
}

static void one_digest_is_one_weight(void)
{
	normal(1, 1, 0, m.x[0]);
	normal(1, 1, 0, m.x[1]);
	pair(DOWN, VN_F32, VN_F32, ROWS, COLS);
	CU_ASSERT_TRUE(same());
	CU_ASSERT_EQUAL(m.fate, VN_WEIGHT_SAME);
	m.row[1].shape = (vn_shape) { 2, { COLS, ROWS } };
	CU_ASSERT_FALSE(same());
	m.x[1][N - 1] += 1;
	pair(DOWN, VN_F32, VN_F32, ROWS, COLS);
	CU_ASSERT_FALSE(same());
}

/* In bf16, rounded or cut: by the numbers of the finer side, or else by statistics. */
static void a_format_is_reached_by_rounding_and_not_by_cutting(void)
{
	const vn_weight_change cut = { .kind = VN_WEIGHT_CHANGE_TRUNCATED, .as = VN_BF16 };

	for (int truncated = 0; truncated < 2; truncated++)
		for (int side = 0; side < 2; side++) { /* which is the finer one */
			normal(1, 1, 0, m.x[side]);
			pair(DOWN, VN_F32, VN_F32, ROWS, COLS);
			for (int i = 0; i < N; i++) {
				m.x[side][i] = (float)m.x[side][i];
				m.x[!side][i] = truncated ? vn_weight_change_number(&cut, m.x[side][i]) : m.x[side][i];
			}
			m.x[side][0] = m.x[!side][0] = -8; /* the ends fit either way: the rms decides */
			m.x[side][1] = m.x[!side][1] = 8;
			pair(DOWN, side ? VN_BF16 : VN_F32, side ? VN_F32 : VN_BF16, ROWS, COLS);
			CU_ASSERT_EQUAL(same(), !truncated);
			CU_ASSERT_EQUAL(m.fate, truncated ? VN_WEIGHT_DIFFERS : VN_WEIGHT_ROUNDED);
			m.t.numbers[!side] = NULL;
			CU_ASSERT_EQUAL(same(), !truncated);
			without_numbers();
			CU_ASSERT_EQUAL(same(), !truncated);
			m.row[!side].digest = (vn_digest) { "" }; /* nothing to hold it against */
			CU_ASSERT_TRUE(same());
			CU_ASSERT_EQUAL(m.fate, VN_WEIGHT_ALIKE);
		}
}

/* Numbers of bf16 in f32, transposed: a digest proves it if one side's numbers are available. The
 * tables alone do not. */
static void another_order_in_another_format_needs_the_numbers(void)
{
	normal(1, 1, 0, m.x[0]);
	pair(DOWN, VN_BF16, VN_F32, ROWS, COLS);
	for (int i = 0; i < N; i++)
		m.x[1][i % COLS * ROWS + i / COLS] = (double)vn_bf16_to_f32(vn_f32_to_bf16((float)m.x[0][i]));
	pair(DOWN, VN_BF16, VN_F32, ROWS, COLS);
	CU_ASSERT_FALSE(same());
	m.t.numbers[1] = NULL;
	CU_ASSERT_FALSE(same());
	without_numbers();
	CU_ASSERT_TRUE(same());
	CU_ASSERT_EQUAL(m.fate, VN_WEIGHT_ALIKE);
}

/* f16 and bf16, where neither format holds the other's numbers: with both sides' numbers, an order
 * and one changed number are found. */
static void two_roundings_of_one_number_are_the_same(void)
{
	normal(1, 1, 0, m.x[0]);
	normal(1, 1, 0, m.x[1]);
	m.x[0][5] = m.x[1][5] = 1e-7; /* subnormal in f16 */
	pair(DOWN, VN_F16, VN_BF16, ROWS, COLS);
	CU_ASSERT_TRUE(same());
	CU_ASSERT_EQUAL(m.fate, VN_WEIGHT_ROUNDED);
	m.t.numbers[0] = NULL;
	CU_ASSERT_TRUE(same());
	CU_ASSERT_EQUAL(m.fate, VN_WEIGHT_ALIKE);
	m.x[1][N - 1] *= 1.02;
	pair(DOWN, VN_F16, VN_BF16, ROWS, COLS);
	CU_ASSERT_FALSE(same());
	for (int i = 0; i < N; i++)
		m.x[1][i % COLS * ROWS + i / COLS] = m.x[0][i];
	pair(DOWN, VN_F16, VN_BF16, ROWS, COLS);
	CU_ASSERT_FALSE(same());
}

/* A converter to GGUF adds 1 to a norm, and undoing it rounds: by 2^-24 at most. */
static void what_a_converter_did_is_undone(void)
{
	static const struct {
		double off;
		bool   gguf, same;
	} row[] = { { 5e-8, true, true }, { 2e-7, true, false }, { 5e-8, false, false } };

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		for (int k = 0; k < 8; k++) {
			m.x[0][k] = 0.01 * (k + 1);
			m.x[1][k] = m.x[0][k] + row[i].off;
		}
		pair(NORM, VN_F32, VN_F32, 1, 8);
		m.side[1].gguf = row[i].gguf;
		CU_ASSERT_EQUAL(same(), row[i].same);
		without_numbers();
		CU_ASSERT_EQUAL(same(), row[i].same);
		if (!row[i].same)
			continue;
		CU_ASSERT_EQUAL(m.fate, VN_WEIGHT_ROUNDED);
		m.row[0].stats.nan = 1;
		CU_ASSERT_FALSE(same());
		pair(DOWN, VN_F32, VN_F32, 1, 8); /* no norm: nothing was added */
		m.side[1].gguf = true;
		CU_ASSERT_FALSE(same());
	}
}

/* ---- both at hand ------------------------------------------------------------------------ */

static void a_zero_has_two_signs(void)
{
	normal(1, 1, 0, m.x[0]);
	m.x[0][3] = 0.0;
	memcpy(m.x[1], m.x[0], sizeof m.x[0]);
	m.x[1][3] = -0.0;
	pair(DOWN, VN_F32, VN_F32, ROWS, COLS);
	expect_likely("bits", "", VN_PROOF_NUMBERS, true, "the same numbers with other bits");
}

static void a_factor_is_named(void)
{
	normal(1, 1, 0, m.x[0]);
	for (int i = 0; i < N; i++)
		m.x[1][i] = 1.25 * (float)m.x[0][i];
	pair(DOWN, VN_F32, VN_F32, ROWS, COLS);
	expect_likely("scaled", "", VN_PROOF_NUMBERS, true, "multiplied by 1.25");
}

/* Noise of a hundredth, and as large as the weight itself. */
static void near_numbers_are_a_revision_and_far_ones_others(void)
{
	for (int far = 0; far < 2; far++) {
		normal(2, far ? 1 : 0.01, 0, m.x[1]);
		normal(1, 1, 0, m.x[0]);
		for (int i = 0; i < N; i++)
			m.x[1][i] += m.x[0][i];
		pair(DOWN, VN_F32, VN_F32, ROWS, COLS);
		if (far)
			expect_likely("other", "", VN_PROOF_NUMBERS, true, "other numbers");
		else
			expect_likely("revision", "", VN_PROOF_NUMBERS, false, "another revision, or rounded differently");
		CU_ASSERT_EQUAL(m.d.measured, VN_WEIGHT_APART);
		CU_ASSERT_DOUBLE_EQUAL(m.d.measure, far ? 1.0 : 0.01, far ? 0.1 : 0.001);
	}
}

static void what_has_nothing_in_common_is_unrelated(void)
{
	normal(1, 1, 0, m.x[0]);
	normal(2, 3, 0, m.x[1]);
	pair(DOWN, VN_F32, VN_F32, ROWS, COLS);
	expect_likely("unrelated", "", VN_PROOF_NUMBERS, true, "unrelated numbers");
	CU_ASSERT_EQUAL(m.d.measured, VN_WEIGHT_CORRELATION);
	normal(2, 0.02, 0, m.x[1]);
	pair(DOWN, VN_F32, VN_F32, ROWS, COLS);
	expect_likely("random", "W11", VN_PROOF_NUMBERS, true, "fresh random numbers: never loaded");
	for (int i = 0; i < N; i++)
		m.x[1][i] = m.x[0][(i * 1013 + 7) % N];
	pair(DOWN, VN_F32, VN_F32, ROWS, COLS);
	expect_likely("order", "", VN_PROOF_STATISTICS, false,
	              "the same numbers in another order that no known mistake gives");
}

/* For 255 numbers, a low correlation proves nothing. */
static void few_numbers_are_never_unrelated(void)
{
	for (int rows = 1; rows <= 2; rows++) {
		normal(1, 1, 0, m.x[0]);
		normal(2, 3, 0, m.x[1]);
		pair(DOWN, VN_F32, VN_F32, 1, rows == 1 ? 255 : 256);
		expect_likely(rows == 1 ? "other" : "unrelated", "", VN_PROOF_NUMBERS, true,
		              rows == 1 ? "other numbers" : "unrelated numbers");
	}
}

/* ---- statistics alone ------------------------------------------------------------------------ */

static void blocks_are_told_by_the_formats(void)
{
	normal(1, 1, 0, m.x[0]);
	normal(1, 1, 0, m.x[1]);
	for (int side = 0; side < 2; side++) {
		pair(DOWN, VN_F32, VN_F32, ROWS, COLS);
		without_numbers();
		m.row[side].dtype = VN_Q8_0;
		expect_likely(side ? "quantised" : "dequantised", "W15", VN_PROOF_STATISTICS, false,
		              side ? "quantised as q8_0" : "in the reference: quantised as q8_0");
	}
}

/* A format alone does not make them the same numbers. */
static void blocks_of_other_statistics_are_other_numbers(void)
{
	normal(1, 1, 0, m.x[0]);
	normal(1, 2, 0, m.x[1]);
	pair(DOWN, VN_F32, VN_F32, ROWS, COLS);
	without_numbers();
	m.row[1].dtype = VN_Q8_0;
	expect_likely("other", "", VN_PROOF_STATISTICS, false, "other numbers");
}

/* Stores side 1 in blocks; scaled: of them, how many have another scale. */
static void quantise(vn_dtype as, int scaled)
{
	static float x[N];
	for (int i = 0; i < N; i++)
		x[i] = (float)m.x[0][i] * (i < 32 * scaled ? 1.25f : 1.0f);
	vn_quantise(m.data[1], as, x, N);
	m.tensor[1].dtype = as;
	m.row[1] = row_of(DOWN, &m.tensor[1]);
}

static void blocks_are_measured(void)
{
	static const vn_dtype formats[] = { VN_Q4_0, VN_Q5_0, VN_Q8_0 };
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		char words[80];
		normal(1, 1, 0, m.x[0]);
		pair(DOWN, VN_F32, VN_F32, ROWS, COLS);
		quantise(formats[i], 0);
		snprintf(words, sizeof words, "quantised as %s", vn_dtype_name(formats[i]));
		expect_likely("quantised", "W15", VN_PROOF_NUMBERS, true, words);
		quantise(formats[i], 8);
		snprintf(words, sizeof words, "quantised as %s, but some of its blocks hold other numbers",
		         vn_dtype_name(formats[i]));
		expect_likely("other", "", VN_PROOF_NUMBERS, true, words);
		quantise(formats[i], N / 32);
		snprintf(words, sizeof words, "quantised as %s, but from other numbers", vn_dtype_name(formats[i]));
		expect_likely("other", "", VN_PROOF_NUMBERS, true, words);
	}
}

static void dequantised_numbers_are_the_same_weight(void)
{
	float x[N];

	normal(1, 1, 0, m.x[0]);
	for (int given = 0; given < 2; given++) /* are the other side's numbers at hand? */
		for (int wrong = 0; wrong < 2; wrong++) {
			pair(DOWN, VN_F32, VN_F32, ROWS, COLS);
			quantise(VN_Q8_0, 0);
			vn_to_f32(x, m.data[1], VN_Q8_0, N);
			x[N - 1] += (float)wrong;
			memcpy(m.data[0], x, sizeof x);
			m.row[0] = row_of(DOWN, &m.tensor[0]);
			m.t.numbers[0] = given ? &m.tensor[0] : NULL;
			CU_ASSERT_EQUAL(vn_weight_same_numbers(&m.t), wrong ? VN_WEIGHT_DIFFERS : VN_WEIGHT_ROUNDED);
		}
}

static void equal_statistics_are_another_order(void)
{
	normal(1, 1, 0, m.x[0]);
	memcpy(m.x[1], m.x[0], sizeof m.x[0]);
	pair(DOWN, VN_F32, VN_F32, ROWS, COLS);
	without_numbers();
	m.row[1].shape = (vn_shape) { 2, { COLS, ROWS } };
	expect_likely("transposed", "W1", VN_PROOF_STATISTICS, false, "transposed");
	pair("model.other.bias", VN_F32, VN_F32, 1, N); /* no order of it is known */
	without_numbers();
	expect_likely("order", "", VN_PROOF_STATISTICS, false, "the same numbers in another order");
	pair("model.layers.0.mlp.gate_up_proj.weight", VN_F32, VN_F32, ROWS, COLS); /* several are */
	without_numbers();
	expect_likely("order", "", VN_PROOF_STATISTICS, false,
	              "the same numbers in another order (W4 or W5 or W1b: give --model to decide)");
}

/* In bf16, of a reference in f32: another layer's, or another weight's of this layer. */
static void one_other_weight_may_fit(void)
{
	static const struct {
		const char *name, *kind, *id, *words;
	} row[] = {
		{ "model.layers.3.mlp.gate_proj.weight", "layer", "W9", "holds the weights of layer 3" },
		{ "model.layers.0.mlp.up_proj.weight", "other-weight", "W4", "holds mlp.up_proj.weight" },
		{ "model.layers.3.mlp.up_proj.weight", "other-weight", "W4", "holds model.layers.3.mlp.up_proj.weight" },
	};
	vn_weight_row all[3];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		normal(2, 1, 0, m.x[0]);
		normal(2, 1, 0, m.x[1]);
		pair(row[i].name, VN_F32, VN_F32, ROWS, COLS);
		all[1] = all[2] = m.row[0];
		normal(1, 3, 0, m.x[0]);
		pair("model.layers.0.mlp.gate_proj.weight", VN_F32, VN_BF16, ROWS, COLS);
		without_numbers();
		all[0] = m.row[0];
		m.side[0] = (vn_weight_side) { .row = all, .n = 2 };
		expect_likely(row[i].kind, row[i].id, VN_PROOF_STATISTICS, false, row[i].words);
		m.side[0].n = 3; /* two fit: neither is named */
		expect_likely("other", "", VN_PROOF_STATISTICS, false, "other numbers");
	}
}

static void fresh_random_numbers_were_never_loaded(void)
{
	for (int side = 0; side < 2; side++) {
		normal(1, 0.02, 0, m.x[side]);
		normal(2, 0.3, 0.1, m.x[!side]);
		pair(DOWN, VN_F32, VN_F32, ROWS, COLS);
		without_numbers();
		expect_likely("random", "W11", VN_PROOF_STATISTICS, false,
		              side ? "fresh random numbers (normal, deviation 0.02): never loaded"
		                   : "in the reference: fresh random numbers (normal, deviation 0.02): never loaded");
	}
	state = 1;
	for (int i = 0; i < N; i++)
		m.x[1][i] = uniform() / 8; /* 64 columns */
	pair(DOWN, VN_F32, VN_F32, ROWS, COLS);
	without_numbers();
	expect_likely("random", "W11", VN_PROOF_STATISTICS, false,
	              "fresh random numbers (uniform up to 1/sqrt(columns)): never loaded");
}

static void what_nothing_explains_is_measured(void)
{
	normal(1, 1, 0, m.x[0]);
	normal(2, 1.02, 0, m.x[1]);
	pair(DOWN, VN_F32, VN_F32, ROWS, COLS);
	without_numbers();
	expect_likely("revision", "", VN_PROOF_STATISTICS, false,
	              "other numbers of similar size: perhaps another revision");
	CU_ASSERT_EQUAL(m.d.measured, VN_WEIGHT_RMS);
	CU_ASSERT_EQUAL(m.d.measure, m.row[1].stats.rms / m.row[0].stats.rms);
	m.row[1].shape = (vn_shape) { 2, { ROWS / 2, COLS * 2 } };
	expect_likely("other", "", VN_PROOF_STATISTICS, false, "other numbers in another shape");
	normal(2, 3, 1, m.x[1]);
	pair(DOWN, VN_F32, VN_F32, ROWS, COLS);
	without_numbers();
	expect_likely("other", "", VN_PROOF_STATISTICS, false, "other numbers");
}

/* All NaN, or no number at all: every statistic is NaN, and none of them says that
 * the weights agree. */
static void statistics_that_are_nan_explain_nothing(void)
{
	normal(1, 1, 0, m.x[0]);
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < N; i++)
			m.x[1][i] = NAN;
		pair(DOWN, VN_F32, VN_F32, k ? 0 : ROWS, COLS);
		without_numbers();
		expect_likely("other", "", VN_PROOF_STATISTICS, false, "other numbers");
		CU_ASSERT_TRUE(isnan(m.d.measure));
	}
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(one_digest_is_one_weight),
		TEST(a_format_is_reached_by_rounding_and_not_by_cutting),
		TEST(another_order_in_another_format_needs_the_numbers),
		TEST(two_roundings_of_one_number_are_the_same),
		TEST(what_a_converter_did_is_undone),
		TEST(a_zero_has_two_signs),
		TEST(a_factor_is_named),
		TEST(near_numbers_are_a_revision_and_far_ones_others),
		TEST(what_has_nothing_in_common_is_unrelated),
		TEST(few_numbers_are_never_unrelated),
		TEST(blocks_are_told_by_the_formats),
		TEST(blocks_of_other_statistics_are_other_numbers),
		TEST(blocks_are_measured),
		TEST(dequantised_numbers_are_the_same_weight),
		TEST(equal_statistics_are_another_order),
		TEST(one_other_weight_may_fit),
		TEST(fresh_random_numbers_were_never_loaded),
		TEST(what_nothing_explains_is_measured),
		TEST(statistics_that_are_nan_explain_nothing),
		CU_TEST_INFO_NULL,
	};
	return run_suite("weights_likely", tests);
}
