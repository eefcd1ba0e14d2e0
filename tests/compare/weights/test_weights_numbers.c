/* test_weights_numbers.c: tests compare/weights/weights_numbers.c, the numbers of a weight in
 * another order, and side by side. */
#include "compare/weights/weights_numbers.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

static vn_tensor matrix(const float *x, int64_t rows, int64_t cols)
{
	return (vn_tensor) { VN_F32, { 2, { rows, cols } }, x };
}

static vn_tensor vector(const float *x, int64_t n)
{
	return (vn_tensor) { VN_F32, { 1, { n } }, x };
}

/* The digest of one matrix in an order is that of these numbers. */
static void comes_out(const vn_tensor *t, const vn_weight_order *o, int64_t rows, const float *want, size_t n)
{
	vn_weight_numbers m;
	vn_weight_numbers_of(&t, 1, &m);
	const vn_digest x = vn_weight_numbers_digest(&m, o, &vn_weight_unchanged, VN_F32, rows, NULL);
	CU_ASSERT_STRING_EQUAL(x.hex, vn_digest_of(want, n * sizeof *want).hex);
	vn_weight_numbers_free(&m);
}

static void parts_of_unequal_rows_lie_one_below_the_other(void)
{
	static const float q[] = { 1, 2, 3, 4, 5, 6 }, k[] = { 7, 8 }, v[] = { 9, 10, 11, 12 };
	static const float all[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 },
					   back[] = { 11, 12, 9, 10, 7, 8, 5, 6, 3, 4, 1, 2 };
	const vn_tensor        part[] = { matrix(q, 3, 2), matrix(k, 1, 2), matrix(v, 2, 2) };
	const vn_tensor *const list[] = { &part[0], &part[1], &part[2] };
	const vn_weight_order  reversed = { .rule = { VN_ARRANGE_REVERSED, .each = 1 } };
	vn_weight_numbers      m;

	vn_weight_numbers_of(list, 3, &m);
	CU_ASSERT_EQUAL(m.cols, 2);
	CU_ASSERT_EQUAL(m.rows[0], 3);
	CU_ASSERT_EQUAL(m.rows[1], 1);
	CU_ASSERT_EQUAL(m.rows[2], 2);
	CU_ASSERT_STRING_EQUAL(vn_weight_numbers_digest(&m, &vn_weight_in_place, &vn_weight_unchanged, VN_F32, 0, NULL).hex,
	                       vn_digest_of(all, sizeof all).hex);
	CU_ASSERT_STRING_EQUAL(vn_weight_numbers_digest(&m, &reversed, &vn_weight_unchanged, VN_F32, 0, NULL).hex,
	                       vn_digest_of(back, sizeof back).hex);
	vn_weight_numbers_free(&m);
}

static void an_order_moves_rows_columns_or_all(void)
{
	static const float    x[] = { 1, 2, 3, 4, 5, 6 };
	static const float    rows[] = { 4, 5, 6, 1, 2, 3 }, cols[] = { 3, 2, 1, 6, 5, 4 };
	static const float    transposed[] = { 1, 4, 2, 5, 3, 6 }; /* (3,2) of (2,3) */
	static const float    pieces[] = { 1, 2, 3, 0, 4, 5 };     /* read with a stride of 4: a zero behind every row */
	const vn_tensor       t = matrix(x, 2, 3), one = matrix(x, 1, 6);
	const vn_weight_order r = { .rule = { VN_ARRANGE_REVERSED, .each = 1 } };
	const vn_weight_order c = { .axis = VN_WEIGHT_COLUMNS, .rule = { VN_ARRANGE_REVERSED, .each = 1 } };
	const vn_weight_order order = { .axis = VN_WEIGHT_NUMBERS, .rule = { VN_ARRANGE_TRANSPOSED, .a = 2, .b = 3 } };
	const vn_weight_order shear = { .axis = VN_WEIGHT_NUMBERS, .rule = { VN_ARRANGE_PADDED, .a = 3, .b = 1 } };

	comes_out(&t, &vn_weight_in_place, 0, x, 6);
	comes_out(&t, &r, 0, rows, 6);
	comes_out(&t, &c, 0, cols, 6);
	comes_out(&one, &order, 0, transposed, 6);
	comes_out(&t, &shear, 0, pieces, 6);
}

/* Gate and up interleaved, or parted again. */
static void an_order_goes_back(void)
{
	static const float    x[] = { 1, 2, 3, 4, 5, 6 }, there[] = { 1, 3, 5, 2, 4, 6 }, back[] = { 1, 4, 2, 5, 3, 6 };
	const vn_tensor       t = matrix(x, 6, 1);
	const vn_weight_order o = { .rule = { VN_ARRANGE_TRANSPOSED, .a = 3, .b = 2 } };
	const vn_weight_order b = { .rule = vn_arrange_back(&o.rule) };

	comes_out(&t, &o, 0, there, 6);
	comes_out(&t, &b, 0, back, 6);
}

/* A shard: two rows of four, from row `start` on. */
static void some_rows_may_be_taken(void)
{
	static const float    x[] = { 1, 2, 3, 4, 5, 6, 7, 8 }, first[] = { 8, 7, 6 }, later[] = { 6, 5, 4 };
	const vn_tensor       t = vector(x, 8);
	const vn_weight_order o = { .rule = { VN_ARRANGE_REVERSED, .each = 1 } },
						  from2 = { .rule = { VN_ARRANGE_REVERSED, .each = 1 }, .start = 2 };

	comes_out(&t, &o, 3, first, 3);
	comes_out(&t, &from2, 3, later, 3);
}

static void one_row_and_a_single_number_are_matrices(void)
{
	static const float x[] = { 1, 2, 3 };
	const vn_tensor    row = matrix(x, 1, 3), scalar = { VN_F32, { 0 }, x };

	comes_out(&row, &vn_weight_in_place, 0, x, 3);
	comes_out(&scalar, &vn_weight_in_place, 0, x, 1);
}

static void nothing_has_no_digest(void)
{
	const vn_tensor none = matrix(NULL, 0, 4), thin = matrix(NULL, 4, 0), *list[] = { &none, &thin };
	for (int i = 0; i < 2; i++) {
		vn_weight_numbers m;
		vn_weight_numbers_of(&list[i], 1, &m);
		CU_ASSERT_STRING_EQUAL(
			vn_weight_numbers_digest(&m, &vn_weight_in_place, &vn_weight_unchanged, VN_F32, 0, NULL).hex, "");
		vn_weight_numbers_free(&m);
	}
}

static void numbers_are_stored_in_another_format(void)
{
	static const float     x[] = { 1.0f, 1.01f, -3.0f, NAN };
	const vn_tensor        t = matrix(x, 2, 2), *list = &t;
	const vn_weight_change rounded = { .kind = VN_WEIGHT_CHANGE_ROUNDED, .as = VN_BF16 };
	uint16_t               bits[4];
	float                  back[4];
	vn_weight_numbers      m;

	vn_weight_numbers_of(&list, 1, &m);
	vn_from_f64(bits, VN_BF16, (const double[]) { 1.0, 1.0078125, -3.0, NAN }, 4);
	CU_ASSERT_STRING_EQUAL(
		vn_weight_numbers_digest(&m, &vn_weight_in_place, &vn_weight_unchanged, VN_BF16, 0, NULL).hex,
		vn_digest_of(bits, sizeof bits).hex);
	vn_to_f32(back, bits, VN_BF16, 4);
	CU_ASSERT_STRING_EQUAL(vn_weight_numbers_digest(&m, &vn_weight_in_place, &rounded, VN_F32, 0, NULL).hex,
	                       vn_digest_of(back, sizeof back).hex);
	vn_weight_numbers_free(&m);
}

static void what_is_wanted_ends_it_at_the_first_other_row(void)
{
	static const float x[] = { 1, 2, 3, 4 }, other[] = { 1, 2, 3, 5 };
	const vn_tensor    t = matrix(x, 2, 2), o = matrix(other, 2, 2), *list = &t;
	vn_weight_numbers  m;

	vn_weight_numbers_of(&list, 1, &m);
	CU_ASSERT_STRING_EQUAL(vn_weight_numbers_digest(&m, &vn_weight_in_place, &vn_weight_unchanged, VN_F32, 0, &t).hex,
	                       vn_digest_of(x, sizeof x).hex);
	CU_ASSERT_STRING_EQUAL(vn_weight_numbers_digest(&m, &vn_weight_in_place, &vn_weight_unchanged, VN_F32, 0, &o).hex,
	                       "");
	vn_weight_numbers_free(&m);
}

/* A row of 8 is no whole block of 32. */
static void blocks_are_read_as_what_they_stand_for(void)
{
	unsigned char     block[2 * 34] = { 0 };
	float             stands[64];
	const vn_tensor   t = { VN_Q8_0, { 2, { 2, 32 } }, block }, *list = &t;
	const vn_tensor   small = matrix(stands, 8, 8), *other = &small;
	vn_weight_numbers m;

	for (int i = 0; i < 32; i++)
		block[2 + i] = (unsigned char)i;
	block[0] = 0x00;
	block[1] = 0x3c; /* scale 1 in half precision */
	vn_to_f32(stands, block, VN_Q8_0, 64);
	CU_ASSERT_EQUAL(stands[31], 31);
	vn_weight_numbers_of(&list, 1, &m);
	CU_ASSERT_EQUAL(m.dtype, VN_F32);
	CU_ASSERT_STRING_EQUAL(vn_weight_numbers_digest(&m, &vn_weight_in_place, &vn_weight_unchanged, VN_F32, 0, NULL).hex,
	                       vn_digest_of(stands, sizeof stands).hex);
	vn_weight_numbers_free(&m);
	CU_ASSERT_PTR_NULL(m.own);
	vn_weight_numbers_of(&other, 1, &m);
	CU_ASSERT_STRING_EQUAL(
		vn_weight_numbers_digest(&m, &vn_weight_in_place, &vn_weight_unchanged, VN_Q8_0, 0, NULL).hex, "");
	vn_weight_numbers_free(&m);
}

/* ---- side by side ------------------------------------------------------------------ */

static vn_weight_fit fit(const float *x, const float *y, int64_t n)
{
	const vn_tensor a = vector(x, n), b = vector(y, n);
	return vn_weight_fit_of(&a, &b);
}

static void a_factor_is_found_and_leaves_nothing(void)
{
	static const float  x[] = { 1, -2, 3, 4 }, y[] = { -2, 4, -6, -8 };
	const vn_weight_fit f = fit(x, y, 4);

	CU_ASSERT_EQUAL(f.factor, -2.0);
	CU_ASSERT_DOUBLE_EQUAL(f.correlation, -1.0, 1e-15);
	CU_ASSERT_EQUAL(f.residual, 0.0);
	CU_ASSERT_EQUAL(f.nmse, 9.0);
	CU_ASSERT_EQUAL(f.differing, 1.0);
	CU_ASSERT_EQUAL(f.largest, 12.0);
}

/* xy = 1 + 4 + 0, xx = 5, vx = 2, vy = 14/3: worked by hand. */
static void a_difference_is_shared_out(void)
{
	static const float  x[] = { 0, 1, 2 }, y[] = { 3, 1, 2 };
	const vn_weight_fit f = fit(x, y, 3);

	CU_ASSERT_DOUBLE_EQUAL(f.factor, 1.0, 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(f.nmse, 9.0 / 5.0, 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(f.residual, 9.0 / 5.0, 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(f.correlation, -0.5, 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(f.differing, 1.0 / 3.0, 1e-15);
	CU_ASSERT_EQUAL(f.largest, 3.0);
}

/* A NaN is a difference and spoils no sum. */
static void numbers_that_are_not_finite_are_left_out(void)
{
	static const float  x[] = { 1, NAN, 3, 4 }, y[] = { 1, 2, 3, INFINITY };
	const vn_weight_fit f = fit(x, y, 4);

	CU_ASSERT_EQUAL(f.differing, 0.5);
	CU_ASSERT_TRUE(isinf(f.largest));
	CU_ASSERT_EQUAL(f.nmse, 0.0);
	CU_ASSERT_EQUAL(f.factor, 1.0);
	CU_ASSERT_DOUBLE_EQUAL(f.correlation, 1.0, 1e-15);
}

static void what_cannot_be_known_is_nan(void)
{
	static const float zero[] = { 0, 0 }, x[] = { 1, 2 }, flat[] = { 5, 5 };
	vn_weight_fit      f = fit(zero, x, 2);

	CU_ASSERT_TRUE(isnan(f.factor) && isnan(f.nmse) && isnan(f.residual) && isnan(f.correlation));
	CU_ASSERT_EQUAL(f.differing, 1.0);
	f = fit(flat, x, 2);
	CU_ASSERT_TRUE(isnan(f.correlation));
	CU_ASSERT_FALSE(isnan(f.factor));
	f = fit(x, x, 0);
	CU_ASSERT_TRUE(isnan(f.nmse));
	CU_ASSERT_EQUAL(f.differing, 0.0);
	CU_ASSERT_EQUAL(f.largest, 0.0);
}

/* More than are converted at a time, and two formats. */
static void every_piece_is_looked_at(void)
{
	enum { N = 4096 + 5 };
	static float  x[N];
	static double y[N];
	for (int i = 0; i < N; i++)
		y[i] = x[i] = (float)(i % 7 + 1);
	y[N - 1] += 0.5;
	const vn_tensor     a = vector(x, N), b = { VN_F64, { 1, { N } }, y };
	const vn_weight_fit f = vn_weight_fit_of(&a, &b);
	CU_ASSERT_EQUAL(f.largest, 0.5);
	CU_ASSERT_DOUBLE_EQUAL(f.differing, 1.0 / N, 1e-18);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(parts_of_unequal_rows_lie_one_below_the_other),
		TEST(an_order_moves_rows_columns_or_all),
		TEST(an_order_goes_back),
		TEST(some_rows_may_be_taken),
		TEST(one_row_and_a_single_number_are_matrices),
		TEST(nothing_has_no_digest),
		TEST(numbers_are_stored_in_another_format),
		TEST(what_is_wanted_ends_it_at_the_first_other_row),
		TEST(blocks_are_read_as_what_they_stand_for),
		TEST(a_factor_is_found_and_leaves_nothing),
		TEST(a_difference_is_shared_out),
		TEST(numbers_that_are_not_finite_are_left_out),
		TEST(what_cannot_be_known_is_nan),
		TEST(every_piece_is_looked_at),
		CU_TEST_INFO_NULL,
	};
	return run_suite("weights_numbers", tests);
}
