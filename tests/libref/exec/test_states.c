/* test_states.c: the states that calls leave for later calls: kept, dropped, failed, restarted. */
#include "libref/exec/states.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

/* One state that grows by rows of 2, one of 3 numbers. No operation is asked. */
enum { GROWS, FIXED };

static vn_state state[] = {
	{ .node = 0, .value = -1, .input = 1, .rank = 2, .size = { VN_S, 2 } },
	{ .node = 0, .value = -1, .input = -1, .wide = true, .rank = 1, .size = { 3 } },
};
static vn_node       node = { .op = VN_OP_ATTENTION, .n_state = 2, .state = { 0, 1 } };
static const vn_plan plan = { .n_nodes = 1, .node = &node, .n_states = 2, .state = state, .context = 100 };

/* The rows of token `at` and on are (at, -at); the other state is its sum of
 * tokens so far, thrice. */
static void call(vn_states *s, int64_t past, int64_t tokens, bool keep)
{
	float rows[2 * 100];

	for (int64_t t = 0; t < tokens; t++) {
		rows[2 * t] = (float)(past + t);
		rows[2 * t + 1] = -(float)(past + t);
	}
	CU_ASSERT_EQUAL(vn_states_begin(s, past, tokens, NULL), VN_OK);
	CU_ASSERT_FALSE(vn_states_ready(s, GROWS));
	CU_ASSERT_TRUE(vn_states_ready(s, FIXED));
	vn_states_append(s, GROWS, rows);
	CU_ASSERT_TRUE(vn_states_ready(s, GROWS));
	float *sum = vn_states_open(s, FIXED);
	for (int i = 0; i < 3; i++)
		for (int64_t t = 0; t < tokens; t++)
			sum[i] += (float)(past + t);
	vn_states_made(s, FIXED);
	vn_states_end(s, keep);
}

/* Checks that the states are those after `tokens` tokens, by a call that adds nothing to them. */
static void holds(vn_states *s, int64_t tokens)
{
	int64_t n;
	CU_ASSERT_EQUAL(vn_states_begin(s, tokens, 0, NULL), VN_OK);
	const float *rows = vn_states_see(s, GROWS, &n);
	CU_ASSERT_PTR_NOT_NULL_FATAL(rows);
	CU_ASSERT_EQUAL(n, 2 * tokens);
	for (int64_t t = 0; t < tokens; t++)
		CU_ASSERT_TRUE(rows[2 * t] == (float)t && rows[2 * t + 1] == -(float)t);
	const float *sum = vn_states_see(s, FIXED, &n);
	CU_ASSERT_PTR_NOT_NULL_FATAL(sum);
	CU_ASSERT_EQUAL(n, 3);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(sum[i], (float)(tokens * (tokens - 1) / 2));
	vn_states_end(s, false);
}

static void kept_calls_add_up_and_others_leave_no_trace(void)
{
	vn_states s;

	CU_ASSERT_EQUAL_FATAL(vn_states_create(&s, &plan, sizeof(float), NULL), VN_OK);
	call(&s, 0, 5, true);
	holds(&s, 5);
	call(&s, 5, 3, false);
	holds(&s, 5);
	call(&s, 5, 90, false); /* its room is larger */
	holds(&s, 5);
	call(&s, 5, 1, true);
	call(&s, 6, 94, true);
	holds(&s, 100);
	vn_states_destroy(&s);
	vn_states_destroy(&s);
}

static void a_node_may_run_twice_in_a_call(void)
{
	vn_states s;

	CU_ASSERT_EQUAL_FATAL(vn_states_create(&s, &plan, sizeof(float), NULL), VN_OK);
	call(&s, 0, 5, true);
	CU_ASSERT_EQUAL(vn_states_begin(&s, 5, 1, NULL), VN_OK);
	for (int k = 0; k < 2; k++) {
		float *sum = vn_states_open(&s, FIXED);
		CU_ASSERT_EQUAL(sum[2], 10);
		sum[0] = sum[1] = sum[2] = 15;
		vn_states_append(&s, GROWS, (float[]) { 5, -5 });
		vn_states_made(&s, FIXED);
	}
	vn_states_end(&s, true);
	holds(&s, 6);
	vn_states_destroy(&s);
}

static void position_zero_begins_anew(void)
{
	vn_states s;

	CU_ASSERT_EQUAL_FATAL(vn_states_create(&s, &plan, sizeof(float), NULL), VN_OK);
	call(&s, 0, 50, true);
	call(&s, 0, 4, true);
	holds(&s, 4);
	vn_states_destroy(&s);
}

static void what_a_kept_call_left_out_is_missing_from_then_on(void)
{
	vn_states s;
	int64_t   n;

	CU_ASSERT_EQUAL_FATAL(vn_states_create(&s, &plan, sizeof(float), NULL), VN_OK);
	call(&s, 0, 4, true);
	CU_ASSERT_EQUAL(vn_states_begin(&s, 4, 1, NULL), VN_OK);
	vn_states_end(&s, true); /* nobody ran the node */
	CU_ASSERT_EQUAL(vn_states_begin(&s, 5, 1, NULL), VN_OK);
	vn_states_append(&s, GROWS, (float[]) { 5, -5 });
	CU_ASSERT_FALSE(vn_states_ready(&s, GROWS));
	CU_ASSERT_FALSE(vn_states_ready(&s, FIXED));
	CU_ASSERT_PTR_NULL(vn_states_see(&s, GROWS, &n));
	CU_ASSERT_PTR_NULL(vn_states_see(&s, FIXED, &n));
	vn_states_end(&s, true);
	call(&s, 0, 7, true);
	holds(&s, 7);
	vn_states_destroy(&s);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(kept_calls_add_up_and_others_leave_no_trace),
		TEST(a_node_may_run_twice_in_a_call),
		TEST(position_zero_begins_anew),
		TEST(what_a_kept_call_left_out_is_missing_from_then_on),
		CU_TEST_INFO_NULL,
	};
	return run_suite("states", tests);
}
