/* test_gpu_experts.c: libgpu/ops_experts.c: every operation of experts against double loops. */
#include "tests/support/test_gpu_truth.h"

#include "libgpu/engine.h"
#include "libgpu/load.h"

#define BLOCK \
	"\"vocab_size\":67,\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":2," \
	"\"max_position_embeddings\":512,"

#define DEEPSEEK \
	"{\"vocab_size\":67,\"num_hidden_layers\":2,\"max_position_embeddings\":512,\"intermediate_size\":36," \
	"\"kv_lora_rank\":12,\"qk_rope_head_dim\":8,\"first_k_dense_replace\":1,\"model_type\":\"deepseek_v"

/* Rows of eights and not, fewer experts than a tile is high and more than a token has, some that no
 * token chooses. */
static const char *const configs[] = {
	"{\"model_type\":\"mixtral\"," BLOCK "\"hidden_size\":24,\"intermediate_size\":37,\"head_dim\":6,"
	"\"num_local_experts\":3,\"num_experts_per_tok\":2}",
	"{\"model_type\":\"mixtral\"," BLOCK "\"hidden_size\":40,\"intermediate_size\":136,\"head_dim\":8,"
	"\"num_local_experts\":2,\"num_experts_per_tok\":1,\"hidden_act\":\"gelu\"}",
	"{\"model_type\":\"olmoe\"," BLOCK "\"hidden_size\":24,\"intermediate_size\":16,\"num_experts\":5,"
	"\"num_experts_per_tok\":5}",
	"{\"model_type\":\"qwen3_moe\"," BLOCK "\"hidden_size\":22,\"intermediate_size\":30,\"head_dim\":10,"
	"\"moe_intermediate_size\":13,\"num_experts\":200,\"num_experts_per_tok\":7,\"norm_topk_prob\":true,"
	"\"mlp_only_layers\":[0]}",
	DEEPSEEK "2\",\"hidden_size\":24,\"num_attention_heads\":3,\"q_lora_rank\":null,\"qk_nope_head_dim\":10,"
			 "\"v_head_dim\":14,\"n_routed_experts\":12,\"num_experts_per_tok\":4,\"moe_intermediate_size\":13,"
			 "\"topk_method\":\"group_limited_greedy\",\"n_group\":4,\"topk_group\":2,\"routed_scaling_factor\":4.0}",
	DEEPSEEK "3\",\"hidden_size\":40,\"num_attention_heads\":2,\"num_key_value_heads\":2,"
			 "\"q_lora_rank\":20,\"qk_nope_head_dim\":16,"
			 "\"v_head_dim\":8,\"n_routed_experts\":16,\"num_experts_per_tok\":4,\"moe_intermediate_size\":16,"
			 "\"n_group\":4,\"topk_group\":2,\"norm_topk_prob\":true,\"routed_scaling_factor\":2.5}",
	DEEPSEEK "3\",\"hidden_size\":24,\"num_attention_heads\":2,\"num_key_value_heads\":2,"
			 "\"q_lora_rank\":20,\"qk_nope_head_dim\":154,"
			 "\"v_head_dim\":200,\"n_routed_experts\":140,\"num_experts_per_tok\":7,\"moe_intermediate_size\":8,"
			 "\"n_group\":1,\"topk_group\":1,\"norm_topk_prob\":false,\"rope_interleave\":false}",
	"{\"model_type\":\"gpt_oss\"," BLOCK "\"hidden_size\":24,\"intermediate_size\":37,\"head_dim\":6,"
	"\"num_local_experts\":3,\"num_experts_per_tok\":2,\"sliding_window\":9}",
	"{\"model_type\":\"gpt_oss\"," BLOCK "\"hidden_size\":44,\"intermediate_size\":40,\"head_dim\":16,"
	"\"num_local_experts\":12,\"num_experts_per_tok\":4,\"sliding_window\":9}",
};

/* the first with latent attention, and the first with biases and limits */
enum { LATENT = 4, BIASED = 7 };

static void check(size_t config, vn_policy policy, int64_t past, int64_t tokens)
{
	vn_plan *p = plan_of(configs[config]);

	check_run(p, policy, past, tokens);
	vn_plan_destroy(p);
}

static void experts_are_right_for_any_number_of_tokens(void)
{
	static const int64_t tokens[] = { 1, 17, 65, 150 };

	for (size_t c = 0; c < LATENT; c++)
		for (size_t i = 0; i < COUNT(tokens); i++)
			check(c, (c + i) % 2 ? F16 : F32, 0, tokens[i]);
	/* so that cooperative matrices take tiles of every height */
	check(0, F16, 0, 150);
	check(2, F16, 0, 17);
}

static void latent_attention_is_right_and_its_routers(void)
{
	check(4, F32, 0, 17);
	check(5, F16, 0, 70);
	check(5, F16, 17, 1);
	check(6, F16, 3, 9);
}

/* In layer 1 the limit is low enough to be met often. */
static void biases_and_limits_are_right(void)
{
	const struct {
		int64_t   past, tokens;
		vn_policy policy;
	} runs[] = { { 0, 1, F32 },   { 0, 17, F16 },   { 0, 65, F32 }, { 0, 150, F16 },
		         { 0, 1, ACC16 }, { 0, 17, ACC16 }, { 21, 1, F16 }, { 17, 12, F32 } };
	for (size_t c = BIASED; c < COUNT(configs); c++)
		for (size_t i = 0; i < COUNT(runs); i++) {
			vn_plan *p = plan_of(configs[c]);
			p->node[p->value[vn_plan_find(p, "layer1.expert_out")].node].c.experts.limit = 0.8;
			check_run(p, runs[i].policy, runs[i].past, runs[i].tokens);
			vn_plan_destroy(p);
		}
}

static void experts_are_right_behind_earlier_tokens(void)
{
	for (size_t c = 0; c < LATENT; c++) {
		check(c, F16, 21, 1);
		check(c, F32, 17, 3);
	}
}

static void experts_are_right_with_half_sums(void)
{
	check(0, ACC16, 0, 1);
	check(0, ACC16, 0, 150);
	check(3, ACC16, 0, 17);
	check(5, ACC16, 0, 17);
}

static void the_matrices_of_a_node_may_be_in_several_blocks(void)
{
	const VkDeviceSize usual = vn_gpu_weights_block;

	vn_gpu_weights_block = 4096;
	for (int hide = 0; hide < 2; hide++) { /* memory that the host cannot write */
		vn_device_hide_memory = hide;
		check(1, F16, 0, 17);
		check(3, F32, 0, 17);
		check(3, F32, 0, 1);
	}
	vn_device_hide_memory = false;
	vn_gpu_weights_block = usual;
}

/* T tokens of E logits from a table, and the columns of its k largest. */
static void choose(const float *x, int T, int E, int k)
{
	for (int d = 0; d < n_devices_; d++)
		for (int half = 0; half < 2; half++) {
			const vn_policy policy = half ? F16 : F32;
			vn_builder     *b = vn_plan_begin(0, T, T);
			model           m = { 0 };
			keep            seen;
			int64_t         bad = 0;
			const int       in = vn_plan_embed(b, vn_plan_weight(b, "x", 2, (int64_t[]) { T, E }), VN_POINT_EMBED);
			const int       ids = vn_plan_top_k(b, in, -1, k, VN_POINT_ROUTER_IDS);
			CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &m.plan, NULL), VN_OK);
			model_start(&m, m.plan, policy.storage);
			memcpy((void *)(uintptr_t)m.weight[0].data, x, (size_t)(T * E) * sizeof *x);
			keep_start(&seen, m.plan);
			bool    *want = want_all(m.plan, true);
			int32_t *token = some_ids(T, T);
			for (int t = 0; t < T; t++)
				token[t] = t;
			vn_taps taps = { .want = want, .sink = keep_sink(&seen) };
			vn_gpu *g = engine(&m, on(d, policy));
			CU_ASSERT_TRUE_FATAL(g && forward(g, token, T, &taps) == VN_OK);
			for (int t = 0; t < T; t++)
				for (int s = 0; s < k; s++)
					bad += seen.v[ids].x[t * k + s] != (float)column_at(x + t * E, E, s);
			CU_ASSERT_EQUAL(bad, 0);
			vn_gpu_ops.destroy(g);
			free(token);
			free(want);
			keep_stop(&seen);
			model_stop(&m);
		}
}

static void equal_numbers_are_chosen_in_their_order(void)
{
	static const float of[] = { 0.0f, -0.0f, 1.0f, -1.0f, NAN, INFINITY, -INFINITY, 0x1p-24f, -0x1p-24f, 0x1p-14f };
	enum { T = 5, E = 300 };
	float x[T * E];

	for (int i = 0; i < T * E; i++)
		x[i] = of[(size_t)i * (size_t)(i + 7) % COUNT(of)];
	choose(x, T, E, 1);
	choose(x, T, E, 40);
	choose(x, T, E, E);
	for (int i = 0; i < T * E; i++)
		x[i] = 2.5f;
	choose(x, T, E, 9);
}

/* As after a fault that another engine computes. Ids of experts that do not exist, and NaN. */
static void a_pair_without_an_expert_adds_nothing(void)
{
	static const float none[] = { -1.0f, 3.0f, NAN, INFINITY, 1e9f };

	for (int d = 0; d < n_devices_; d++)
		for (int run = 0; run < 4; run++) {
			const int tokens = run % 2 ? 20 : 1;
			model     m = { 0 };
			keep      k;
			float     ids[40];
			int64_t   zeros = 0;
			vn_plan  *p = plan_of(configs[run / 2 ? BIASED : 0]);
			const int at = vn_plan_find(p, "layer1.router_ids"), out = vn_plan_find(p, "layer1.expert_out");
			const int node = p->value[at].node;
			model_start(&m, p, VN_F16);
			keep_start(&k, p);
			bool    *want = want_all(p, true);
			int32_t *token = some_ids(tokens, p->vocab);
			vn_taps  taps = { .want = want, .rows = VN_ROWS_ALL, .sink = keep_sink(&k) };
			vn_error err = { "" };
			vn_gpu  *g = engine(
				 &m, (vn_gpu_options) { .policy = F16, .device = devices_[d].index, .validate = true, .guard = true });
			CU_ASSERT_PTR_NOT_NULL_FATAL(g);
			for (int i = 0; i < 2 * tokens; i++)
				ids[i] = i % 2 ? none[i / 2 % (int)COUNT(none)] : (float)(i / 2 % 3);
			CU_ASSERT_EQUAL(vn_gpu_ops.begin(g, token, tokens, &taps, &err), VN_OK);
			CU_ASSERT_EQUAL(vn_gpu_ops.run(g, 0, node, &err), VN_OK);
			CU_ASSERT_EQUAL(vn_gpu_ops.run(g, node + 1, node + 1, &err), VN_OK);
			CU_ASSERT_EQUAL(vn_gpu_ops.write(g, at, ids, &err), VN_OK);
			CU_ASSERT_EQUAL(vn_gpu_ops.run(g, node + 1, p->n_nodes, &err), VN_OK);
			CU_ASSERT_EQUAL(vn_gpu_ops.end(g, true, &err), VN_OK);
			if (err.text[0])
				printf("\n  %s\n", err.text);
			k.v[at].n = (size_t)(2 * tokens); /* the engine did not make it */
			k.v[at].x = realloc(k.v[at].x, sizeof ids);
			memcpy(k.v[at].x, ids, sizeof ids);
			CU_ASSERT_EQUAL(wrong(&m, &k, out, F16, token, 0, tokens), 0);
			for (size_t i = 0; i < k.v[out].n; i++)
				zeros += k.v[out].x[i] == 0.0f;
			CU_ASSERT_TRUE(zeros >= 24 * tokens);
			vn_gpu_ops.destroy(g);
			free(token);
			free(want);
			keep_stop(&k);
			model_stop(&m);
		}
}

static void a_formula_of_a_fault_is_refused_by_name(void)
{
	for (int kind = 0; kind < 2; kind++) {
		model     m = { 0 };
		vn_error  e = { "" };
		vn_plan  *p = plan_of(configs[0]);
		const int v = vn_plan_find(p, kind ? "layer1.expert_out" : "layer1.router_weights");
		vn_node  *n = &p->node[p->value[v].node];
		if (kind)
			n->c.experts.act = VN_RELU;
		else
			n->x.route.form = VN_ROUTE_SIGMOID;
		model_start(&m, p, VN_F16);
		int32_t *ids = some_ids(5, p->vocab);
		vn_gpu  *g = engine(&m, on(0, F16));
		CU_ASSERT_PTR_NOT_NULL_FATAL(g);
		CU_ASSERT_EQUAL(vn_gpu_ops.forward(g, ids, 5, NULL, &e), VN_ERR_UNSUPPORTED);
		CU_ASSERT_EQUAL(strncmp(e.text, p->value[v].name, strlen(p->value[v].name)), 0);
		vn_gpu_ops.destroy(g);
		free(ids);
		model_stop(&m);
	}
}

static void the_guard_names_what_experts_leave_unwritten(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model    m = { 0 };
		vn_error e = { "" };
		vn_plan *p = plan_of(configs[3]);
		model_start(&m, p, VN_F16);
		int32_t *ids = some_ids(34, p->vocab);
		vn_gpu  *g = engine(
			 &m, (vn_gpu_options) { .policy = F16, .device = devices_[d].index, .validate = true, .guard = true });
		CU_ASSERT_TRUE_FATAL(g && forward(g, ids, 33, NULL) == VN_OK && forward(g, ids + 33, 1, NULL) == VN_OK);
		for (int i = 0; i < p->n_nodes; i++) {
			const vn_op op = p->node[i].op;
			if (op != VN_OP_TOP_K && op != VN_OP_ROUTE && op != VN_OP_EXPERTS && op != VN_OP_COMBINE)
				continue;
			vn_gpu_ops.reset(g);
			g->break_skip = i;
			CU_ASSERT_EQUAL(vn_gpu_ops.forward(g, ids, 9, NULL, &e), VN_ERR_DEVICE);
			CU_ASSERT_PTR_NOT_NULL(strstr(e.text, p->value[p->node[i].out[0]].name));
		}
		vn_gpu_ops.destroy(g);
		free(ids);
		model_stop(&m);
	}
}

int main(void)
{
	CU_TestInfo tests[] = {
		{ "experts are right for any number of tokens", experts_are_right_for_any_number_of_tokens },
		{ "latent attention is right, and its routers", latent_attention_is_right_and_its_routers },
		{ "biases and limits are right", biases_and_limits_are_right },
		{ "experts are right behind earlier tokens", experts_are_right_behind_earlier_tokens },
		{ "experts are right with half sums", experts_are_right_with_half_sums },
		{ "the matrices of a node may be in several blocks", the_matrices_of_a_node_may_be_in_several_blocks },
		{ "equal numbers are chosen in their order", equal_numbers_are_chosen_in_their_order },
		{ "a pair without an expert adds nothing", a_pair_without_an_expert_adds_nothing },
		{ "a formula of a fault is refused by name", a_formula_of_a_fault_is_refused_by_name },
		{ "the guard names what experts leave unwritten", the_guard_names_what_experts_leave_unwritten },
		CU_TEST_INFO_NULL,
	};
	return run_gpu_suite("gpu experts", tests);
}
