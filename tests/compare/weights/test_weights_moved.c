/* test_weights_moved.c: tests compare/weights/weights_moved.c. */
#include "tests/support/weights_help.h"

#include <string.h>

enum { ROWS = 8, COLS = 12, N = ROWS * COLS };

static float a[N], b[N];

/* Numbers without a pattern; b has the blocks of a along that axis: at[i] is the block
 * of a at place i. */
static void join(int axis, const int *at, int ranks)
{
	const int n = axis ? COLS : ROWS, block = n / ranks;

	for (int i = 0; i < N; i++)
		a[i] = (float)((i * 7919) % 1009);
	for (int r = 0; r < ROWS; r++)
		for (int c = 0; c < COLS; c++) {
			const int i = axis ? c : r, from = at[i / block] * block + i % block;
			b[r * COLS + c] = a[axis ? r * COLS + from : from * COLS + c];
		}
}

/* The sentence about them; "": none. numbers: those of both sides, or only the reference's. */
static const char *said(bool numbers_of_both, vn_weight_difference *d)
{
	const vn_tensor     ref = f32(a, ROWS, COLS), cand = f32(b, ROWS, COLS);
	const vn_weight_row row[] = { row_of("x.weight", &ref), row_of("x.weight", &cand) };
	vn_weight_trial     t = { .row = { &row[0], &row[1] }, .numbers = { &ref, numbers_of_both ? &cand : NULL } };
	vn_weight_numbers   m;

	*d = (vn_weight_difference) { .words = "" };
	vn_weight_numbers_of((const vn_tensor *const[]) { &ref }, 1, &m);
	const bool found = vn_weight_moved(&t, 0, &m, d);
	vn_weight_numbers_free(&m);
	CU_ASSERT_EQUAL(found, *d->words != 0);
	return d->words;
}

static void rows_and_columns_are_read_off_both_sides(void)
{
	vn_weight_difference d;

	join(0, (const int[]) { 2, 0, 3, 1 }, 4);
	CU_ASSERT_STRING_EQUAL(said(true, &d), "its 4 shards (rows) in the order 2, 0, 3, 1");
	CU_ASSERT_STRING_EQUAL(d.id, "P18.order");
	CU_ASSERT_TRUE(d.certain);
	CU_ASSERT_EQUAL(d.proof, VN_PROOF_NUMBERS);
	join(1, (const int[]) { 5, 0, 2, 1, 3, 4 }, 6);
	CU_ASSERT_STRING_EQUAL(said(true, &d), "its 6 shards (columns) in the order 5, 0, 2, 1, 3, 4");
}

/* With one side's numbers and the other's digest, orders are tried. */
static void up_to_four_are_found_by_the_digest_alone(void)
{
	vn_weight_difference d;

	join(0, (const int[]) { 1, 0 }, 2);
	CU_ASSERT_STRING_EQUAL(said(false, &d), "its 2 shards (rows) in the order 1, 0");
	join(1, (const int[]) { 3, 1, 0, 2 }, 4);
	CU_ASSERT_STRING_EQUAL(said(false, &d), "its 4 shards (columns) in the order 3, 1, 0, 2");
	join(1, (const int[]) { 5, 0, 2, 1, 3, 4 }, 6);
	CU_ASSERT_STRING_EQUAL(said(false, &d), "");
}

/* ---- heads ------------------------------------------------------------------------------ */

/* b has the lines of a along that axis in the order `at`; part: what the weight is, with heads of
 * width K. */
static const char *said_of(int part, int K, int axis, int n, const int *at, bool numbers_of_both,
                           vn_weight_difference *d)
{
	static float    x[64 * 64], y[64 * 64];
	const int       rows = axis ? 8 : n, cols = axis ? n : 8;
	const vn_tensor ref = f32(x, rows, cols), cand = f32(y, rows, cols);

	for (int i = 0; i < rows * cols; i++)
		x[i] = (float)((i * 7919) % 1009) + (float)i / 4096.0f;
	for (int r = 0; r < rows; r++)
		for (int c = 0; c < cols; c++)
			y[r * cols + c] = x[axis ? r * cols + at[c] : at[r] * cols + c];
	const vn_weight_row row[] = { row_of("x.weight", &ref), row_of("x.weight", &cand) };
	vn_weight_trial     t = { .row = { &row[0], &row[1] },
		                      .numbers = { &ref, numbers_of_both ? &cand : NULL },
		                      .name = { .part = part },
		                      .heads = { .K = K } };
	vn_weight_numbers   m;

	*d = (vn_weight_difference) { .words = "" };
	vn_weight_numbers_of((const vn_tensor *const[]) { &ref }, 1, &m);
	vn_weight_moved(&t, 0, &m, d);
	vn_weight_numbers_free(&m);
	return d->words;
}

/* Where row i comes from, if heads of `width` rows go from split halves to neighbouring pairs. */
static int to_pairs(int i, int width)
{
	const int head = i / width, k = i % width;
	return head * width + k / 2 + k % 2 * (width / 2);
}

static int to_halves(int i, int width)
{
	const int head = i / width, k = i % width;
	return head * width + k % (width / 2) * 2 + k / (width / 2);
}

static void pairs_of_another_number_of_heads(void)
{
	vn_weight_difference d;
	int                  at[32];

	for (int both = 0; both < 2; both++) {
		for (int i = 0; i < 32; i++)
			at[i] = to_pairs(to_halves(i, 4), 16); /* of 2 heads, and back as 8 */
		CU_ASSERT_STRING_EQUAL(said_of(VN_POINT_K_PROJ, 16, 0, 32, at, both, &d),
		                       "rows permuted for RoPE with neighbouring pairs as 2 heads, and back as 8");
		CU_ASSERT_STRING_EQUAL(d.id, "R1b");
		CU_ASSERT_TRUE(d.certain);
		for (int i = 0; i < 32; i++)
			at[i] = to_halves(i, 8); /* 4 heads; there are 2 */
		CU_ASSERT_STRING_EQUAL(said_of(VN_POINT_Q_PROJ, 16, 0, 32, at, both, &d),
		                       "rows permuted for RoPE with split halves, as 4 heads for 2");
	}
	CU_ASSERT_STRING_EQUAL(said_of(VN_POINT_DOWN_PROJ, 16, 0, 32, at, true, &d),
	                       "24 of its 32 rows moved: row 1 holds 2, row 2 holds 4, row 3 holds 6");
}

static void transposed_heads(void)
{
	vn_weight_difference d;
	int                  at[48];

	for (int i = 0; i < 48; i++)
		at[i] = (i / 4 % 4 * 3 + i / 16) * 4 + i % 4; /* 12 heads of 4: 4 x 3 stored as 3 x 4 */
	for (int both = 0; both < 2; both++)
		CU_ASSERT_STRING_EQUAL(said_of(VN_POINT_ATTN_OUT, 4, 1, 48, at, both, &d),
		                       "its 12 heads (columns) transposed: 4 x 3 stored as 3 x 4");
	for (int i = 0; i < 48; i++)
		at[i] = i < 8 ? i + 40 : i < 40 ? i : i - 40;
	CU_ASSERT_STRING_EQUAL(said_of(VN_POINT_ATTN_OUT, 4, 1, 48, at, true, &d),
	                       "its 12 heads (columns) in the order 10, 11, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1");
}

/* Numbers that moved between rows and columns, of which some are equal. */
static void any_order_is_known_as_one(void)
{
	static const float   x[] = { 1, 2, 2, 4, 5, 6, 7, 8 }, y[] = { 8, 6, 2, 7, 5, 4, 1, 2 };
	const vn_tensor      ref = f32(x, 4, 2), cand = f32(y, 4, 2);
	const vn_weight_row  row[] = { row_of("x.weight", &ref), row_of("x.weight", &cand) };
	vn_weight_trial      t = { .row = { &row[0], &row[1] }, .numbers = { &ref, &cand } };
	vn_weight_difference d = { .words = "" };

	CU_ASSERT_TRUE(vn_weight_moved(&t, 0, NULL, &d));
	CU_ASSERT_STRING_EQUAL(d.words, "the same numbers in another order that no known mistake gives");
	CU_ASSERT_EQUAL(d.proof, VN_PROOF_NUMBERS);
}

static void other_numbers_or_the_same_order_are_none(void)
{
	vn_weight_difference d;

	join(0, (const int[]) { 0, 1, 2, 3 }, 4);
	CU_ASSERT_STRING_EQUAL(said(true, &d), "");
	join(0, (const int[]) { 2, 0, 3, 1 }, 4);
	b[N - 1] += 1;
	CU_ASSERT_STRING_EQUAL(said(true, &d), "");
	CU_ASSERT_STRING_EQUAL(said(false, &d), "");
}

static void an_empty_weight_has_no_order(void)
{
	static const float   x[1];
	const vn_tensor      ref = f32(x, 0, 4), cand = { VN_BF16, { 2, { 0, 4 } }, x };
	const vn_weight_row  row[] = { row_of("x.weight", &ref), row_of("x.weight", &cand) };
	vn_weight_trial      t = { .row = { &row[0], &row[1] }, .numbers = { &ref, &cand } };
	vn_weight_difference d = { .words = "" };

	CU_ASSERT_FALSE(vn_weight_moved(&t, 0, NULL, &d));
}

/* A row of a list is one number, a part of a block. */
static void blocks_of_a_list_have_no_order(void)
{
	static const uint8_t q8[2 * 34] = { 1, 60, 2, 3 }; /* two blocks of 32 numbers */
	const vn_tensor      ref = { VN_Q8_0, { 1, { 64 } }, (void *)q8 }, cand = { VN_F32, { 1, { 64 } }, a };
	const vn_weight_row  row[] = { row_of("x.weight", &ref), row_of("x.weight", &cand) };
	vn_weight_trial      t = { .row = { &row[0], &row[1] }, .numbers = { &ref, &cand } };
	vn_weight_difference d = { .words = "" };

	CU_ASSERT_FALSE(vn_weight_moved(&t, 0, NULL, &d));
	CU_ASSERT_STRING_EQUAL(d.words, "");
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(rows_and_columns_are_read_off_both_sides),
		TEST(up_to_four_are_found_by_the_digest_alone),
		TEST(pairs_of_another_number_of_heads),
		TEST(transposed_heads),
		TEST(any_order_is_known_as_one),
		TEST(an_empty_weight_has_no_order),
		TEST(blocks_of_a_list_have_no_order),
		TEST(other_numbers_or_the_same_order_are_none),
		CU_TEST_INFO_NULL,
	};
	return run_suite("weights_moved", tests);
}
