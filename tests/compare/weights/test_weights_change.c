/* test_weights_change.c: tests compare/weights/weights_change.c, what may have happened to each
 * number of a weight. */
#include "compare/weights/weights_change.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

static void each_kind_changes_a_number_as_it_says(void)
{
	static const struct {
		vn_weight_change c;
		double           x, y;
	} row[] = {
		{ { .kind = VN_WEIGHT_CHANGE_NONE }, 0.1, 0.1 },
		{ { .kind = VN_WEIGHT_CHANGE_ROUNDED, .as = VN_BF16 }, 1.00390625, 1.0 }, /* half way: to even */
		{ { .kind = VN_WEIGHT_CHANGE_ROUNDED, .as = VN_BF16 }, 1.01, 1.0078125 },
		{ { .kind = VN_WEIGHT_CHANGE_TRUNCATED, .as = VN_BF16 }, 1.0078, 1.0 },
		{ { .kind = VN_WEIGHT_CHANGE_TRUNCATED, .as = VN_BF16 }, -1.0078, -1.0 },
		{ { .kind = VN_WEIGHT_CHANGE_TRUNCATED, .as = VN_F16 }, 1.00097, 1.0 },
		{ { .kind = VN_WEIGHT_CHANGE_SATURATED }, 1e6, 65504 },
		{ { .kind = VN_WEIGHT_CHANGE_SATURATED }, -1e6, -65504 },
		{ { .kind = VN_WEIGHT_CHANGE_FLUSHED }, 0x1p-15, 0 },
		{ { .kind = VN_WEIGHT_CHANGE_FLUSHED }, 0x1p-14, 0x1p-14 },
		{ { .kind = VN_WEIGHT_CHANGE_FLUSHED_SATURATED }, 1e6, 65504 },
		{ { .kind = VN_WEIGHT_CHANGE_PLUS, .x = 1 }, 0.5, 1.5 },
		{ { .kind = VN_WEIGHT_CHANGE_TIMES, .x = 0.25 }, 3, 0.75 },
		{ { .kind = VN_WEIGHT_CHANGE_DECAY }, 0, -1 },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		CU_ASSERT_EQUAL(vn_weight_change_number(&row[i].c, row[i].x), row[i].y);
}

static void zeros_keep_their_sign_where_said(void)
{
	const vn_weight_change signs = { VN_WEIGHT_CHANGE_FLUSHED, .x = 1 }, none = { VN_WEIGHT_CHANGE_FLUSHED, .x = 0 };
	CU_ASSERT_TRUE(signbit(vn_weight_change_number(&signs, -1e-6)));
	CU_ASSERT_FALSE(signbit(vn_weight_change_number(&none, -1e-6)));
}

static void a_row_is_changed_as_its_numbers_are(void)
{
	static const vn_weight_change_kind kinds[] = { VN_WEIGHT_CHANGE_NONE, VN_WEIGHT_CHANGE_ROUNDED,
		                                           VN_WEIGHT_CHANGE_TIMES };
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		const vn_weight_change c = { kinds[k], .as = VN_BF16, .x = 0.3 };
		double                 x[40], want[40];
		float                  room[40], got[40], stored[40];
		for (int i = 0; i < 40; i++) {
			x[i] = sin(i);
			want[i] = vn_weight_change_number(&c, x[i]);
		}
		vn_from_f64(stored, VN_F32, want, 40);
		vn_weight_change_row(&c, x, 40, VN_F32, got, room);
		CU_ASSERT_EQUAL(memcmp(got, stored, sizeof got), 0);
	}
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(each_kind_changes_a_number_as_it_says),
		TEST(zeros_keep_their_sign_where_said),
		TEST(a_row_is_changed_as_its_numbers_are),
		CU_TEST_INFO_NULL,
	};
	return run_suite("weights_change", tests);
}
