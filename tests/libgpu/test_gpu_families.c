/* test_gpu_families.c: the pages of the families on the device: every value against
 * a double loop, layer norms, positions, slices, gelu and transposed matrices with them. */
#include "tests/support/test_gpu_truth.h"

#include "libgpu/engine.h"

static void check(const char *config, vn_policy policy, int64_t past, int64_t tokens)
{
	vn_plan *p = plan_of(config);

	check_run(p, policy, past, tokens);
	vn_plan_destroy(p);
}

#define GPT2 \
	"{\"model_type\":\"gpt2\",\"vocab_size\":67,\"n_embd\":30,\"n_head\":5,\"n_layer\":2,\"n_inner\":37," \
	"\"n_positions\":256,"

static void gpt2_is_right_for_any_number_of_tokens(void)
{
	static const struct {
		int64_t past, tokens;
	} of[] = { { 0, 1 }, { 0, 17 }, { 0, 70 }, { 5, 1 }, { 17, 65 } };

	for (size_t i = 0; i < COUNT(of); i++) {
		check(GPT2 "\"tie_word_embeddings\":true}", F32, of[i].past, of[i].tokens);
		check(GPT2 "\"tie_word_embeddings\":false,\"activation_function\":\"gelu\"}", F16, of[i].past, of[i].tokens);
	}
	check(GPT2 "\"scale_attn_by_inverse_layer_idx\":true}", ACC16, 0, 21);
	check(GPT2 "\"activation_function\":\"silu\",\"scale_attn_weights\":false}", ACC16, 3, 1);
}

#define BLOCK \
	"\"vocab_size\":67,\"hidden_size\":24,\"intermediate_size\":37,\"num_hidden_layers\":2," \
	"\"max_position_embeddings\":256,"

static void the_decoders_are_right(void)
{
	static const char *const of[] = {
		"{\"model_type\":\"qwen3\"," BLOCK
		"\"num_attention_heads\":3,\"num_key_value_heads\":1,\"head_dim\":10,\"attention_bias\":true}",
		"{\"model_type\":\"llama\"," BLOCK
		"\"num_attention_heads\":6,\"num_key_value_heads\":6,\"mlp_bias\":true,\"hidden_act\":\"gelu\","
		"\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,"
		"\"original_max_position_embeddings\":32}}",
		"{\"model_type\":\"mistral\"," BLOCK
		"\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":20,\"sliding_window\":9}",
	};

	for (size_t i = 0; i < COUNT(of); i++) {
		check(of[i], F32, 0, 70);
		check(of[i], F16, 0, 70);
		check(of[i], F16, 21, 1);
	}
}

/* As Qwen3.5 keeps the gate of a head behind its query; as a plan of one
 * operation after another. */
static void a_slice_takes_columns_of_every_head(void)
{
	static const int tokens[] = { 1, 17, 300 };

	for (size_t i = 0; i < COUNT(tokens); i++)
		for (int half = 0; half < 2; half++) {
			vn_builder *b = vn_plan_begin(0, 50, 300);
			vn_plan    *p;
			const int   x = vn_plan_embed(b, vn_plan_weight(b, "x", 2, (int64_t[]) { 50, 7 * 22 }), VN_POINT_EMBED);
			vn_plan_slice(b, x, (vn_columns) { 22, 0, 11 }, 7, VN_POINT_Q_PROJ);
			vn_plan_slice(b, x, (vn_columns) { 22, 11, 11 }, 7, VN_POINT_K_PROJ);
			vn_plan_slice(b, x, (vn_columns) { 1, 0, 1 }, 0, VN_POINT_V_PROJ);
			vn_plan_slice(b, x, (vn_columns) { 77, 76, 1 }, 0, VN_POINT_GATE_PROJ);
			CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &p, NULL), VN_OK);
			check_run(p, half ? F16 : F32, 0, tokens[i]);
			vn_plan_destroy(p);
		}
}

/* As in a multi-token-prediction head: rows come one token late, beside others, and an attention
 * does not see the first key. */
static void a_head_reads_the_token_before_and_hides_the_first_key(void)
{
	enum { D = 24, H = 2, K = 12 };
	static const struct {
		int64_t past, tokens;
	} of[] = { { 0, 1 }, { 0, 2 }, { 0, 300 }, { 1, 1 }, { 17, 1 }, { 5, 65 } };

	for (size_t i = 0; i < COUNT(of); i++)
		for (int half = 0; half < 2; half++) {
			vn_builder *b = vn_plan_begin(1, 50, 512);
			vn_plan    *p;
			int         x = vn_plan_embed(b, vn_plan_weight(b, "x", 2, (int64_t[]) { 50, D }), VN_POINT_EMBED);
			vn_plan_layer(b, 0);
			const int late = vn_plan_delay(b, x, VN_POINT_MTP_HIDDEN);
			x = vn_plan_join(b, x, late, VN_POINT_MTP_JOINED);
			const int q = vn_plan_linear(b, x, vn_plan_weight(b, "q", 2, (int64_t[]) { D, 2 * D }), -1, H,
			                             VN_POINT_Q_PROJ);
			const int k = vn_plan_linear(b, x, vn_plan_weight(b, "k", 2, (int64_t[]) { K, 2 * D }), -1, 1,
			                             VN_POINT_K_PROJ);
			const int v = vn_plan_linear(b, x, vn_plan_weight(b, "v", 2, (int64_t[]) { K, 2 * D }), -1, 1,
			                             VN_POINT_V_PROJ);
			vn_plan_set(b, vn_plan_attention(b, q, k, v, 0.3, 0), "first", 1);
			CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &p, NULL), VN_OK);
			check_run(p, half ? F16 : F32, of[i].past, of[i].tokens);
			vn_plan_destroy(p);
		}
}

/* All that a half can hold from 1e-4 to 100, and the activations where they bend
 * and where they end. */
static void activations_are_right_for_any_number(void)
{
	enum { N = 401 };

	for (int act = 0; act <= VN_SIGMOID; act++)
		for (int half = 0; half < 2; half++)
			for (int d = 0; d < n_devices_; d++) {
				if (is_slow(d) && half != act % 2) /* each in one precision */
					continue;
				const vn_policy policy = half ? F16 : F32;
				vn_builder     *b = vn_plan_begin(0, N, N);
				model           m = { 0 };
				keep            k;
				const int       x = vn_plan_embed(b, vn_plan_weight(b, "x", 2, (int64_t[]) { N, 2 }), VN_POINT_EMBED);
				const int       y = vn_plan_act(b, (vn_act)act, x, VN_POINT_GATE_ACT, false);
				const int       z = vn_plan_gated(b, (vn_act)act, x, x, VN_POINT_MLP_ACT);
				CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &m.plan, NULL), VN_OK);
				model_start(&m, m.plan, policy.storage);
				float *at = (void *)(uintptr_t)m.weight[0].data;
				for (int i = 0; i < N; i++) {
					at[2 * i] = (float)(i - N / 2) / 20.0f;
					at[2 * i + 1] = (i % 2 ? 1.0f : -1.0f) * exp2f((float)i / 20.0f - 13.0f);
				}
				vn_round_f32(at, policy.storage, 2 * N);
				keep_start(&k, m.plan);
				bool    *want = want_all(m.plan, true);
				int32_t *ids = some_ids(N, N);
				vn_taps  taps = { .want = want, .sink = keep_sink(&k) };
				vn_gpu  *g = engine(&m, on(d, policy));
				for (int i = 0; i < N; i++)
					ids[i] = i;
				if (g && forward(g, ids, N, &taps) == VN_OK) {
					CU_ASSERT_EQUAL(wrong(&m, &k, y, policy, ids, 0, N), 0);
					CU_ASSERT_EQUAL(wrong(&m, &k, z, policy, ids, 0, N), 0);
				}
				vn_gpu_ops.destroy(g);
				free(ids);
				free(want);
				keep_stop(&k);
				model_stop(&m);
			}
}

/* The same numbers stored either way are the same product, to the bit; more of them than one
 * panel of the loader. */
static void a_matrix_stored_the_other_way_gives_the_same_bits(void)
{
	const struct {
		int T, M, N;
	} of[] = { { 1, 3, 5 }, { 17, 700, 513 }, { 1, 513, 700 }, { 3, 2, 300001 } };

	for (size_t i = 0; i < COUNT(of); i++)
		for (int d = 0; d < n_devices_; d++) {
			const int M = of[i].M, N = of[i].N, T = of[i].T;
			keep      k[2];
			int       y[2];
			for (int over = 0; over < 2; over++) {
				vn_builder *b = vn_plan_begin(0, 20, T);
				model       m = { 0 };
				const int   x = vn_plan_embed(b, vn_plan_weight(b, "x", 2, (int64_t[]) { 20, N }), VN_POINT_EMBED);
				const int   w = vn_plan_weight(b, "w", 2, over ? (int64_t[]) { N, M } : (int64_t[]) { M, N });
				y[over] = over ? vn_plan_conv1d(b, x, w, -1, 0, VN_POINT_LOGITS)
				               : vn_plan_linear(b, x, w, -1, 0, VN_POINT_LOGITS);
				CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &m.plan, NULL), VN_OK);
				model_start(&m, m.plan, VN_F16);
				float *at = (void *)(uintptr_t)m.weight[1].data;
				for (int r = 0; r < M; r++)
					for (int c = 0; c < N; c++)
						at[over ? c * M + r : r * N + c] = (float)((r * 7 + c * 13) % 64 - 32) / 64.0f;
				keep_start(&k[over], m.plan);
				bool          *want = want_all(m.plan, true);
				int32_t       *ids = some_ids(T, 20);
				vn_taps        taps = { .want = want, .sink = keep_sink(&k[over]) };
				vn_gpu_options o = on(d, F16);
				o.guard = true; /* and nothing of a weight is left unwritten */
				vn_gpu *g = engine(&m, o);
				if (g)
					forward(g, ids, T, &taps);
				vn_gpu_ops.destroy(g);
				free(ids);
				free(want);
				model_stop(&m);
			}
			CU_ASSERT_EQUAL(k[0].v[y[0]].n, (size_t)(T * M));
			CU_ASSERT_EQUAL_FATAL(k[1].v[y[1]].n, (size_t)(T * M));
			CU_ASSERT_EQUAL(memcmp(k[0].v[y[0]].x, k[1].v[y[1]].x, (size_t)(T * M) * sizeof(float)), 0);
			keep_stop(&k[0]);
			keep_stop(&k[1]);
		}
}

static void a_matrix_read_both_ways_is_refused_by_name(void)
{
	vn_builder *b = vn_plan_begin(0, 20, 4);
	model       m = { 0 };
	vn_gpu     *g = NULL;
	vn_error    e = { "" };
	const int   x = vn_plan_embed(b, vn_plan_weight(b, "x", 2, (int64_t[]) { 20, 8 }), VN_POINT_EMBED);
	const int   w = vn_plan_weight(b, "both", 2, (int64_t[]) { 8, 8 });

	vn_plan_linear(b, x, w, -1, 0, VN_POINT_UP_PROJ);
	vn_plan_conv1d(b, x, w, -1, 0, VN_POINT_GATE_PROJ);
	CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &m.plan, NULL), VN_OK);
	model_start(&m, m.plan, VN_F16);
	vn_gpu_options o = on(0, F16);
	CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &g, &e), VN_ERR_UNSUPPORTED);
	CU_ASSERT_PTR_NULL(g);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "weight both"));
	model_stop(&m);
}

/* The guard finds a node that was left out, whichever it is, and is silent about a whole run. */
static void the_guard_names_what_gpt2_leaves_unwritten(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model          m;
		vn_error       e = { "" };
		int32_t       *ids = some_ids(9, 67);
		vn_gpu_options o = on(d, F16);
		o.guard = true;
		model_start(&m, plan_of(GPT2 "\"tie_word_embeddings\":true}"), VN_F16);
		vn_gpu *g = engine(&m, o);
		for (int i = -1; g && i < m.plan->n_nodes; i++) {
			vn_gpu_ops.reset(g);
			g->break_skip = i;
			const vn_status st = vn_gpu_ops.forward(g, ids, 9, NULL, &e);
			CU_ASSERT_EQUAL(st, i < 0 ? VN_OK : VN_ERR_DEVICE);
			if (i >= 0) {
				CU_ASSERT_PTR_NOT_NULL(strstr(e.text, m.plan->value[m.plan->node[i].out[0]].name));
			}
		}
		vn_gpu_ops.destroy(g);
		free(ids);
		model_stop(&m);
	}
}

int main(void)
{
	CU_TestInfo tests[] = {
		{ "gpt2 is right for any number of tokens", gpt2_is_right_for_any_number_of_tokens },
		{ "the decoders are right", the_decoders_are_right },
		{ "a slice takes columns of every head", a_slice_takes_columns_of_every_head },
		{ "a head reads the token before and hides the first key",
		  a_head_reads_the_token_before_and_hides_the_first_key },
		{ "activations are right for any number", activations_are_right_for_any_number },
		{ "a matrix stored the other way gives the same bits", a_matrix_stored_the_other_way_gives_the_same_bits },
		{ "a matrix read both ways is refused by name", a_matrix_read_both_ways_is_refused_by_name },
		{ "the guard names what gpt2 leaves unwritten", the_guard_names_what_gpt2_leaves_unwritten },
		CU_TEST_INFO_NULL,
	};
	return run_gpu_suite("gpu families", tests);
}
