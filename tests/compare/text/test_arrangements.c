/* test_arrangements.c: tests compare/text/arrangements.c. */
#include "compare/text/arrangements.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

static int count(const vn_arrangement *list, int n, vn_arrangement_kind kind)
{
	int k = 0;

	for (int i = 0; i < n; i++)
		k += list[i].kind == kind;
	return k;
}

/* How many are listed for a shape, of a recording and of a result. Token axis: 0. */
static void a_shape_has_the_arrangements_that_change_it(void)
{
	static const struct {
		vn_shape shape;
		int      axes, columns, moves[2], reversed[2];
	} row[] = {
		{ { 3, { 12, 6, 8 } }, 5, 2, { 4, 24 }, { 1, 1 } },
		{ { 2, { 9, 48 } }, 1, 2, { 4, 24 }, { 1, 1 } },
		{ { 4, { 5, 2, 3, 6 } }, 8, 2, { 4, 0 }, { 1, 1 } },
		{ { 3, { 1, 6, 8 } }, 3, 2, { 0, 0 }, { 0, 0 } },       /* heads before tokens: the same for one token */
		{ { 2, { 2, 3 } }, 1, 0, { 4, 0 }, { 1, 0 } },          /* 3 columns have no halves */
		{ { 1, { 9 } }, 0, 0, { 4, 24 }, { 1, 1 } },            /* one number for each token */
		{ { 5, { 1, 1, 1, 2, 4 } }, 0, 2, { 0, 0 }, { 0, 0 } }, /* so many axes are not exchanged */
	};
	vn_arrangement list[VN_ARRANGEMENTS];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		for (int what = VN_ARRANGED_RECORDING; what <= VN_ARRANGED_RESULT; what++) {
			const int columns = what == VN_ARRANGED_RECORDING ? row[i].columns : 0;
			int       n = vn_arrangements((vn_arranged_what)what, &row[i].shape, 0, list);
			CU_ASSERT_EQUAL(count(list, n, VN_ARRANGED_AXES), row[i].axes);
			CU_ASSERT_EQUAL(count(list, n, VN_ARRANGED_COLUMNS), columns);
			CU_ASSERT_EQUAL(count(list, n, VN_ARRANGED_MOVED), row[i].moves[what]);
			CU_ASSERT_EQUAL(count(list, n, VN_ARRANGED_REVERSED), row[i].reversed[what]);
			n = vn_arrangements((vn_arranged_what)what, &row[i].shape, -1, list);
			CU_ASSERT_EQUAL(n, row[i].axes + columns);
		}
}

static void columns_and_tokens_come_from_where_the_number_says(void)
{
	const vn_shape s = { 2, { 12, 8 } };
	vn_arrangement list[VN_ARRANGEMENTS];
	const int      n = vn_arrangements(VN_ARRANGED_RECORDING, &s, 0, list);

	for (int i = 0; i < n; i++) {
		const vn_arrangement *a = &list[i];
		if (a->kind == VN_ARRANGED_COLUMNS) {
			const vn_arrange back = vn_columns_arranged((vn_column_order)a->number, 8);
			CU_ASSERT_EQUAL(a->axis, 1);
			for (int64_t c = 0; c < 8; c++)
				CU_ASSERT_EQUAL(vn_arranged(&a->along, vn_arranged(&back, c, 8), 8), c);
		} else if (a->kind == VN_ARRANGED_MOVED) {
			CU_ASSERT_EQUAL(a->axis, 0);
			CU_ASSERT_EQUAL(vn_arranged(&a->along, 5, 12), 5 + a->number);
		}
	}
}

static void an_axis_of_heads_is_found_by_its_word(void)
{
	static const struct {
		const char *axes;
		vn_shape    shape;
		int         axis;
	} row[] = {
		{ "token head dim", { 3, { 4, 6, 8 } }, 1 },    { "key kv_head dim", { 3, { 4, 2, 8 } }, 1 },
		{ "head token key", { 3, { 6, 4, 4 } }, 0 },    { "token lin_key dim", { 3, { 4, 2, 8 } }, 1 },
		{ "token lin_head", { 2, { 4, 3 } }, 1 },       { "token hidden", { 2, { 4, 48 } }, -1 },
		{ "token head dim", { 3, { 4, 1, 48 } }, -1 },  { "", { 3, { 4, 6, 8 } }, -1 },
		{ "token head dim", { 3, { 4, 257, 8 } }, -1 }, { "token head dim", { 1, { 4 } }, -1 },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const bool recorded_only = strstr(row[i].axes, "lin_key") != NULL;
		CU_ASSERT_EQUAL(vn_head_axis(VN_ARRANGED_RECORDING, row[i].axes, &row[i].shape), row[i].axis);
		CU_ASSERT_EQUAL(vn_head_axis(VN_ARRANGED_RESULT, row[i].axes, &row[i].shape), recorded_only ? -1 : row[i].axis);
	}
}

static void each_row_finds_the_nearest(void)
{
	/* two blocks of three rows of one number */
	const double in[] = { 1, 2, 3, 10, 20, 30 }, x[] = { 3.1, 1.1, (double)NAN, 29, 11, 5 };
	int          from[3];

	vn_nearest_rows(x, in, 2, 3, 1, from);
	CU_ASSERT_EQUAL(from[0], 2);
	CU_ASSERT_EQUAL(from[1], 0);
	CU_ASSERT_EQUAL(from[2], 2);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(a_shape_has_the_arrangements_that_change_it),
		TEST(columns_and_tokens_come_from_where_the_number_says),
		TEST(an_axis_of_heads_is_found_by_its_word),
		TEST(each_row_finds_the_nearest),
		CU_TEST_INFO_NULL,
	};
	return run_suite("arrangements", tests);
}
