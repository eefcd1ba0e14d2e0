/* test_recompute_slots.c: tests compare/replay/recompute_variant.c. */
#include "tests/support/attention_help.h"

enum { CALL = 10 };

static int     key[TOKENS], value[TOKENS];
static int64_t keys[CALL], values[CALL];

static double run(explained *e, const int64_t *of_keys, const int64_t *of_values)
{
	double    most = 0, x[CALL * H * K];
	vn_tensor out;

	CU_ASSERT_EQUAL_FATAL(vn_recompute_run_slots(e->t.recompute, e->t.site->plan,
	                                             (const int64_t *const[]) { of_keys, of_values }, VN_FINE_WIDTH, &out,
	                                             &e->err),
	                      VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_shape_count(&out.shape), CALL * H * K);
	vn_to_f64(x, out.data, out.dtype, CALL * H * K);
	for (int i = 0; i < CALL * H * K; i++)
		most = fmax(most, fabs(x[i] - (double)context[i]));
	vn_tensor_free(&out);
	return most;
}

static void slots_hold_what_they_are_told_to(void)
{
	explained e;

	for (int j = 0; j < CALL; j++) {
		keys[j] = key[j] = CALL - 1 - j;
		values[j] = value[j] = j % 4 ? j - 1 : -1; /* a fourth of them holds zeros */
	}
	make_up_inputs();
	attend_all(&(mistake) { .key = key, .value = value }, 0, CALL);
	stand_at_context(&e, CALL, 0, 0);
	CU_ASSERT_TRUE(run(&e, keys, values) < 1e-6);
	CU_ASSERT_TRUE(run(&e, keys, NULL) > 1e-2);
	end_explained(&e);
}

static void keys_or_values_alone_are_exchanged(void)
{
	explained e;

	for (int j = 0; j < CALL; j++)
		keys[j] = key[j] = j ^ 1;
	make_up_inputs();
	attend_all(&(mistake) { .key = key }, 0, CALL);
	stand_at_context(&e, CALL, 0, 0);
	CU_ASSERT_TRUE(run(&e, keys, NULL) < 1e-6);
	end_explained(&e);
	make_up_inputs();
	attend_all(&(mistake) { .value = key }, 0, CALL);
	stand_at_context(&e, CALL, 0, 0);
	CU_ASSERT_TRUE(run(&e, NULL, keys) < 1e-6);
	end_explained(&e);
}

/* Later computations find the cache unchanged. */
static void the_cache_is_put_back(void)
{
	vn_tensor in;
	double    x[CALL * G * K];
	explained e;

	for (int j = 0; j < CALL; j++)
		keys[j] = -1;
	make_up_inputs();
	attend_all(&(mistake) { 0 }, 0, CALL);
	stand_at_context(&e, CALL, 0, 0);
	CU_ASSERT_TRUE(run(&e, keys, keys) > 1e-2);
	for (int input = VN_ATTN_K; input <= VN_ATTN_V; input++) {
		CU_ASSERT_EQUAL_FATAL(vn_recompute_input(e.t.recompute, input, VN_FINE_WIDTH, &in, &e.err), VN_OK);
		vn_to_f64(x, in.data, in.dtype, CALL * G * K);
		int other = 0;
		for (int i = 0; i < CALL * G * K; i++)
			other += x[i] != (double)(input == VN_ATTN_K ? k : v)[i];
		CU_ASSERT_EQUAL(other, 0);
	}
	CU_ASSERT_TRUE(run(&e, NULL, NULL) < 1e-6);
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(slots_hold_what_they_are_told_to),
		TEST(keys_or_values_alone_are_exchanged),
		TEST(the_cache_is_put_back),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("recompute_slots", tests);
	return !remove_folder() || failed;
}
