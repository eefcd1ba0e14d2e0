/* test_apply_recorded.c: tests compare/trial/apply_recorded.c. */
#include "compare/trial/trial_apply.h"
#include "tests/support/attention_help.h"

enum { CALL = 8, STEPS = 2, S = CALL + STEPS, D = H * K };

static int   slot[TOKENS];
static float x[TOKENS * D];

/* The largest difference between the result and these numbers. */
static double apart(const vn_tensor *made, const float *want, int n)
{
	double most = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(made->data);
	CU_ASSERT_EQUAL_FATAL(vn_shape_count(&made->shape), n);
	for (int i = 0; i < n; i++)
		most = fmax(most, fabs(vn_tensor_number(made, i) - (double)want[i]));
	return most;
}

static vn_made begin(const explained *e)
{
	return (vn_made) { .weights = e->t.site->weights };
}

/* Blocks of three tokens in another order; the last one is short. */
static void a_table_of_blocks_is_read(void)
{
	static const short from[] = { 1, 0, 2 };
	vn_trial           h = { .applied = { .kind = VN_BY_BLOCKS, .blocks = { .block = 3, .of = 2, .n = 3 } } };
	explained          e;

	memcpy(h.applied.blocks.from, from, sizeof from);
	make_up_inputs();
	for (int j = 0; j < CALL; j++)
		slot[j] = from[j / 3] * 3 + j % 3;
	attend_all(&(mistake) { .value = slot }, 0, CALL);
	stand_at_context(&e, CALL, 0, 0);
	vn_made made = begin(&e);
	h.node = node_named(&e, "layer1.attn_context");
	CU_ASSERT_EQUAL((vn_apply_slots(&e.t, &h, &made), e.failed.st), VN_OK);
	CU_ASSERT_TRUE(apart(&made.fine, context, CALL * D) < 1e-6);
	vn_made_finish(&made);
	end_explained(&e);
}

/* In the second step: all tokens from the first step on are one slot early or late, or only the
 * newest is. */
static void slots_that_are_moved_leave_a_hole(void)
{
	static const struct {
		int  by;
		bool newest;
		int  held[3]; /* by slots CALL - 1, CALL and CALL + 1 */
	} of[] = { { -1, false, { CALL, CALL + 1, -1 } },
		       { 1, false, { CALL - 1, -1, CALL } },
		       { -1, true, { CALL - 1, CALL + 1, -1 } } };

	for (int i = 0; i < 3; i++) {
		vn_trial  h = { .applied = { .kind = VN_BY_SLOTS, .slots = { .by = of[i].by, .newest = of[i].newest } } };
		explained e;
		make_up_inputs();
		for (int j = 0; j < S; j++)
			slot[j] = j < CALL - 1 ? j : of[i].held[j - CALL + 1];
		attend_all(&(mistake) { .key = slot, .value = slot }, 0, S);
		stand_at_context(&e, CALL, STEPS, STEPS);
		vn_made made = begin(&e);
		h.node = node_named(&e, "layer1.attn_context");
		CU_ASSERT_EQUAL((vn_apply_slots(&e.t, &h, &made), e.failed.st), VN_OK);
		CU_ASSERT_TRUE(apart(&made.fine, context + (S - 1) * D, D) < 1e-6);
		vn_made_finish(&made);
		end_explained(&e);
	}
}

static void stand_at_norm(explained *e, int step)
{
	const given of[] = { { "layer1.attn_norm", x } };

	compare_given(e, CALL, STEPS, of, 1);
	stand_at(e, "layer1.attn_norm", step);
}

/* A step has the size of the step before, except the first one after the prompt. */
static void the_step_before_is_what_was_recorded(void)
{
	vn_trial  h = { .applied = { .kind = VN_BY_STEP } };
	explained e;

	for (int i = 0; i < TOKENS * D; i++)
		x[i] = given_number(i, 4);
	stand_at_norm(&e, 2);
	vn_made made = begin(&e);
	CU_ASSERT_EQUAL((vn_apply_step(&e.t, &h, &made), e.failed.st), VN_OK);
	CU_ASSERT_PTR_NULL(made.own.data); /* it was wrong there, too */
	end_explained(&e);
	stand_at_norm(&e, 1);
	vn_to_f32(x + CALL * D, e.t.own.data, e.t.own.dtype, D);
	end_explained(&e);
	stand_at_norm(&e, 2);
	made = begin(&e);
	CU_ASSERT_EQUAL((vn_apply_step(&e.t, &h, &made), e.failed.st), VN_OK);
	CU_ASSERT_EQUAL(apart(&made.own, x + CALL * D, D), 0);
	vn_made_finish(&made);
	end_explained(&e);
	stand_at_norm(&e, 1); /* behind a prompt of eight tokens */
	made = begin(&e);
	CU_ASSERT_EQUAL((vn_apply_step(&e.t, &h, &made), e.failed.st), VN_OK);
	CU_ASSERT_PTR_NULL(made.own.data);
	end_explained(&e);
	/* one number everywhere is a buffer that nothing was written to */
	for (int d = 0; d < D; d++)
		x[CALL * D + d] = 0;
	stand_at_norm(&e, 2);
	made = begin(&e);
	CU_ASSERT_EQUAL((vn_apply_step(&e.t, &h, &made), e.failed.st), VN_OK);
	CU_ASSERT_PTR_NULL(made.own.data);
	end_explained(&e);
}

/* Token t has the id 5 + t; outside of the text there are zeros. */
static void rows_of_other_tokens_are_read(void)
{
	const given of[] = { { "embed", x } };
	vn_trial    h = { .finding = VN_FINDING_OTHER_TOKEN, .applied = { .kind = VN_BY_TOKENS, .tokens = 3 } };
	int64_t     n;
	double     *table = given_weight("embed", 0, &n);
	explained   e;

	for (int t = 0; t < CALL; t++)
		for (int d = 0; d < D; d++)
			x[t * D + d] = t + 3 < CALL ? (float)table[(5 + t + 3) * D + d] : 0;
	compare_given(&e, CALL, 0, of, 1);
	stand_at(&e, "embed", 0);
	vn_made made = begin(&e);
	CU_ASSERT_EQUAL((vn_apply_tokens(&e.t, &h, &made), e.failed.st), VN_OK);
	CU_ASSERT_EQUAL(apart(&made.fine, x, CALL * D), 0);
	vn_made_finish(&made);
	h.finding = VN_FINDING_POSITION_FOR_ID;
	h.applied.tokens = 0;
	made = begin(&e);
	CU_ASSERT_EQUAL((vn_apply_tokens(&e.t, &h, &made), e.failed.st), VN_OK);
	for (int t = 0; t < CALL; t++)
		for (int d = 0; d < D; d++)
			x[t * D + d] = (float)table[t * D + d];
	CU_ASSERT_EQUAL(apart(&made.fine, x, CALL * D), 0);
	vn_made_finish(&made);
	free(table);
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(a_table_of_blocks_is_read),
		TEST(slots_that_are_moved_leave_a_hole),
		TEST(the_step_before_is_what_was_recorded),
		TEST(rows_of_other_tokens_are_read),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("apply_recorded", tests);
	return !remove_folder() || failed;
}
