/* test_gpu_ops.c: every operation against a double loop, over odd shapes. */
#include "tests/support/test_gpu_truth.h"

static void check(shape_of s, vn_policy policy, int64_t past, int64_t tokens)
{
	vn_plan *p = block_plan(s);

	check_run(p, policy, past, tokens);
	vn_plan_destroy(p);
}

static const shape_of odd = {
	.layers = 1, .D = 23, .H = 6, .G = 2, .K = 10, .F = 37, .V = 101, .context = 256, .rotary = 10
};

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

static void every_op_is_right_for_any_heads_and_windows(void)
{
	static const struct {
		int H, G, K, rotary, window, D;
	} of[] = {
		{ 1, 1, 1, 0, 0, 7 },     { 3, 1, 2, 2, 0, 8 },      { 5, 5, 33, 0, 1, 12 },    { 4, 4, 80, 80, 0, 16 },
		{ 8, 2, 128, 64, 5, 20 }, { 2, 1, 256, 256, 7, 24 }, { 6, 3, 130, 130, 64, 9 }, { 14, 2, 64, 64, 0, 64 },
	};
	for (size_t i = 0; i < COUNT(of); i++) {
		const shape_of s = { .layers = 1,
			                 .D = of[i].D,
			                 .H = of[i].H,
			                 .G = of[i].G,
			                 .K = of[i].K,
			                 .F = 30,
			                 .V = 67,
			                 .window = of[i].window,
			                 .context = 256,
			                 .rotary = of[i].rotary,
			                 .q_norm = i % 2 };
		check(s, F32, 0, 70);
		check(s, F16, 0, 21);
		check(s, F16, 0, 1);
		check(s, F32, 13, 9);
	}
}

static void every_op_is_right_behind_earlier_tokens(void)
{
	static const struct {
		int64_t past, tokens;
	} of[] = { { 1, 1 }, { 5, 1 }, { 70, 3 }, { 17, 65 }, { 63, 1 }, { 64, 64 } };
	shape_of s = odd;
	for (size_t i = 0; i < COUNT(of); i++) {
		s.window = i % 2 ? 9 : 0;
		check(s, F32, of[i].past, of[i].tokens);
		check(s, F16, of[i].past, of[i].tokens);
	}
}

/* Rows of four, several tiles in each direction, and some left over. */
static void linear_is_right_in_fours_and_in_many_tiles(void)
{
	const shape_of s = {
		.layers = 1, .D = 132, .H = 4, .G = 1, .K = 33, .F = 196, .V = 333, .context = 256, .rotary = 32
	};
	check(s, F32, 0, 130);
	check(s, F16, 0, 130);
	check(s, ACC16, 0, 40);
	check(s, F16, 0, 1);
	check(s, F32, 0, 1);
	check(s, ACC16, 0, 1);
}

/* embed -> norm, silu, gated and add for T tokens of D numbers of all sizes
 * that a half can be, its subnormals too. */
static void elementwise(int T, int D)
{
	const int V = 64;
	for (int d = 0; d < n_devices_; d++)
		for (int half = 0; half < 2; half++) {
			const vn_policy policy = half ? F16 : F32;
			if (!half && T * D > 1000000 && is_slow(d))
				continue;
			vn_builder *b = vn_plan_begin(0, V, T);
			model       m = { 0 };
			keep        k;
			vn_error    err = { "" };
			int         x = vn_plan_embed(b, vn_plan_weight(b, "x", 2, (int64_t[]) { V, D }), VN_POINT_EMBED);
			int         y = vn_plan_embed(b, vn_plan_weight(b, "y", 2, (int64_t[]) { V, D }), VN_POINT_INPUT);
			vn_plan_rms_norm(b, x, vn_plan_weight(b, "g", 1, (int64_t[]) { D }), 1e-5, VN_POINT_ATTN_NORM);
			vn_plan_act(b, VN_SILU, x, VN_POINT_GATE_ACT, false);
			vn_plan_gated(b, VN_SILU, x, y, VN_POINT_MLP_ACT);
			vn_plan_add(b, x, y, VN_POINT_OUTPUT);
			CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &m.plan, &err), VN_OK);
			model_start(&m, m.plan, policy.storage);
			for (int w = 0; w < 2; w++) {
				float *at = (void *)(uintptr_t)m.weight[w].data;
				for (int i = 0; i < V * D; i++)
					at[i] = (float)(uniform() * pow(2.0, 13.5 * uniform() - 6.5));
				vn_round_f32(at, policy.storage, (size_t)(V * D));
			}
			keep_start(&k, m.plan);
			bool    *want = want_all(m.plan, true);
			int32_t *ids = some_ids(T, V);
			vn_taps  taps = { .want = want, .sink = keep_sink(&k) };
			vn_gpu  *g = engine(&m,
			                    (vn_gpu_options) { .policy = policy, .device = devices_[d].index, .validate = true });
			if (g && forward(g, ids, T, &taps) == VN_OK)
				for (int v = 0; v < m.plan->n_values; v++)
					CU_ASSERT_EQUAL(wrong(&m, &k, v, policy, ids, 0, T), 0);
			vn_gpu_ops.destroy(g);
			free(ids);
			free(want);
			keep_stop(&k);
			model_stop(&m);
		}
}

static void elementwise_ops_are_right_for_any_number(void)
{
	elementwise(64, 129);
}

/* Halves of every exponent with digits at both ends and around the middle. */
static int telling_halves(float *x)
{
	static const uint16_t digits[] = { 0, 1, 2, 3, 0x155, 0x1FF, 0x200, 0x201, 0x2AA, 0x3FC, 0x3FD, 0x3FE, 0x3FF };
	int                   n = 0;
	for (uint16_t e = 0; e < 31; e++)
		for (size_t i = 0; i < COUNT(digits); i++)
			for (uint16_t sign = 0; sign < 2; sign++)
				x[n++] = vn_f16_to_f32((uint16_t)(sign << 15 | e << 10 | digits[i]));
	x[n++] = INFINITY;
	x[n++] = -INFINITY;
	x[n++] = NAN;
	return n;
}

static int64_t other_than_half_of(float got, float exact)
{
	const float expect = vn_f16_to_f32(vn_f32_to_f16(exact));
	return isnan(expect) ? !isnan(got) : memcmp(&got, &expect, sizeof got) != 0;
}

/* A product of two halves fits a float: what comes out of linear over rows of
 * one is rounded by the store alone. Of a sum so much as a float can hold. Ties,
 * subnormals, underflow, 65519.99 and 65520, zeros of both signs, NaN. */
static void a_store_rounds_once_to_nearest_bit_for_bit(void)
{
	enum { MOST = 1024 };
	float     x[MOST];
	const int N = telling_halves(x);
	for (int d = 0; d < n_devices_; d++) {
		vn_builder *b = vn_plan_begin(0, N, N);
		model       m = { 0 };
		keep        k;
		vn_error    err = { "" };
		int64_t     bad_product = 0, bad_sum = 0, ties = 0;
		int         s = vn_plan_embed(b, vn_plan_weight(b, "column", 2, (int64_t[]) { N, 1 }), VN_POINT_EMBED);
		int         u = vn_plan_embed(b, vn_plan_weight(b, "down", 2, (int64_t[]) { N, N }), VN_POINT_INPUT);
		int         v = vn_plan_embed(b, vn_plan_weight(b, "across", 2, (int64_t[]) { N, N }), VN_POINT_ATTN_NORM);
		int         product = vn_plan_linear(b, s, vn_plan_weight(b, "row", 2, (int64_t[]) { N, 1 }), -1, 0,
		                                     VN_POINT_GATE_PROJ);
		int         sum = vn_plan_add(b, u, v, VN_POINT_OUTPUT);
		CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &m.plan, &err), VN_OK);
		model_start(&m, m.plan, VN_F16);
		for (int w = 0; w < m.plan->n_weights; w++) {
			float *at = (void *)(uintptr_t)m.weight[w].data;
			for (int i = 0; i < N; i++) {
				if (m.weight[w].shape.dim[1] == 1)
					at[i] = x[i];
				else
					for (int j = 0; j < N; j++)
						at[i * N + j] = x[strcmp(m.plan->weight[w].name, "down") == 0 ? i : j];
			}
		}
		keep_start(&k, m.plan);
		bool    *want = want_all(m.plan, true);
		int32_t *ids = calloc((size_t)N, sizeof *ids);
		for (int i = 0; i < N; i++)
			ids[i] = i;
		vn_taps taps = { .want = want, .sink = keep_sink(&k) };
		vn_gpu *g = engine(&m, on(d, F16));
		if (g && forward(g, ids, N, &taps) == VN_OK)
			for (int i = 0; i < N; i++)
				for (int j = 0; j < N; j++) {
					const float p = fmaf(x[i], x[j], 0.0f), q = x[i] + x[j]; /* the shader adds to a sum of 0 */
					bad_product += other_than_half_of(k.v[product].x[i * N + j], p);
					bad_sum += other_than_half_of(k.v[sum].x[i * N + j], q);
					ties += fabs((double)p - (double)vn_f16_to_f32(vn_f32_to_f16(p))) ==
					        0.5 * vn_dtype_ulp(VN_F16, (double)p);
				}
		CU_ASSERT_EQUAL(bad_product, 0);
		CU_ASSERT_EQUAL(bad_sum, 0);
		CU_ASSERT_TRUE(ties > 1000);
		vn_gpu_ops.destroy(g);
		free(ids);
		free(want);
		keep_stop(&k);
		model_stop(&m);
	}
}

/* Not 65504: an engine that saturates hides the overflow. */
static void a_number_too_large_for_half_becomes_infinite(void)
{
	static const float x[] = { 60000, -60000, 65504, 65504, 65504 }, y[] = { 60000, -60000, 15, 16, -32 };
	static const float expect[] = { INFINITY, -INFINITY, 65504, INFINITY, 65472 };
	for (int d = 0; d < n_devices_; d++) {
		vn_builder *b = vn_plan_begin(0, 1, 1);
		model       m = { 0 };
		keep        k;
		vn_error    err = { "" };
		int         s = vn_plan_embed(b, vn_plan_weight(b, "x", 2, (int64_t[]) { 1, 5 }), VN_POINT_EMBED);
		int         t = vn_plan_embed(b, vn_plan_weight(b, "y", 2, (int64_t[]) { 1, 5 }), VN_POINT_INPUT);
		int         v = vn_plan_add(b, s, t, VN_POINT_OUTPUT);
		CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &m.plan, &err), VN_OK);
		model_start(&m, m.plan, VN_F16);
		memcpy((void *)(uintptr_t)m.weight[0].data, x, sizeof x);
		memcpy((void *)(uintptr_t)m.weight[1].data, y, sizeof y);
		keep_start(&k, m.plan);
		bool   *want = want_all(m.plan, true);
		vn_taps taps = { .want = want, .sink = keep_sink(&k) };
		vn_gpu *g = engine(&m, (vn_gpu_options) { .policy = F16, .device = devices_[d].index });
		if (g && forward(g, (int32_t[]) { 0 }, 1, &taps) == VN_OK)
			for (int i = 0; i < 5; i++)
				CU_ASSERT_TRUE(k.v[v].x[i] == expect[i]);
		vn_gpu_ops.destroy(g);
		free(want);
		keep_stop(&k);
		model_stop(&m);
	}
}

/* 65535 workgroups in one direction is all that a device need start at once. */
static void more_workgroups_than_a_device_starts_are_done_in_strides(void)
{
	elementwise(66000, 2);   /* rows of a norm */
	elementwise(300, 14500); /* 4.35 million elements, 64 in a group */
}

/* A row of NaN at token 43 makes that row and later ones NaN, and no earlier
 * one, although they share tiles. */
static void a_nan_reaches_later_tokens_and_no_earlier_one(void)
{
	const int T = 70, bad = 43; /* inside a block of eight queries */
	for (int d = 0; d < n_devices_; d++) {
		model    m;
		keep     k;
		shape_of s = odd;
		s.V = T;
		model_start(&m, block_plan(s), VN_F16);
		float *table = (void *)(uintptr_t)m.weight[0].data;
		for (int i = 0; i < s.D; i++)
			table[bad * s.D + i] = NAN;
		keep_start(&k, m.plan);
		bool   *want = want_all(m.plan, true);
		int32_t ids[70];
		for (int i = 0; i < T; i++)
			ids[i] = i;
		vn_taps taps = { .want = want, .sink = keep_sink(&k) };
		vn_gpu *g = engine(&m, (vn_gpu_options) { .policy = F16, .device = devices_[d].index });
		if (g && forward(g, ids, T, &taps) == VN_OK) {
			const kept *logits = &k.v[vn_plan_find(m.plan, "logits")],
					   *probs = &k.v[vn_plan_find(m.plan, "layer0.attn_probs")];
			int early = 0, late = 0;
			for (int i = 0; i < T * s.V; i++) {
				early += i / s.V < bad && !isfinite(logits->x[i]);
				late += i / s.V >= bad && !isnan(logits->x[i]);
			}
			CU_ASSERT_EQUAL(early, 0);
			CU_ASSERT_EQUAL(late, 0);
			CU_ASSERT_TRUE(isfinite(probs->x[(bad - 1) * T + bad]));
			CU_ASSERT_TRUE(isnan(probs->x[bad * T + bad]));
		}
		vn_gpu_ops.destroy(g);
		free(want);
		keep_stop(&k);
		model_stop(&m);
	}
}

int main(void)
{
	CU_TestInfo tests[] = {
		{ "every op is right in f32 for any number of tokens", every_op_is_right_in_f32_for_any_number_of_tokens },
		{ "every op is right in f16 for any number of tokens", every_op_is_right_in_f16_for_any_number_of_tokens },
		{ "every op is right with half sums", every_op_is_right_with_half_sums },
		{ "every op is right for any heads and windows", every_op_is_right_for_any_heads_and_windows },
		{ "every op is right behind earlier tokens", every_op_is_right_behind_earlier_tokens },
		{ "linear is right in fours and in many tiles", linear_is_right_in_fours_and_in_many_tiles },
		{ "elementwise ops are right for any number", elementwise_ops_are_right_for_any_number },
		{ "a store rounds once to nearest bit for bit", a_store_rounds_once_to_nearest_bit_for_bit },
		{ "a number too large for half becomes infinite", a_number_too_large_for_half_becomes_infinite },
		{ "more workgroups than a device starts are done in strides",
		  more_workgroups_than_a_device_starts_are_done_in_strides },
		{ "a NaN reaches later tokens and no earlier one", a_nan_reaches_later_tokens_and_no_earlier_one },
		CU_TEST_INFO_NULL,
	};
	return run_gpu_suite("gpu ops", tests);
}
