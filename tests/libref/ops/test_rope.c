/* test_rope.c: the rotary frequencies and tables, against HuggingFace's bits. */
#include "libref/exec/eval.h"
#include "libref/ops/rope_table.h"
#include "libref/plan/plan.h"
#include "tests/support/rope_bits.h"
#include "tests/support/float_bits.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Formulas of models.md 1.6: pairs 0, 1, 20, 40, 63 of R = 128, in float64. HF's float32
 * chain is within 4.4e-7 of it; the table has nine digits. */
/* clang-format off */
static const struct {
	vn_rope rope;
	double  inv_freq[5], attention_factor;
} golden[] = {
	{ { .type = VN_ROPE_DEFAULT, .theta = 1e6, .rotary_dim = 128 },
	  { 1, 0.805842221, 0.0133352149, 1.7782794e-4, 1.24093776e-6 }, 1 },
	{ { .type = VN_ROPE_LINEAR, .theta = 1e4, .rotary_dim = 128, .factor = 4 },
	  { 0.25, 0.216491088, 0.0140585322, 7.90569466e-4, 2.88695483e-5 }, 1 },
	{ { .type = VN_ROPE_YARN, .theta = 1e6, .rotary_dim = 128, .factor = 4,
	    .original_context = 32768, .truncate = true },
	  { 1, 0.805842221, 0.0133352149, 4.44569851e-5, 3.10234441e-7 }, 1.138629436111989 },
	{ { .type = VN_ROPE_YARN, .theta = 1e4, .rotary_dim = 128, .factor = 40,
	    .original_context = 4096, .mscale = 1, .mscale_all_dim = 0.707, .truncate = true },
	  { 1, 0.865964353, 0.0562341288, 7.90569407e-4, 2.88695469e-6 }, 1.0857263992561355 },
	{ { .type = VN_ROPE_LLAMA3, .theta = 5e5, .rotary_dim = 128, .factor = 8,
	    .low_freq_factor = 1, .high_freq_factor = 4, .original_context = 8192 },
	  { 1, 0.814617217, 0.0165604409, 3.42810235e-5, 3.06892588e-7 }, 1 },
};
/* clang-format on */

/* The further ones, pairs 0, 1, 10, 16, 31 of R = 64. */
/* clang-format off */
static const struct {
	vn_rope rope;
	double  inv_freq[5], attention_factor;
} golden_64[] = {
	{ { .type = VN_ROPE_LLAMA3, .theta = 5e5, .rotary_dim = 64, .factor = 32,
	    .low_freq_factor = 1, .high_freq_factor = 4, .original_context = 8192 },
	  { 1, 0.663601238, 0.0165604401, 4.29556797e-4, 9.41830673e-8 }, 1 },
	{ { .type = VN_ROPE_YARN, .theta = 1.5e5, .rotary_dim = 64, .factor = 32,
	    .original_context = 4096 },
	  { 1, 0.689044306, 0.0193350011, 4.56483919e-4, 3.02351143e-7 }, 1.34657359 },
	{ { .type = VN_ROPE_DEFAULT, .theta = 1e7, .rotary_dim = 64 },
	  { 1, 0.60429639, 0.00649381632, 3.16227766e-4, 1.6548171e-7 }, 1 },
	{ { .type = VN_ROPE_YARN, .theta = 1e7, .rotary_dim = 64, .factor = 4,
	    .original_context = 262144, .truncate = true },
	  { 1, 0.60429639, 0.00649381632, 2.5693506e-4, 4.13704275e-8 }, 1.13862944 },
};
/* clang-format on */

static void check_golden(const vn_rope *r, const int pair[5], const double want[5], double af)
{
	float inv_freq[64], got_af;

	vn_rope_frequencies(r, NULL, 0, inv_freq, &got_af);
	for (int k = 0; k < 5; k++)
		CU_ASSERT(fabs((double)inv_freq[pair[k]] - want[k]) <= 6e-7 * want[k]);
	CU_ASSERT(fabs((double)got_af - af) <= 6e-8 * af);
}

static void every_type_gives_the_frequencies_of_the_specification(void)
{
	const int pair[5] = { 0, 1, 20, 40, 63 }, pair_64[5] = { 0, 1, 10, 16, 31 };

	for (size_t i = 0; i < COUNT(golden); i++)
		check_golden(&golden[i].rope, pair, golden[i].inv_freq, golden[i].attention_factor);
	for (size_t i = 0; i < COUNT(golden_64); i++)
		check_golden(&golden_64[i].rope, pair_64, golden_64[i].inv_freq, golden_64[i].attention_factor);
}

static void every_frequency_has_the_bits_of_huggingface(void)
{
	for (size_t k = 0; k < COUNT(rope_frequencies); k++) {
		float inv_freq[128], af;

		vn_rope_frequencies(&rope_frequencies[k].rope, lists, rope_frequencies[k].length, inv_freq, &af);
		CU_ASSERT_EQUAL(to_bits(af), rope_frequencies[k].attention_factor);
		for (int i = 0; i < rope_frequencies[k].rope.rotary_dim / 2; i++)
			CU_ASSERT_EQUAL(to_bits(inv_freq[i]), rope_frequencies[k].inv_freq[i]);
	}
}

/* Base 1e6, pair 37 of 64: powf gives 2942.7273, torch's vector kernel 2942.7270. */
static void the_vector_power_and_the_c_library_differ_where_torch_does(void)
{
	vn_rope r = { .type = VN_ROPE_DEFAULT, .theta = 1e6, .rotary_dim = 128 };
	float   vector[64], scalar[64], af;

	vn_rope_frequencies(&r, NULL, 0, vector, &af);
	r.pow_block = 65;
	vn_rope_frequencies(&r, NULL, 0, scalar, &af);
	CU_ASSERT_EQUAL(to_bits(vector[36]), to_bits(scalar[36]));
	CU_ASSERT_EQUAL(to_bits(vector[37]), to_bits(scalar[37]) + 1);
}

static void cos_and_sin_below_ten_thousand_have_the_bits_of_torch(void)
{
	for (size_t i = 0; i < COUNT(rope_near); i++) {
		const float a = from_bits(rope_near[i].angle);

		CU_ASSERT_EQUAL(to_bits(vn_rope_cos(a)), rope_near[i].cos);
		CU_ASSERT_EQUAL(to_bits(vn_rope_sin(a)), rope_near[i].sin);
	}
}

static void so_they_have_where_torch_is_not_correctly_rounded(void)
{
	for (size_t i = 0; i < COUNT(rope_hard); i++) {
		const float a = from_bits(rope_hard[i].angle);
		const bool  rounded = to_bits((float)cos((double)a)) == rope_hard[i].cos &&
		                     to_bits((float)sin((double)a)) == rope_hard[i].sin;

		CU_ASSERT_FALSE(rounded);
		CU_ASSERT_EQUAL(to_bits(vn_rope_cos(a)), rope_hard[i].cos);
		CU_ASSERT_EQUAL(to_bits(vn_rope_sin(a)), rope_hard[i].sin);
	}
}

static void from_ten_thousand_on_they_are_within_one_ulp_of_torch(void)
{
	for (size_t i = 0; i < COUNT(rope_far); i++) {
		const float    a = from_bits(rope_far[i].angle);
		const uint32_t c = to_bits(vn_rope_cos(a)), s = to_bits(vn_rope_sin(a));

		/* Off by one either way: the unsigned difference is 0, 1 or UINT32_MAX. */
		CU_ASSERT(c - rope_far[i].cos + 1 <= 2);
		CU_ASSERT(s - rope_far[i].sin + 1 <= 2);
	}
}

static void the_sign_of_the_angle_changes_sin_and_not_cos(void)
{
	for (size_t i = 0; i < COUNT(rope_hard); i++) {
		const float a = from_bits(rope_hard[i].angle);

		CU_ASSERT_EQUAL(to_bits(vn_rope_cos(-a)), to_bits(vn_rope_cos(a)));
		CU_ASSERT_EQUAL(to_bits(vn_rope_sin(-a)), to_bits(-vn_rope_sin(a)));
	}
}

static void an_angle_that_is_no_number_gives_none(void)
{
	CU_ASSERT(isnan(vn_rope_cos(NAN)));
	CU_ASSERT(isnan(vn_rope_sin(NAN)));
	CU_ASSERT(isnan(vn_rope_cos(INFINITY)));
	CU_ASSERT(isnan(vn_rope_sin(-INFINITY)));
}

static void an_experiment_that_changes_nothing_is_none(void)
{
	const vn_rope            r = { .theta = 1e4, .rotary_dim = 8 };
	const vn_rope_experiment nothing = { 0 };

	for (int64_t i = 0; i < 4; i++) {
		for (int64_t past = 0; past < 40000; past = 3 * past + 1) {
			const vn_rope_token at = { .past = past, .t = 5, .begin = -1 };
			CU_ASSERT_EQUAL(to_bits(vn_rope_angle(NULL, 0.3f, i, vn_rope_position(NULL, &at))),
			                to_bits(vn_rope_angle(&nothing, 0.3f, i, vn_rope_position(&nothing, &at))));
		}
		const vn_rope_columns a = vn_rope_pair(&r, NULL, 16, i), b = vn_rope_pair(&r, &nothing, 16, i);
		CU_ASSERT(a.in[0] == i && a.in[1] == i + 4 && memcmp(a.in, a.out, sizeof a.in) == 0);
		CU_ASSERT(memcmp(&a, &b, sizeof a) == 0);
	}
}

static void every_constant_of_an_experiment_makes_a_variant(void)
{
	static const struct {
		const char *name;
		double      x;
	} set[] = { { "pairing", 2 },     { "offset", -1 },   { "turn", 0.5 },   { "half_angles", 1 },
		        { "step_offset", 1 }, { "step_zero", 1 }, { "sections", 1 }, { "one_position", 1 },
		        { "step_twice", 1 },  { "words", 1 },     { "rolled", -1 },  { "length", 7 } };
	const vn_node model = { .op = VN_OP_ROPE, .c.rope.rope = { .theta = 1e4, .rotary_dim = 8, .factor = 2 } };

	CU_ASSERT_PTR_NULL(vn_node_experiment(&model));
	CU_ASSERT_PTR_NULL(vn_node_rope_experiment(&model));
	for (size_t k = 0; k < COUNT(set); k++) {
		vn_node n = model;
		CU_ASSERT_EQUAL(vn_const_set(&n, set[k].name, set[k].x, NULL), VN_OK);
		CU_ASSERT(memcmp(&n.c, &model.c, sizeof n.c.rope) == 0);
		CU_ASSERT_PTR_EQUAL(vn_node_rope_experiment(&n), &n.x.rope);
	}
}

static void positions_of_a_call_depend_on_where_it_begins(void)
{
	vn_rope_experiment  twice = { .other.twice = 1 }, words = { .other.words = 1 };
	const vn_rope_token own = { .past = 5, .t = 2, .begin = -1 }, joined = { .past = 0, .t = 7, .begin = 5 };

	CU_ASSERT_EQUAL(vn_rope_position(&twice, &own), 12.0);
	CU_ASSERT_EQUAL(vn_rope_position(&twice, &joined), 12.0);
	CU_ASSERT_EQUAL(vn_rope_position(&words, &own), 6.0); /* the third number of 32 bits: the second of 64 */
	CU_ASSERT_EQUAL(vn_rope_position(&words, &joined), 6.0);
	CU_ASSERT_EQUAL(vn_rope_position(&words, &(vn_rope_token) { .past = 5, .t = 3, .begin = -1 }), 0.0);
}

static void frequencies_are_rolled_and_of_another_length(void)
{
	const vn_rope_experiment back = { .rolled = -1 };

	CU_ASSERT_EQUAL(vn_rope_rolled(NULL, 2, 3), 2);
	CU_ASSERT_TRUE(vn_rope_rolled(&back, 0, 3) == 1 && vn_rope_rolled(&back, 2, 3) == 0);
	CU_ASSERT_EQUAL(vn_rope_length(NULL, 5, 2), 7);
	CU_ASSERT_EQUAL(vn_rope_length(&(vn_rope_experiment) { .length = -1 }, 5, 2), 2);
	CU_ASSERT_EQUAL(vn_rope_length(&(vn_rope_experiment) { .length = 90 }, 5, 2), 90);
}

/* ---- other positions and formats ------------------------------------------------------------- */

/* Two heads of six columns, of which four are rotated: columns 0 and 2 by 1 radian a position,
 * 1 and 3 by 0.01. */
enum { HEADS = 2, COLUMNS = 6, MOST = 4 };

static const double input[MOST * HEADS * COLUMNS] = { 1, 2, 3, 4, 5, 6, -1,  0.5, 2, -3, 7, 8, 1, 0, 0, 1,
	                                                  9, 9, 2, 2, 2, 2, 2,   2,   3, 1,  4, 1, 5, 9, 2, 6,
	                                                  5, 3, 5, 8, 9, 7, 9.5, 3,   2, 3,  8, 4, 6, 2, 6, 4 };

static const double *rotated(const vn_other_rotation *edit, const int32_t *ids, int64_t first, int64_t n, double *y)
{
	static const int64_t begins[] = { -1, -1, -1, -1, -1, 5, 5, -1 }; /* a call of 5, of 2, and of 1 token */
	const vn_node        node = { .op = VN_OP_ROPE,
		                          .c.rope.rope = { .theta = 10000, .rotary_dim = 4 },
		                          .x.rope.other = *edit };
	const vn_args        a = { .policy = { VN_F64, VN_F64, 0, { 0 } },
		                       .threads = 1,
		                       .past = first,
		                       .tokens = n,
		                       .ids = ids,
		                       .begins = first < 8 ? begins + first : NULL,
		                       .in = { input } };

	CU_ASSERT_EQUAL_FATAL(vn_evaluator_f64.node(&node, &a, HEADS * COLUMNS, COLUMNS, y, NULL), VN_OK);
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

	rotated(&(vn_other_rotation) { 0 }, NULL, 5, MOST, y);
	for (int t = 0; t < MOST; t++)
		row_is_at(y, t, 5 + t, 0.01 * (5 + t));
}

static void positions_restart_or_are_the_ids(void)
{
	const int32_t ids[] = { 40, 2, 2, 7 };
	double        y[MOST * HEADS * COLUMNS];

	rotated(&(vn_other_rotation) { .call = 3 }, NULL, 4, MOST, y); /* positions 4, 5, 6, 7 */
	for (int t = 0; t < MOST; t++) {
		const int at[] = { 1, 2, 0, 1 };
		row_is_at(y, t, at[t], 0.01 * at[t]);
	}
	rotated(&(vn_other_rotation) { .by_ids = true }, ids, 4, MOST, y);
	for (int t = 0; t < MOST; t++)
		row_is_at(y, t, ids[t], 0.01 * ids[t]);
}

/* Calls of one token, and the first call, are left as they are. */
static void positions_restart_in_the_calls_of_the_recording(void)
{
	static const int at[] = { 4, 0, 1, 7 };
	double           y[MOST * HEADS * COLUMNS];

	rotated(&(vn_other_rotation) { .call = VN_OWN_CALLS }, NULL, 4, MOST, y);
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
		rotated(&(vn_other_rotation) { .moved = true, .map = maps[i].map }, NULL, 4, MOST, y);
		for (int t = 0; t < MOST; t++)
			row_is_at(y, t, maps[i].at[t], 0.01 * maps[i].at[t]);
	}
}

static void sine_and_cosine_are_exchanged(void)
{
	double y[MOST * HEADS * COLUMNS];

	rotated(&(vn_other_rotation) { .exchanged = true }, NULL, 1, 1, y);
	row_has(y, 0, (const double[]) { sin(1), sin(0.01) }, (const double[]) { cos(1), cos(0.01) }, 1e-6);
}

static void each_number_is_rounded_where_the_edit_says(void)
{
	double y[MOST * HEADS * COLUMNS];

	/* bfloat16 has no 257 */
	rotated(&(vn_other_rotation) { .positions = VN_FORMAT_BF16 }, NULL, 257, 1, y);
	row_is_at(y, 0, 256, 2.56);
	/* 0.01 is 1.28 / 128; bfloat16 has 164 / 128 for 1.28, and 1 itself */
	rotated(&(vn_other_rotation) { .frequencies = VN_FORMAT_BF16 }, NULL, 100, 1, y);
	row_is_at(y, 0, 100, 100 * 164.0 / 128 / 128);
	/* from 2048 on float16 has even numbers: 3001 is a tie, 3000 / 2 is even.
	 * 30.01 lies between 30 and 30 + 1/64 */
	rotated(&(vn_other_rotation) { .angles = VN_FORMAT_F16 }, NULL, 3001, 1, y);
	row_is_at(y, 0, 3000, 30 + 1.0 / 64);
	/* cos 1 = 1106.54 / 2048, sin 1 = 1723.33 / 2048; cos 0.01 = 2047.9 / 2048,
	 * sin 0.01 = 1310.7 / 2^17 */
	rotated(&(vn_other_rotation) { .table = VN_FORMAT_F16 }, NULL, 1, 1, y);
	row_has(y, 0, (const double[]) { 1107.0 / 2048, 1 }, (const double[]) { 1723.0 / 2048, 1311 * 0x1p-17 }, 1e-12);
}

static void calls_of_one_length_begin_at_its_multiples(void)
{
	CU_ASSERT_EQUAL(vn_call_begin(NULL, 0, 7), -1); /* not asked for */
	CU_ASSERT_EQUAL(vn_call_begin(NULL, 5, 4), -1); /* the first call */
	CU_ASSERT_EQUAL(vn_call_begin(NULL, 5, 5), 5);
	CU_ASSERT_EQUAL(vn_call_begin(NULL, 5, 14), 10);
}

static void other_calls_are_those_of_the_recording(void)
{
	const int64_t begins[] = { -1, -1, 2, 2, 2, -1 };

	CU_ASSERT_EQUAL(vn_call_begin(begins, VN_OWN_CALLS, 1), -1);
	CU_ASSERT_EQUAL(vn_call_begin(begins, VN_OWN_CALLS, 4), 2);
	CU_ASSERT_EQUAL(vn_call_begin(begins, VN_OWN_CALLS, 5), -1);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(every_type_gives_the_frequencies_of_the_specification),
		TEST(every_frequency_has_the_bits_of_huggingface),
		TEST(the_vector_power_and_the_c_library_differ_where_torch_does),
		TEST(cos_and_sin_below_ten_thousand_have_the_bits_of_torch),
		TEST(so_they_have_where_torch_is_not_correctly_rounded),
		TEST(from_ten_thousand_on_they_are_within_one_ulp_of_torch),
		TEST(the_sign_of_the_angle_changes_sin_and_not_cos),
		TEST(an_angle_that_is_no_number_gives_none),
		TEST(an_experiment_that_changes_nothing_is_none),
		TEST(every_constant_of_an_experiment_makes_a_variant),
		TEST(positions_of_a_call_depend_on_where_it_begins),
		TEST(frequencies_are_rolled_and_of_another_length),
		TEST(rows_are_rotated_by_their_positions),
		TEST(positions_restart_or_are_the_ids),
		TEST(positions_restart_in_the_calls_of_the_recording),
		TEST(some_tokens_are_at_other_positions),
		TEST(sine_and_cosine_are_exchanged),
		TEST(each_number_is_rounded_where_the_edit_says),
		TEST(calls_of_one_length_begin_at_its_multiples),
		TEST(other_calls_are_those_of_the_recording),
		CU_TEST_INFO_NULL,
	};
	return run_suite("rope", tests);
}
