/* test_apply_computed.c: tests compare/trial/apply_computed.c. */
#include "compare/trial/trial_apply.h"
#include "tests/support/narrow_help.h"

#include <math.h>

/* ---- another formula ------------------------------------------------------------------------- */

/* Returns the numbers of q_rope, rotated so; NULL: the edit changes nothing there. */
static double *formula_at(const char *point, int node_of, vn_other_rotation edit, explained *e)
{
	vn_made made = { 0 };
	double *y = NULL;

	compare_llama(e, NULL);
	stand_at(e, point, 0);
	vn_trial h = { .node = vn_case_node(&e->t) + node_of, .applied = { .kind = VN_BY_ROTATION, .rotate = edit } };
	CU_ASSERT_EQUAL((vn_apply_formula(&e->t, &h, &made), e->failed.st), VN_OK);
	if (made.fine.data)
		y = vn_case_all_doubles_of(&made.fine);
	vn_made_finish(&made);
	return y;
}

static void the_node_computes_the_formula_of_the_trial(void)
{
	const vn_position_map next = { .first = 1, .open = true, .times = 1, .plus = 1 };
	explained             e;
	double               *y = formula_at("layer1.q_rope", 0, (vn_other_rotation) { .moved = true, .map = next }, &e);

	CU_ASSERT_PTR_NOT_NULL_FATAL(y);
	const int64_t row = e.t.site->cand.shape.dim[1] * e.t.site->cand.shape.dim[2];
	double        first = 0, second = 0;
	for (int64_t i = 0; i < row; i++) {
		first += fabs(y[i] - vn_tensor_number(&e.t.site->cand, i));
		second += fabs(y[row + i] - vn_tensor_number(&e.t.site->cand, row + i));
	}
	CU_ASSERT(first < 1e-5);
	CU_ASSERT(second > 1e-2);
	free(y);
	end_explained(&e);
}

static void a_formula_that_changes_nothing_makes_nothing(void)
{
	const vn_position_map behind = { .first = 1000, .open = true, .times = 1, .plus = 1 };
	explained             e;

	CU_ASSERT_PTR_NULL(formula_at("layer1.q_rope", 0, (vn_other_rotation) { .moved = true, .map = behind }, &e));
	end_explained(&e);
	/* nor does that of another operation */
	CU_ASSERT_PTR_NULL(formula_at("layer1.q_rope", 1, (vn_other_rotation) { .exchanged = true }, &e));
	end_explained(&e);
}

/* ---- narrower formats ------------------------------------------------------------------------ */

enum { BF16 = 8, F16 = 11 };

static double in_narrow[N];

/* Returns how many numbers are off, for an operation that stores its results so. */
static int64_t made_narrow_in(vn_dtype storage, vn_applied_format edit)
{
	explained e;

	stand_at_sum(&e);
	e.compared.c.opened.policy.storage = storage;
	const int64_t off = vn_narrow_make(&e.t, &edit, in_narrow);
	end_explained(&e);
	return off;
}

static int64_t made_narrow(vn_applied_format edit)
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
		CU_ASSERT_EQUAL(made_narrow((vn_applied_format) { of[i / 2].format, whole, false }), 0);
		CU_ASSERT_EQUAL(differing(), 0);
		CU_ASSERT_NOT_EQUAL(made_narrow((vn_applied_format) { of[i / 2].format, !whole, false }), 0);
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
	CU_ASSERT_EQUAL(made_narrow((vn_applied_format) { .format = VN_FORMAT_BF16 }), 3);
	CU_ASSERT_EQUAL(differing(), 0); /* they are the candidate's */
}

static void more_than_a_quarter_may_not(void)
{
	add_numbers(BF16, false);
	for (int i = 0; i < N / 4; i++)
		sum[2 * i] = (float)next_in_bits((double)sum[2 * i], BF16);
	CU_ASSERT_EQUAL(made_narrow((vn_applied_format) { .format = VN_FORMAT_BF16 }), N / 4);
	sum[1] = (float)next_in_bits((double)sum[1], BF16);
	CU_ASSERT_EQUAL(made_narrow((vn_applied_format) { .format = VN_FORMAT_BF16 }), -1);
	CU_ASSERT_EQUAL(differing(), N / 4 + 1); /* they are as computed */
}

static void two_places_are_too_many(void)
{
	add_numbers(BF16, false);
	sum[7] = (float)next_in_bits(next_in_bits((double)sum[7], BF16), BF16);
	CU_ASSERT_EQUAL(made_narrow((vn_applied_format) { .format = VN_FORMAT_BF16 }), -1);
	CU_ASSERT_EQUAL(differing(), 1);
}

/* Two engines in 16 bits sum in float32, in different orders: a small sum of large numbers may be
 * more than one place off. A large one may not. */
static void in_16_bits_only_a_sum_that_nearly_cancels_may_be_two_places_off(void)
{
	const vn_applied_format edit = { .format = VN_FORMAT_BF16 };

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
		TEST(the_node_computes_the_formula_of_the_trial),
		TEST(a_formula_that_changes_nothing_makes_nothing),
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
