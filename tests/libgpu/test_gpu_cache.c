/* test_gpu_cache.c: the states that calls leave for later calls on the device, examined from the
 * inside; test_states.c tests the same on the reference. */
#include "tests/support/test_gpu_help.h"

#include "libgpu/cache.h"

/* One state that grows by rows of 3 numbers, one of 5: halves and floats. */
enum { GROWS, FIXED };

static vn_state state[] = {
	{ .node = 0, .value = -1, .input = 1, .rank = 2, .size = { VN_S, 3 } },
	{ .node = 0, .value = -1, .input = -1, .wide = true, .rank = 1, .size = { 5 } },
};
static vn_value      context = { .name = "context" };
static vn_node       node = { .op = VN_OP_ATTENTION, .n_out = 1, .n_state = 2, .state = { 0, 1 } };
static const vn_plan plan = {
	.n_nodes = 1, .node = &node, .n_values = 1, .value = &context, .n_states = 2, .state = state, .context = 5000
};

typedef struct bench {
	vn_device  d;
	vn_encoder e;
	vn_cache   c;
	vn_buffer  up, back;
} bench;

static void start(bench *b, int device)
{
	vn_error err = { "" };

	*b = (bench) { 0 };
	CU_ASSERT_EQUAL_FATAL(vn_device_open(&b->d, devices_[device].index, false, true, &err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_encoder_create(&b->d, NULL, 1, &b->e, &err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_cache_create(&b->c, &plan, F16, (vn_pages) { 0 }, false, &err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_buffer_create(&b->d, &b->up, &(vn_buffer_need) { VN_FOR_UPLOAD, 32, false, "up" }, &err),
	                      VN_OK);
	CU_ASSERT_EQUAL_FATAL(
		vn_buffer_create(&b->d, &b->back, &(vn_buffer_need) { VN_FOR_READBACK, 1 << 16, false, "back" }, &err), VN_OK);
	CU_ASSERT_EQUAL(b->c.slot[GROWS].row_bytes, 6);
	CU_ASSERT_EQUAL(b->c.slot[FIXED].row_bytes, 20);
}

static void stop(bench *b)
{
	vn_error err = { "" };

	CU_ASSERT_EQUAL(vn_device_complaint(&b->d, &err), VN_OK);
	if (*err.text)
		printf("\n  %s\n", err.text);
	vn_encoder_destroy(&b->e);
	vn_buffer_destroy(&b->d, &b->up);
	vn_buffer_destroy(&b->d, &b->back);
	vn_cache_destroy(&b->d, &b->c);
	vn_device_close(&b->d);
}

static void run(bench *b)
{
	const int cur = b->e.cur;
	vn_error  err;

	CU_ASSERT_EQUAL(vn_encode_submit(&b->e, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_encode_wait(&b->e, cur, &err), VN_OK);
}

/* Makes a call of `tokens` tokens that writes `mark` to its last row and to the state of fixed
 * size. */
static void call(bench *b, int64_t past, int64_t tokens, bool guard, float mark, bool keep_it)
{
	vn_error err = { "" };

	b->c.guard = guard;
	CU_ASSERT_EQUAL(vn_cache_begin(&b->e, &b->c, past, tokens, &err), VN_OK);
	vn_encode_begin(&b->e);
	if (past == 0)
		vn_cache_clear(&b->e, &b->c);
	for (int i = 0; i < 5; i++)
		((float *)b->up.map)[i] = mark;
	vn_cache_slot *s = b->c.slot;
	vn_encode_copy(&b->e, &b->up, 0, &s[GROWS].now, (VkDeviceSize)(past + tokens - 1) * 6, 6);
	vn_encode_copy(&b->e, &b->up, 0, &s[FIXED].next, 0, 20);
	s[GROWS].upto = past + tokens;
	s[FIXED].made = true;
	run(b);
	if (keep_it)
		vn_cache_keep(&b->c, past + tokens);
}

/* Checks that the last of `tokens` rows and the other state are those of the call with that
 * mark. */
static void holds(bench *b, int64_t tokens, float mark)
{
	vn_error   err = { "" };
	float      want[5] = { mark, mark, mark, mark, mark };
	vn_buffer *rows, *fixed;

	CU_ASSERT_EQUAL(vn_cache_begin(&b->e, &b->c, tokens, 0, &err), VN_OK);
	rows = vn_cache_see(&b->c, GROWS, tokens, 0);
	fixed = vn_cache_see(&b->c, FIXED, tokens, 0);
	CU_ASSERT_FATAL(rows && fixed);
	vn_encode_begin(&b->e);
	if (tokens)
		vn_encode_copy_out(&b->e, rows, (VkDeviceSize)(tokens - 1) * 6, &b->back, 0, 6);
	vn_encode_copy_out(&b->e, fixed, 0, &b->back, 64, 20);
	run(b);
	if (tokens)
		CU_ASSERT_EQUAL(memcmp(b->back.map, want, 6), 0);
	CU_ASSERT_EQUAL(memcmp((char *)b->back.map + 64, want, 20), 0);
}

static void kept_calls_leave_their_states_and_others_none(void)
{
	for (int d = 0; d < n_devices_; d++)
		for (int guard = 0; guard < 2; guard++) {
			bench b;
			start(&b, d);
			call(&b, 0, 5, guard, 1.0f, true);
			holds(&b, 5, 1.0f);
			call(&b, 5, 3, guard, 2.0f, false);
			holds(&b, 5, 1.0f);
			call(&b, 5, 600, guard, 3.0f, false); /* its room is larger */
			holds(&b, 5, 1.0f);
			call(&b, 5, 600, guard, 4.0f, true);
			call(&b, 605, 1, guard, 5.0f, true);
			holds(&b, 606, 5.0f);
			call(&b, 606, 4000, guard, 6.0f, true);
			holds(&b, 4606, 6.0f);
			CU_ASSERT_EQUAL(b.c.slot[GROWS].rows, 5000);
			stop(&b);
		}
}

static void a_first_call_finds_zero(void)
{
	for (int d = 0; d < n_devices_; d++) {
		bench    b;
		vn_error err;
		start(&b, d);
		call(&b, 0, 7, false, 1.0f, true);
		call(&b, 7, 1, false, 2.0f, true);
		CU_ASSERT_EQUAL(vn_cache_begin(&b.e, &b.c, 0, 1, &err), VN_OK); /* a reset */
		vn_encode_begin(&b.e);
		vn_cache_clear(&b.e, &b.c);
		run(&b);
		holds(&b, 0, 0.0f);
		stop(&b);
	}
}

static void what_a_kept_call_left_out_is_not_known(void)
{
	for (int d = 0; d < n_devices_; d++) {
		bench    b;
		vn_error err;
		start(&b, d);
		call(&b, 0, 7, false, 1.0f, true);
		CU_ASSERT_EQUAL(vn_cache_begin(&b.e, &b.c, 7, 1, &err), VN_OK);
		vn_cache_keep(&b.c, 8);
		CU_ASSERT_EQUAL(vn_cache_begin(&b.e, &b.c, 8, 1, &err), VN_OK);
		CU_ASSERT_PTR_NULL(vn_cache_see(&b.c, GROWS, 8, 1));
		CU_ASSERT_PTR_NULL(vn_cache_see(&b.c, FIXED, 8, 1));
		stop(&b);
	}
}

int main(void)
{
	CU_TestInfo tests[] = { { "kept calls leave their states and others none",
		                      kept_calls_leave_their_states_and_others_none },
		                    { "a first call finds zero", a_first_call_finds_zero },
		                    { "what a kept call left out is not known", what_a_kept_call_left_out_is_not_known },
		                    CU_TEST_INFO_NULL };
	return run_gpu_suite("gpu cache", tests);
}
