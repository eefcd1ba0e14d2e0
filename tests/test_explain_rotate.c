/* test_explain_rotate.c: tests compare/explain/rotate.c. */
#include "compare/explain/rotate.h"
#include "tests/suite.h"

#include <math.h>

/* Two heads of six columns, of which four are rotated: columns 0 and 2 by 1 radian a position, 1 and 3 by 0.01. */
enum { H = 2, K = 6, MOST = 4 };

static const double x[MOST * H * K] = { 1, 2, 3, 4, 5, 6, -1, 0.5, 2, -3, 7, 8, 1, 0, 0,   1, 9, 9, 2, 2, 2, 2, 2, 2,
	                                    3, 1, 4, 1, 5, 9, 2,  6,   5, 3,  5, 8, 9, 7, 9.5, 3, 2, 3, 8, 4, 6, 2, 6, 4 };

static double *rotated(const vn_rotate_edit *edit, const int32_t *ids, int64_t first, int64_t T, double *y)
{
	static const int64_t begins[] = { -1, -1, -1, -1, -1, 5, 5, -1 }; /* a call of 5, of 2, and of 1 token */
	const vn_plan        p = { 0 };
	const vn_node        n = { .op = VN_OP_ROPE,
		                       .c.rope.rope = { .theta = 10000, .rotary_dim = 4, .pairing = VN_PAIR_HALVES } };

	CU_ASSERT_TRUE_FATAL(vn_rotate_rows(&p, &n, edit, ids, begins, x, first, T, first + T, H, K, y));
	return y;
}

/* Row t is rotated with these sines and cosines, of pair 0 and pair 1. */
static void row_has(const double *y, int t, const double c[2], const double s[2], double within)
{
	for (int h = 0; h < H; h++) {
		const double *in = x + (t * H + h) * K, *out = y + (t * H + h) * K;
		for (int i = 0; i < 2; i++) {
			CU_ASSERT_DOUBLE_EQUAL(out[i], in[i] * c[i] - in[i + 2] * s[i], within);
			CU_ASSERT_DOUBLE_EQUAL(out[i + 2], in[i + 2] * c[i] + in[i] * s[i], within);
		}
		CU_ASSERT_EQUAL(out[4], in[4]);
		CU_ASSERT_EQUAL(out[5], in[5]);
	}
}

/* Same, by the angles of pair 0 and pair 1. */
static void row_is_at(const double *y, int t, double a, double b)
{
	row_has(y, t, (const double[]) { cos(a), cos(b) }, (const double[]) { sin(a), sin(b) }, 1e-6);
}

static void rows_are_rotated_by_their_positions(void)
{
	double y[MOST * H * K];

	rotated(&(vn_rotate_edit) { 0 }, NULL, 5, MOST, y);
	for (int t = 0; t < MOST; t++)
		row_is_at(y, t, 5 + t, 0.01 * (5 + t));
}

static void positions_restart_or_are_the_ids(void)
{
	const int32_t ids[] = { 40, 2, 2, 7 };
	double        y[MOST * H * K];

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
	double           y[MOST * H * K];

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
	double y[MOST * H * K];

	for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
		rotated(&(vn_rotate_edit) { .moved = true, .map = maps[i].map }, NULL, 4, MOST, y);
		for (int t = 0; t < MOST; t++)
			row_is_at(y, t, maps[i].at[t], 0.01 * maps[i].at[t]);
	}
}

static void sine_and_cosine_are_exchanged(void)
{
	double y[MOST * H * K];

	rotated(&(vn_rotate_edit) { .exchanged = true }, NULL, 1, 1, y);
	row_has(y, 0, (const double[]) { sin(1), sin(0.01) }, (const double[]) { cos(1), cos(0.01) }, 1e-6);
}

static void each_number_is_rounded_where_the_edit_says(void)
{
	double y[MOST * H * K];

	/* bfloat16 has no 257 */
	rotated(&(vn_rotate_edit) { .positions = VN_FORMAT_BF16 }, NULL, 257, 1, y);
	row_is_at(y, 0, 256, 2.56);
	/* 0.01 is 1.28 / 128; bfloat16 has 164 / 128 for 1.28, and 1 itself */
	rotated(&(vn_rotate_edit) { .frequencies = VN_FORMAT_BF16 }, NULL, 100, 1, y);
	row_is_at(y, 0, 100, 100 * 164.0 / 128 / 128);
	/* from 2048 on float16 has even numbers: 3001 is a tie, 3000 / 2 is even. 30.01 lies between 30 and
	 * 30 + 1/64 */
	rotated(&(vn_rotate_edit) { .angles = VN_FORMAT_F16 }, NULL, 3001, 1, y);
	row_is_at(y, 0, 3000, 30 + 1.0 / 64);
	/* cos 1 = 1106.54 / 2048, sin 1 = 1723.33 / 2048; cos 0.01 = 2047.9 / 2048, sin 0.01 = 1310.7 / 2^17 */
	rotated(&(vn_rotate_edit) { .table = VN_FORMAT_F16 }, NULL, 1, 1, y);
	row_has(y, 0, (const double[]) { 1107.0 / 2048, 1 }, (const double[]) { 1723.0 / 2048, 1311 * 0x1p-17 }, 1e-12);
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
		CU_TEST_INFO_NULL,
	};
	return run_suite("rotate", tests);
}
