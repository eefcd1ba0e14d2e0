/* test_gpu_ops.c: every operation against a double loop, over odd shapes. */
#include "tests/test_gpu_help.h"

/* Every value of a run, each from the inputs that the device stored. */
static void check(shape_of s, vn_policy policy, int64_t past, int64_t tokens)
{
	for (int d = 0; d < n_devices_; d++) {
		model m;
		keep  k;
		model_start(&m, block_plan(s), policy.storage);
		keep_start(&k, m.plan);
		bool    *want = want_all(m.plan, true);
		int32_t *ids = some_ids(past + tokens, s.V);
		vn_taps  taps = { .want = want, .rows = VN_ROWS_ALL, .sink = keep_sink(&k) };
		vn_gpu  *g = engine(&m, (vn_gpu_options){ .policy = policy, .device = devices_[d].index, .validate = true });
		if (g && (past == 0 || forward(g, ids, past, &taps) == VN_OK)) {
			keep_next(&k, m.plan);
			if (forward(g, ids + past, tokens, &taps) == VN_OK) {
				for (int v = 0; v < m.plan->n_values; v++)
					if (m.plan->value[v].alias_of < 0) {
						CU_ASSERT_EQUAL(wrong(&m, &k, v, policy, ids, past, tokens), 0);
						CU_ASSERT_EQUAL(k.v[v].begun, k.v[v].ended);
					}
				CU_ASSERT_EQUAL(vn_gpu_position(g), past + tokens);
			}
		}
		vn_gpu_destroy(g);
		free(ids);
		free(want);
		keep_stop(&k);
		model_stop(&m);
	}
}

static const shape_of odd = { .layers = 1, .D = 23, .H = 6, .G = 2, .K = 10, .F = 37, .V = 101, .context = 256,
                              .rotary = 10 };

static void every_op_is_right_in_f32_for_any_number_of_tokens(void)
{
	const int64_t T[] = { 1, 2, 3, 17, 65, 200 };
	for (size_t i = 0; i < COUNT(T); i++)
		check(odd, F32, 0, T[i]);
}

static void every_op_is_right_in_f16_for_any_number_of_tokens(void)
{
	const int64_t T[] = { 1, 2, 3, 17, 65, 200 };
	for (size_t i = 0; i < COUNT(T); i++)
		check(odd, F16, 0, T[i]);
}

static void every_op_is_right_with_half_sums(void)
{
	const int64_t T[] = { 1, 2, 17, 65 };
	for (size_t i = 0; i < COUNT(T); i++)
		check(odd, ACC16, 0, T[i]);
}

int main(void)
{
	CU_TestInfo tests[] = {
		{ "every op is right in f32 for any number of tokens", every_op_is_right_in_f32_for_any_number_of_tokens },
		{ "every op is right in f16 for any number of tokens", every_op_is_right_in_f16_for_any_number_of_tokens },
		{ "every op is right with half sums", every_op_is_right_with_half_sums },
		CU_TEST_INFO_NULL,
	};
	return run_suite("gpu ops", tests);
}
