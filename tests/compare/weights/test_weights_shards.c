/* test_weights_shards.c: tests compare/weights/weights_shards.c. */
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
	vn_error            err = { "" };

	*d = (vn_weight_difference) { .words = "" };
	CU_ASSERT_EQUAL_FATAL(vn_weight_numbers_of((const vn_tensor *const[]) { &ref }, 1, &m, &err), VN_OK);
	const bool found = vn_weight_by_shards(&t, 0, &m, d);
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
	CU_ASSERT_EQUAL(d.proof, VN_PROOF_DIGEST);
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

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(rows_and_columns_are_read_off_both_sides),
		TEST(up_to_four_are_found_by_the_digest_alone),
		TEST(other_numbers_or_the_same_order_are_none),
		CU_TEST_INFO_NULL,
	};
	return run_suite("weights_shards", tests);
}
