/* test_arrange.c: the orders of arrange.h, with their results written out. */
#include "libref/base/arrange.h"
#include "tests/support/suite.h"

#include <string.h>

static void each_rule_takes_its_numbers_from_where_it_says(void)
{
	static const int order[] = { 2, 0, 1 };
	static const struct {
		vn_arrange  m;
		const char *x, *y;
	} row[] = {
		{ { VN_ARRANGE_TRANSPOSED, .a = 2, .b = 3 }, "ABCDEF", "ADBECF" }, /* (2,3) as (3,2) */
		{ { VN_ARRANGE_TRANSPOSED, .a = 3, .b = 2 }, "ADBECF", "ABCDEF" }, /* and back */
		{ { VN_ARRANGE_TRANSPOSED, .a = 2, .b = 2, .each = 2 }, "AaBbCcDd", "AaCcBbDd" },
		{ { VN_ARRANGE_TRANSPOSED, .a = 2, .b = 2, .period = 5 }, "ABCDxEFGHy", "ACBDxEGFHy" },
		/* x and y stay: RoPE in part */
		{ { VN_ARRANGE_TRANSPOSED, .a = 2, .b = 2, .before = 2 }, "xyABCD", "xyACBD" },
		{ { VN_ARRANGE_ROUND, .a = 2 }, "ABCDE", "CDEAB" },
		{ { VN_ARRANGE_ROUND, .a = -1 }, "ABCDE", "EABCD" },
		{ { VN_ARRANGE_REVERSED, .each = 1 }, "ABCDE", "EDCBA" },
		{ { VN_ARRANGE_REVERSED, .each = 2, .period = 4 }, "AaBbCcDd", "BbAaDdCc" },
		{ { VN_ARRANGE_REVERSED, .each = 1, .period = 2 }, "ABCDE", "BADCE" }, /* E has no other */
		{ { VN_ARRANGE_EXCHANGED, .a = 0, .b = 2, .each = 2 }, "QqKkVv", "VvKkQq" },
		{ { VN_ARRANGE_LISTED, .a = 3, .list = order }, "AaBbCcD", "CcAaBbD" }, /* D stays */
		{ { VN_ARRANGE_LISTED, .a = 3, .list = order }, "AB", "AB" },           /* fewer than pieces */
		{ { VN_ARRANGE_SHIFTED, .a = 1 }, "ABCDE", "BCDEE" },
		{ { VN_ARRANGE_SHIFTED, .a = -1 }, "ABCDE", "AABCD" },
		{ { VN_ARRANGE_PADDED, .a = 2, .b = 1 }, "ABCDEF", "AB.CD." },
		{ { VN_ARRANGE_PADDED, .a = 3, .b = -1 }, "ABCDEF", "ABDEF." },
		{ { VN_ARRANGE_APART, .a = 2, .b = 3 }, "ABCDEF", "ABDE.." },
		{ { VN_ARRANGE_APART, .a = 3, .b = 1 }, "ABCDEF", "ABCBCD" },
		/* E and F fall behind the end */
		{ { VN_ARRANGE_MOVED, .a = 1 }, "ABCDE", "BCDE." },
		{ { VN_ARRANGE_MOVED, .a = -2 }, "ABCDE", "..ABC" },
		{ { VN_ARRANGE_PARTS, .a = 1, .part = { 3, 1, 2 }, .order = { 2, 0, 1 } }, "QqQkVv", "VvQqQk" },
		{ { VN_ARRANGE_PARTS, .a = 2, .part = { 2, 1, 1 }, .order = { 0, 1, 2 } }, "QqRrKLVW", "QqKVRrLW" },
		/* by groups of heads */
		{ { VN_ARRANGE_SECTIONS, .a = 2, .part = { 2, 1, 1 }, .order = { 0, 1, 2 } }, "QqKVRrLW", "QqRrKLVW" },
		{ { VN_ARRANGE_SECTIONS, .a = 2, .part = { 1, 2, 0 }, .order = { 1, 0, 2 } }, "Ggqhir", "qrGghi" },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const size_t n = strlen(row[i].x);
		char         y[16] = "", twice[64] = "";
		vn_arrange_bytes(y, row[i].x, &row[i].m, 1, n, 1);
		for (size_t k = 0; k < n; k++)
			y[k] = y[k] ? y[k] : '.';
		CU_ASSERT_STRING_EQUAL(y, row[i].y);
		/* An axis in the midst: two of it, in pieces of two. */
		char x[64] = "", want[64] = "";
		for (size_t k = 0; k < 2 * n; k++)
			x[2 * k] = row[i].x[k % n], x[2 * k + 1] = k < n ? '1' : '2';
		for (size_t k = 0; k < 2 * n; k++) {
			const int64_t from = vn_arranged(&row[i].m, (int64_t)(k % n), (int64_t)n);
			memcpy(want + 2 * k, from < 0 ? "\0\0" : x + 2 * ((size_t)from + k / n * n), 2);
		}
		vn_arrange_bytes(twice, x, &row[i].m, 2, n, 2);
		CU_ASSERT_EQUAL(memcmp(twice, want, 4 * n), 0);
		for (int64_t k = 0, run; k < (int64_t)n; k++) {
			const int64_t from = vn_arranged_run(&row[i].m, k, (int64_t)n, &run);
			CU_ASSERT_TRUE(run >= 1 && run <= (int64_t)n - k);
			for (int64_t j = 0; j < run; j++)
				CU_ASSERT_EQUAL(vn_arranged(&row[i].m, k + j, (int64_t)n), from < 0 ? -1 : from + j);
		}
	}
}

static void a_run_is_as_long_as_its_piece(void)
{
	static const int order[] = { 2, 0, 1 };
	static const struct {
		vn_arrange m;
		int64_t    i, n, run;
	} row[] = {
		{ { VN_ARRANGE_TRANSPOSED, .a = 2, .b = 3, .each = 4 }, 5, 24, 3 },
		{ { VN_ARRANGE_TRANSPOSED, .a = 2, .b = 3, .each = 4 }, 24, 29, 5 },
		{ { VN_ARRANGE_TRANSPOSED, .a = 2, .b = 2, .before = 3 }, 1, 7, 2 },
		{ { VN_ARRANGE_TRANSPOSED, .a = 2, .b = 2, .period = 4 }, 8, 11, 3 },
		{ { VN_ARRANGE_ROUND, .a = 4 }, 2, 24, 18 },
		{ { VN_ARRANGE_ROUND, .a = 4, .period = 8 }, 2, 24, 2 },
		{ { VN_ARRANGE_ROUND, .a = 4, .period = 8 }, 5, 24, 3 },
		{ { VN_ARRANGE_REVERSED, .each = 6 }, 1, 24, 5 },
		{ { VN_ARRANGE_EXCHANGED, .a = 0, .b = 2, .each = 8 }, 8, 24, 8 },
		{ { VN_ARRANGE_LISTED, .a = 3, .list = order }, 10, 25, 6 },
		{ { VN_ARRANGE_LISTED, .a = 3, .list = order }, 24, 25, 1 },
		{ { VN_ARRANGE_SHIFTED, .a = 2 }, 3, 24, 19 },
		{ { VN_ARRANGE_MOVED, .a = 2 }, 3, 24, 19 },
		{ { VN_ARRANGE_MOVED, .a = 2 }, 22, 24, 2 },
		{ { VN_ARRANGE_MOVED, .a = -5 }, 1, 24, 4 },
		{ { VN_ARRANGE_PADDED, .a = 5, .b = 3 }, 9, 24, 4 },
		{ { VN_ARRANGE_PADDED, .a = 5, .b = 3 }, 14, 24, 2 },
		{ { VN_ARRANGE_PARTS, .a = 2, .part = { 6, 3, 3 }, .order = { 0, 1, 2 } }, 13, 24, 5 },
		{ { VN_ARRANGE_SECTIONS, .a = 2, .part = { 6, 3, 3 }, .order = { 2, 1, 0 } }, 16, 24, 2 },
	};

	for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
		int64_t run = 0;
		vn_arranged_run(&row[k].m, row[k].i, row[k].n, &run);
		CU_ASSERT_EQUAL(run, row[k].run);
	}
}

static void the_inverse_of_an_order_leads_back(void)
{
	static const vn_arrange row[] = {
		{ VN_ARRANGE_TRANSPOSED, .a = 2, .b = 3, .each = 2, .before = 1 },
		{ VN_ARRANGE_ROUND, .a = 5, .period = 7 },
		{ VN_ARRANGE_REVERSED, .each = 2, .period = 6 },
		{ VN_ARRANGE_EXCHANGED, .a = 0, .b = 2, .each = 3 },
		{ VN_ARRANGE_MOVED, .a = -3 },
		{ VN_ARRANGE_PARTS, .a = 3, .part = { 2, 1, 2 }, .order = { 2, 0, 1 } },
		{ VN_ARRANGE_SECTIONS, .a = 3, .part = { 2, 1, 2 }, .order = { 2, 0, 1 } },
	};
	enum { N = 15 };

	for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
		const vn_arrange back = vn_arrange_back(&row[k]);
		int              inside = 0;
		for (int64_t i = 0; i < N; i++) {
			const int64_t from = vn_arranged(&row[k], i, N);
			CU_ASSERT_TRUE(from < 0 || vn_arranged(&back, from, N) == i);
			inside += from >= 0;
		}
		CU_ASSERT_EQUAL(inside, row[k].rule == VN_ARRANGE_MOVED ? N - 3 : N);
	}
}

/* Element (a,b,c) of the source is 100 a + 10 b + c. */
static void axes_are_read_in_another_order_and_back(void)
{
	static const int order[][3] = { { 0, 1, 2 }, { 1, 0, 2 }, { 2, 0, 1 }, { 1, 2, 0 }, { 2, 1, 0 } };
	const vn_shape   s = { 3, { 2, 3, 4 } };
	double           x[24], y[24], z[24];

	for (int i = 0; i < 24; i++)
		x[i] = 100 * (i / 12) + 10 * (i / 4 % 3) + i % 4;
	for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
		const vn_permutation p = vn_permutation_of(&s, order[k]), back = vn_permutation_back(&s, order[k]);
		const int            weight[] = { 100, 10, 1 };
		vn_permute(y, x, &p);
		vn_permute(z, y, &back);
		for (int i = 0; i < 24; i++) {
			const int64_t b = p.size[1], c = p.size[2];
			CU_ASSERT_EQUAL(y[i], (double)(i / (b * c) * weight[order[k][0]] + i / c % b * weight[order[k][1]] +
			                               i % c * weight[order[k][2]]));
			CU_ASSERT_EQUAL(y[i], x[vn_strided(p.rank, p.size, p.stride, i)]);
			CU_ASSERT_EQUAL(z[i], x[i]);
			CU_ASSERT_EQUAL(y[vn_strided(back.rank, back.size, back.stride, i)], x[i]);
		}
	}
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(each_rule_takes_its_numbers_from_where_it_says),
		TEST(a_run_is_as_long_as_its_piece),
		TEST(the_inverse_of_an_order_leads_back),
		TEST(axes_are_read_in_another_order_and_back),
		CU_TEST_INFO_NULL,
	};
	return run_suite("arrange", tests);
}
