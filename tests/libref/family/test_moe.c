/* test_moe.c: the pages of the families with experts, and what files may hold of them:
 * libref/family/experts.c. */
#include "tests/support/suite.h"
#include "tests/support/test_config_help.h"
#include "tests/support/toy_model.h"

#include "libref/model/model.h"

static void each_family_routes_as_its_class(void)
{
	const struct {
		const vn_family *f;
		int              experts, per_token, F, normalised;
		bool             wide;
	} row[] = { { &vn_family_mixtral, 8, 2, 24, 1, true },
		        { &vn_family_olmoe, 64, 8, 24, 0, false },
		        { &vn_family_qwen3_moe, 128, 8, 768, 0, false } };

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		page = row[i].f->plan;
		vn_plan *p = accepted("{}");
		CU_ASSERT_EQUAL(node_of(p, "layer0.router_ids")->c.top_k.columns, row[i].experts);
		CU_ASSERT_EQUAL(node_of(p, "layer3.router_ids")->c.top_k.k, row[i].per_token);
		CU_ASSERT_EQUAL(node_of(p, "layer3.router_weights")->c.route.normalised, row[i].normalised);
		CU_ASSERT_EQUAL(vn_value_wide(p, vn_plan_find(p, "layer3.router_weights")), row[i].wide);
		CU_ASSERT(vn_value_wide(p, vn_plan_find(p, "layer3.router_ids")));
		const vn_node *n = node_of(p, "layer3.expert_out");
		CU_ASSERT_EQUAL(p->weight[n->w[VN_EXPERT_GATE]].shape.dim[0], row[i].F);
		CU_ASSERT_STRING_EQUAL(p->weight[n->w[VN_EXPERT_UP] + 1].name, "model.layers.3.mlp.experts.1.up_proj.weight");
		CU_ASSERT_EQUAL(vn_plan_find(p, "layer3.mlp_act"), -1);
		vn_plan_destroy(p);
	}
	page = NULL;
}

static void experts_are_read_under_both_names_of_their_number(void)
{
	page = vn_family_qwen3_moe.plan;
	for (int i = 0; i < 2; i++) {
		vn_plan *p = accepted(i ? "{\"num_experts\":6,\"num_experts_per_tok\":3,\"norm_topk_prob\":true}"
		                        : "{\"num_local_experts\":6,\"num_experts_per_tok\":3,\"norm_topk_prob\":true}");
		CU_ASSERT_EQUAL(node_of(p, "layer0.router_ids")->c.top_k.columns, 6);
		CU_ASSERT_EQUAL(node_of(p, "layer0.router_weights")->c.route.normalised, 1);
		vn_plan_destroy(p);
	}
	refused("{\"num_experts\":6,\"num_local_experts\":5}", VN_ERR_FORMAT, "num_local_experts");
	refused("{\"num_experts\":6}", VN_ERR_FORMAT, "num_experts_per_tok is 8, but there are 6 experts");
	refused("{\"num_experts\":0}", VN_ERR_FORMAT, "num_experts");
	refused("{\"num_experts\":32769}", VN_ERR_UNSUPPORTED, "32769 experts in each of 4 layers");
	page = NULL;
}

static void some_layers_of_qwen3_moe_are_dense(void)
{
	const struct {
		const char *fields, *dense;
	} row[] = { { "{}", "0000" },
		        { "{\"mlp_only_layers\":[1,3]}", "0101" },
		        { "{\"decoder_sparse_step\":2}", "1010" },
		        { "{\"decoder_sparse_step\":2,\"mlp_only_layers\":[1]}", "1110" },
		        { "{\"mlp_only_layers\":null}", "0000" } };

	page = vn_family_qwen3_moe.plan;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		vn_plan *p = accepted(row[i].fields);
		char     have[5] = "", name[64];
		for (int l = 0; l < 4; l++) {
			snprintf(name, sizeof name, "layer%d.down_proj", l);
			have[l] = vn_plan_find(p, name) >= 0 ? '1' : '0';
		}
		CU_ASSERT_STRING_EQUAL(have, row[i].dense);
		vn_plan_destroy(p);
	}
	refused("{\"mlp_only_layers\":[\"1\"]}", VN_ERR_FORMAT, "mlp_only_layers");
	refused("{\"mlp_only_layers\":2}", VN_ERR_FORMAT, "mlp_only_layers");
	windows("{\"use_sliding_window\":true,\"sliding_window\":8,\"max_window_layers\":2}", 8, 8, 8, 8);
	page = NULL;
}

static void gpt_oss_has_sinks_biases_and_limits(void)
{
	page = vn_family_gpt_oss.plan;
	windows("{\"head_dim\":4}", 128, 0, 128, 0);
	vn_plan       *p = accepted("{\"head_dim\":4}");
	const vn_node *n = node_of(p, "layer1.expert_out"), *a = node_of(p, "layer1.attn_context");
	CU_ASSERT_EQUAL(n->c.experts.act, VN_QUICK_GELU);
	CU_ASSERT_EQUAL(n->c.experts.limit, 7.0);
	CU_ASSERT_EQUAL(n->c.experts.shift, 1.0);
	CU_ASSERT_STRING_EQUAL(p->weight[n->w[VN_EXPERT_KINDS + VN_EXPERT_DOWN] + 2].name,
	                       "model.layers.1.mlp.experts.2.down_proj.bias");
	CU_ASSERT_STRING_EQUAL(p->weight[a->w[VN_ATTN_SINKS]].name, "model.layers.1.self_attn.sinks");
	CU_ASSERT_STRING_EQUAL(p->weight[node_of(p, "layer1.router_logits")->w[1]].name, "model.layers.1.mlp.router.bias");
	CU_ASSERT_EQUAL(node_of(p, "layer1.q_rope")->c.rope.rope.type, VN_ROPE_YARN); /* without any setting */
	CU_ASSERT_EQUAL(node_of(p, "layer1.q_rope")->c.rope.rope.factor, 32.0);
	CU_ASSERT_FALSE(node_of(p, "layer1.q_rope")->c.rope.rope.truncate);
	CU_ASSERT(node_of(p, "layer1.q_proj")->w[1] >= 0);
	vn_plan_destroy(p);
	p = accepted("{\"head_dim\":4,\"attention_bias\":false,\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":2}}");
	CU_ASSERT_EQUAL(node_of(p, "layer1.q_proj")->w[1], -1);
	CU_ASSERT_EQUAL(node_of(p, "layer1.q_rope")->c.rope.rope.type, VN_ROPE_LINEAR);
	vn_plan_destroy(p);
	refused("{\"swiglu_limit\":6}", VN_ERR_UNSUPPORTED, "swiglu_limit 6");
	refused("{\"hidden_act\":\"gelu\"}", VN_ERR_UNSUPPORTED, "hidden_act");
	json_t  *o = json("{\"quantization_config\":{\"quant_method\":\"mxfp4\"}}");
	vn_error e = { "" };
	CU_ASSERT_EQUAL(vn_config_refuse("c.json", &vn_family_gpt_oss, o, &e), VN_ERR_UNSUPPORTED);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "Mxfp4Config(dequantize=True)"));
	json_decref(o);
	page = NULL;
}

static void olmoe_norms_all_heads_together(void)
{
	page = vn_family_olmoe.plan;
	vn_plan *p = accepted("{}");
	CU_ASSERT_EQUAL(p->weight[node_of(p, "layer0.q_norm")->w[0]].shape.dim[0], 16);
	CU_ASSERT_EQUAL(p->weight[node_of(p, "layer0.k_norm")->w[0]].shape.dim[0], 8);
	CU_ASSERT_EQUAL(width(p, "layer0.q_norm", 2), 4);
	vn_plan_destroy(p);
	refused("{\"head_dim\":8}", VN_ERR_UNSUPPORTED, "head_dim 8");
	page = NULL;
}

/* ---- files --------------------------------------------------------------------------------- */

enum { EXPERTS = 3, D = 8, F = 6 };
#define CONFIG \
	"{\"model_type\":\"mixtral\",\"vocab_size\":10,\"hidden_size\":8,\"intermediate_size\":6,\"num_hidden_layers\":1," \
	"\"num_attention_heads\":2,\"num_key_value_heads\":1,\"num_local_experts\":3,\"tie_word_embeddings\":true}"

static char dir[256];

/* Everything but the experts. */
static void add_rest(toy_model *m, const char *router)
{
	const struct {
		const char *name;
		int         rows, columns;
	} row[] = { { "model.embed_tokens.weight", 10, D },
		        { "model.norm.weight", D, 0 },
		        { "model.layers.0.input_layernorm.weight", D, 0 },
		        { "model.layers.0.post_attention_layernorm.weight", D, 0 },
		        { "model.layers.0.self_attn.q_proj.weight", D, D },
		        { "model.layers.0.self_attn.k_proj.weight", D / 2, D },
		        { "model.layers.0.self_attn.v_proj.weight", D / 2, D },
		        { "model.layers.0.self_attn.o_proj.weight", D, D },
		        { router, EXPERTS, D } };

	m->n = 0;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		toy_add(m, row[i].name, VN_F32, row[i].rows, row[i].columns);
}

/* A tensor (experts, rows, columns). */
static toy_tensor *add_fused(toy_model *m, const char *name, int rows, int columns)
{
	toy_tensor *t = toy_add(m, name, VN_F32, EXPERTS * rows, columns);

	t->rank = 3;
	t->dim[0] = EXPERTS, t->dim[1] = rows, t->dim[2] = columns;
	return t;
}

static vn_model *open_as(toy_model *m, vn_status want, const char *word)
{
	vn_model *model = NULL;
	vn_error  e = { "" };

	toy_save(m, dir, CONFIG);
	CU_ASSERT_EQUAL(vn_model_open(dir, &model, &e), want);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, word));
	if (!strstr(e.text, word))
		fprintf(stderr, "wanted '%s', have '%s'\n", word, e.text);
	return model;
}

/* said: its name in recordings */
static void has(const vn_model *model, const char *name, const char *said, const void *data, size_t bytes)
{
	const vn_plan *p = vn_model_plan(model);
	int            i = 0;

	while (i < p->n_weights && strcmp(p->weight[i].name, name) != 0)
		i++;
	CU_ASSERT_FATAL(i < p->n_weights);
	CU_ASSERT_EQUAL(memcmp(vn_model_weights(model)[i].data, data, bytes), 0);
	CU_ASSERT_STRING_EQUAL(vn_model_weight_name(model, i), said);
}

static void the_experts_of_a_layer_may_be_in_one_tensor(void)
{
	const size_t      one = sizeof(float) * F * D;
	toy_model         m;
	const toy_tensor *gate_up, *down;

	add_rest(&m, "model.layers.0.mlp.gate.weight");
	gate_up = add_fused(&m, "model.layers.0.mlp.experts.gate_up_proj", 2 * F, D);
	down = add_fused(&m, "model.layers.0.mlp.experts.down_proj", D, F);
	vn_model *model = open_as(&m, VN_OK, "");
	has(model, "model.layers.0.mlp.experts.0.gate_proj.weight", "model.layers.0.mlp.experts.0.gate_proj.weight",
	    gate_up->data, one);
	has(model, "model.layers.0.mlp.experts.2.gate_proj.weight", "model.layers.0.mlp.experts.2.gate_proj.weight",
	    gate_up->data + 4 * one, one);
	has(model, "model.layers.0.mlp.experts.2.up_proj.weight", "model.layers.0.mlp.experts.2.up_proj.weight",
	    gate_up->data + 5 * one, one);
	has(model, "model.layers.0.mlp.experts.1.down_proj.weight", "model.layers.0.mlp.experts.1.down_proj.weight",
	    down->data + one, one);
	vn_model_close(model);
	toy_free(&m);
}

/* Number (n, 2 f + part) of an expert's tensor is number (f, n) of gate or up; biases alike. */
static void columns_of_gpt_oss_in_turn_are_gate_and_up(void)
{
	static const char config[] =
		"{\"model_type\":\"gpt_oss\",\"vocab_size\":10,\"hidden_size\":8,\"intermediate_size\":6,"
		"\"num_hidden_layers\":1,\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":4,"
		"\"attention_bias\":false,\"num_local_experts\":3,\"num_experts_per_tok\":2,\"tie_word_embeddings\":true}";
	toy_model         m;
	vn_model         *model = NULL;
	vn_error          e = { "" };
	float             gate[F * D], up[F];
	const toy_tensor *both, *bias;

	add_rest(&m, "model.layers.0.mlp.router.weight");
	toy_add(&m, "model.layers.0.mlp.router.bias", VN_F32, EXPERTS, 0);
	toy_add(&m, "model.layers.0.self_attn.sinks", VN_F32, 2, 0);
	both = add_fused(&m, "model.layers.0.mlp.experts.gate_up_proj", D, 2 * F);
	bias = toy_add(&m, "model.layers.0.mlp.experts.gate_up_proj_bias", VN_F32, EXPERTS, 2 * F);
	add_fused(&m, "model.layers.0.mlp.experts.down_proj", F, D);
	toy_add(&m, "model.layers.0.mlp.experts.down_proj_bias", VN_F32, EXPERTS, D);
	toy_save(&m, dir, config);
	CU_ASSERT_EQUAL_FATAL(vn_model_open(dir, &model, &e), VN_OK);
	for (int f = 0; f < F; f++) {
		for (int d = 0; d < D; d++)
			gate[f * D + d] = ((const float *)(const void *)both->data)[2 * D * 2 * F + d * 2 * F + 2 * f];
		up[f] = ((const float *)(const void *)bias->data)[1 * 2 * F + 2 * f + 1];
	}
	has(model, "model.layers.0.mlp.experts.2.gate_proj.weight", "model.layers.0.mlp.experts.2.gate_proj.weight", gate,
	    sizeof gate);
	has(model, "model.layers.0.mlp.experts.1.up_proj.bias", "model.layers.0.mlp.experts.1.up_proj.bias", up, sizeof up);
	vn_model_close(model);
	toy_free(&m);
}

static void or_in_a_tensor_each_under_the_names_of_mixtral(void)
{
	static const char *const kind[] = { "w1", "w3", "w2" }, *const ours[] = { "gate_proj", "up_proj", "down_proj" };
	toy_model m;
	char      name[128];

	add_rest(&m, "model.layers.0.block_sparse_moe.gate.weight");
	for (int e = 0; e < EXPERTS; e++)
		for (int k = 0; k < 3; k++) {
			snprintf(name, sizeof name, "model.layers.0.block_sparse_moe.experts.%d.%s.weight", e, kind[k]);
			toy_add(&m, name, VN_F32, k < 2 ? F : D, k < 2 ? D : F);
		}
	vn_model *model = open_as(&m, VN_OK, "");
	for (int e = 0; e < EXPERTS; e++)
		for (int k = 0; k < 3; k++) {
			snprintf(name, sizeof name, "model.layers.0.mlp.experts.%d.%s.weight", e, ours[k]);
			const toy_tensor *t = &m.tensor[m.n - 3 * EXPERTS + 3 * e + k];
			has(model, name, t->name, t->data, sizeof(float) * F * D);
		}
	vn_model_close(model);
	toy_free(&m);
}

static void a_tensor_of_too_few_experts_is_refused(void)
{
	toy_model m;

	add_rest(&m, "model.layers.0.mlp.gate.weight");
	toy_tensor *gate_up = add_fused(&m, "model.layers.0.mlp.experts.gate_up_proj", 2 * F, D);
	add_fused(&m, "model.layers.0.mlp.experts.down_proj", D, F);
	gate_up->dim[0] = 2, gate_up->dim[1] = 3 * F; /* as many numbers */
	open_as(&m, VN_ERR_SHAPE, "model.layers.0.mlp.experts.gate_up_proj: shape");
	gate_up->dim[0] = EXPERTS, gate_up->dim[1] = 2 * F * D, gate_up->dim[2] = 1;
	open_as(&m, VN_ERR_SHAPE, "(48, 1) of an expert, the config needs (6, 8)");
	gate_up->dim[1] = 2 * F, gate_up->dim[2] = D;
	toy_add(&m, "model.layers.0.mlp.experts.1.up_proj.bias", VN_F32, F, 0);
	open_as(&m, VN_ERR_FORMAT, "a mixtral model does not use this tensor");
	toy_free(&m);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(each_family_routes_as_its_class),
		TEST(experts_are_read_under_both_names_of_their_number),
		TEST(some_layers_of_qwen3_moe_are_dense),
		TEST(gpt_oss_has_sinks_biases_and_limits),
		TEST(columns_of_gpt_oss_in_turn_are_gate_and_up),
		TEST(olmoe_norms_all_heads_together),
		TEST(the_experts_of_a_layer_may_be_in_one_tensor),
		TEST(or_in_a_tensor_each_under_the_names_of_mixtral),
		TEST(a_tensor_of_too_few_experts_is_refused),
		CU_TEST_INFO_NULL,
	};

	toy_directory(dir);
	const int failed = run_suite("moe", tests);
	toy_remove(dir);
	return failed;
}
