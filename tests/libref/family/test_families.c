/* test_families.c: the pages of the families other than Qwen2: class defaults, options of the
 * config, refusals. */
#include "tests/support/suite.h"
#include "tests/support/test_config_help.h"

/* ---- qwen3, llama, mistral: models.md 2.5 and 2.6 ------------------------------------------- */

/* A config of one layer, with the class's defaults for all else. */
static void defaults(vn_status (*of)(const char *, const json_t *, vn_plan **, vn_error *), int V, int F, int H, int G,
                     int K, int context, int window)
{
	json_t  *o = json("{\"num_hidden_layers\":1}");
	vn_plan *p;
	vn_error e;

	CU_ASSERT_EQUAL_FATAL(of("c.json", o, &p, &e), VN_OK);
	CU_ASSERT_EQUAL(p->vocab, V);
	CU_ASSERT_EQUAL(p->context, context);
	CU_ASSERT_EQUAL(width(p, "embed", 1), 4096);
	CU_ASSERT_EQUAL(width(p, "layer0.gate_proj", 1), F);
	CU_ASSERT_EQUAL(width(p, "layer0.q_rope", 1), H);
	CU_ASSERT_EQUAL(width(p, "layer0.k_rope", 1), G);
	CU_ASSERT_EQUAL(width(p, "layer0.q_rope", 2), K);
	CU_ASSERT_EQUAL(node_of(p, "layer0.attn_norm")->c.norm.eps, 1e-6);
	CU_ASSERT_EQUAL(node_of(p, "layer0.q_rope")->c.rope.rope.theta, 10000.0);
	CU_ASSERT_EQUAL(node_of(p, "layer0.attn_context")->c.attention.window, window);
	CU_ASSERT_EQUAL(node_of(p, "layer0.attn_context")->c.attention.scale, 1.0 / sqrt(K));
	CU_ASSERT_STRING_EQUAL(p->weight[p->n_weights - 1].name, "lm_head.weight"); /* untied */
	vn_plan_destroy(p);
	json_object_del(o, "num_hidden_layers");
	CU_ASSERT_EQUAL_FATAL(of("c.json", o, &p, &e), VN_OK);
	CU_ASSERT_EQUAL(p->layers, 32);
	vn_plan_destroy(p);
	json_decref(o);
}

static void every_family_has_the_defaults_of_its_class(void)
{
	defaults(vn_family_qwen2.plan, 151936, 22016, 32, 32, 128, 32768, 0);
	defaults(vn_family_qwen3.plan, 151936, 22016, 32, 32, 128, 32768, 0);
	defaults(vn_family_llama.plan, 32000, 11008, 32, 32, 128, 2048, 0);
	defaults(vn_family_mistral.plan, 32000, 14336, 32, 8, 128, 131072, 4096);
}

static bool has_weight(const vn_plan *p, const char *name)
{
	for (int w = 0; w < p->n_weights; w++)
		if (strcmp(p->weight[w].name, name) == 0)
			return true;
	return false;
}

/* "1" or "0" for a bias of q, k, v, o, gate, up, down in the last layer,
 * and for a weight of q_norm. */
static void optional_weights(const char *fields, const char *want)
{
	static const char *const name[] = { "self_attn.q_proj.bias", "self_attn.k_proj.bias",  "self_attn.v_proj.bias",
		                                "self_attn.o_proj.bias", "mlp.gate_proj.bias",     "mlp.up_proj.bias",
		                                "mlp.down_proj.bias",    "self_attn.q_norm.weight" };
	vn_plan                 *p = accepted(fields);
	char                     full[VN_NAME_MAX], have[9] = "";

	for (int i = 0; i < 8; i++) {
		snprintf(full, sizeof full, "model.layers.3.%s", name[i]);
		have[i] = has_weight(p, full) ? '1' : '0';
	}
	CU_ASSERT_STRING_EQUAL(have, want);
	vn_plan_destroy(p);
}

static void biases_are_where_the_family_and_the_config_put_them(void)
{
	page = vn_family_qwen2.plan;
	optional_weights("{\"attention_bias\":false}", "11100000");
	page = vn_family_qwen3.plan;
	optional_weights("{}", "00000001");
	optional_weights("{\"attention_bias\":true}", "11110001");
	page = vn_family_llama.plan;
	optional_weights("{}", "00000000");
	optional_weights("{\"attention_bias\":true}", "11110000");
	optional_weights("{\"mlp_bias\":true}", "00001110");
	page = vn_family_mistral.plan;
	optional_weights("{\"attention_bias\":true,\"mlp_bias\":true}", "00000000");
	page = vn_family_qwen2.plan;
}

static void qwen3_has_head_norms_before_rope_and_a_head_width_of_its_own(void)
{
	page = vn_family_qwen3.plan;
	vn_plan *p = accepted("{}");
	CU_ASSERT_EQUAL(width(p, "layer0.q_norm", 2), 128); /* not 16 / 4 */
	CU_ASSERT_EQUAL(node_of(p, "layer0.q_rope")->in[0], vn_plan_find(p, "layer0.q_norm"));
	CU_ASSERT_EQUAL(node_of(p, "layer0.k_rope")->in[0], vn_plan_find(p, "layer0.k_norm"));
	vn_plan_destroy(p);
	windows("{\"use_sliding_window\":true,\"sliding_window\":8,\"max_window_layers\":2}", 0, 0, 8, 8);
	windows("{\"sliding_window\":8,\"max_window_layers\":2}", 0, 0, 0, 0);
	page = vn_family_qwen2.plan;
}

static void a_mistral_window_is_4096_unless_the_config_says_otherwise(void)
{
	page = vn_family_mistral.plan;
	windows("{}", 4096, 4096, 4096, 4096);
	windows("{\"sliding_window\":null}", 0, 0, 0, 0);
	windows("{\"sliding_window\":8,\"use_sliding_window\":false}", 8, 8, 8, 8);
	windows("{\"sliding_window\":8,\"layer_types\":[\"sliding_attention\",\"sliding_attention\",\"sliding_attention\","
	        "\"sliding_attention\"]}",
	        8, 8, 8, 8);
	refused("{\"sliding_window\":8,\"layer_types\":[\"sliding_attention\",\"full_attention\",\"full_attention\","
	        "\"full_attention\"]}",
	        VN_ERR_UNSUPPORTED, "layer_types[1]: expected the same window");
	refused("{\"sliding_window\":0}", VN_ERR_FORMAT, "sliding_window");
	page = vn_family_qwen2.plan;
}

static void a_llama_has_no_window(void)
{
	page = vn_family_llama.plan;
	windows("{\"sliding_window\":8,\"use_sliding_window\":true,\"max_window_layers\":0}", 0, 0, 0, 0);
	refused("{\"sliding_window\":8,\"layer_types\":[\"sliding_attention\",\"full_attention\",\"full_attention\","
	        "\"full_attention\"]}",
	        VN_ERR_UNSUPPORTED, "layer_types[0] is 'sliding_attention'");
	vn_plan *p = accepted("{\"num_key_value_heads\":\"(absent)\"}");
	CU_ASSERT_EQUAL(width(p, "layer0.k_proj", 1), 4); /* as many as heads */
	vn_plan_destroy(p);
	page = vn_family_qwen2.plan;
}

/* ---- gpt2: models.md 2.3 ------------------------------------------------------------------- */

/* the base without the names of newer families */
#define OWN \
	"\"hidden_size\":\"(absent)\",\"num_hidden_layers\":\"(absent)\",\"num_attention_heads\":\"(absent)\"," \
	"\"max_position_embeddings\":\"(absent)\","
#define GPT2 OWN "\"n_embd\":16,\"n_layer\":3,\"n_head\":4,\"n_positions\":64"

static void gpt2_has_the_defaults_of_its_class(void)
{
	page = vn_family_gpt2.plan;
	vn_plan *p = accepted(
		"{\"vocab_size\":\"(absent)\",\"hidden_size\":\"(absent)\",\"num_hidden_layers\":\"(absent)\","
		"\"num_attention_heads\":\"(absent)\",\"max_position_embeddings\":\"(absent)\"}");
	CU_ASSERT_EQUAL(p->vocab, 50257);
	CU_ASSERT_EQUAL(p->context, 1024);
	CU_ASSERT_EQUAL(p->layers, 12);
	CU_ASSERT_EQUAL(width(p, "embed", 1), 768);
	CU_ASSERT_EQUAL(width(p, "layer0.c_attn", 1), 3 * 768);
	CU_ASSERT_EQUAL(width(p, "layer0.q_proj", 1), 12);
	CU_ASSERT_EQUAL(width(p, "layer0.v_proj", 2), 64);
	CU_ASSERT_EQUAL(width(p, "layer0.up_proj", 1), 3072);
	CU_ASSERT_EQUAL(node_of(p, "layer0.attn_norm")->c.norm.eps, 1e-5);
	CU_ASSERT_EQUAL(node_of(p, "layer0.mlp_act")->c.act.act, VN_GELU_TANH);
	CU_ASSERT_EQUAL(node_of(p, "layer11.attn_context")->c.attention.scale, 0.125);
	CU_ASSERT_EQUAL(node_of(p, "layer0.attn_context")->c.attention.window, 0);
	CU_ASSERT_EQUAL(node_of(p, "layer0.c_attn")->c.linear.transposed, 1);
	CU_ASSERT_EQUAL(node_of(p, "logits")->c.linear.transposed, 0);
	CU_ASSERT_EQUAL(node_of(p, "logits")->w[0], 0); /* tied */
	vn_plan_destroy(p);
	page = vn_family_qwen2.plan;
}

static void gpt2_reads_its_own_names_or_those_of_newer_families(void)
{
	page = vn_family_gpt2.plan;
	/* the base has hidden_size 16, 4 layers, 4 heads, 64 positions */
	vn_plan *p = accepted("{}");
	CU_ASSERT_EQUAL(p->layers, 4);
	CU_ASSERT_EQUAL(p->context, 64);
	CU_ASSERT_EQUAL(width(p, "layer0.q_proj", 1), 4);
	CU_ASSERT_EQUAL(width(p, "layer0.up_proj", 1), 64);
	vn_plan_destroy(p);
	p = accepted(
		"{" OWN
		"\"n_embd\":40,\"n_layer\":2,\"n_head\":5,\"n_positions\":32,\"n_inner\":50,\"layer_norm_epsilon\":1e-3,"
		"\"activation_function\":\"gelu\",\"tie_word_embeddings\":false}");
	CU_ASSERT_EQUAL(p->layers, 2);
	CU_ASSERT_EQUAL(p->context, 32);
	CU_ASSERT_EQUAL(width(p, "layer0.q_proj", 1), 5);
	CU_ASSERT_EQUAL(width(p, "layer0.q_proj", 2), 8);
	CU_ASSERT_EQUAL(width(p, "layer0.up_proj", 1), 50);
	CU_ASSERT_EQUAL(node_of(p, "final_norm")->c.norm.eps, 1e-3);
	CU_ASSERT_EQUAL(node_of(p, "layer0.mlp_act")->c.act.act, VN_GELU);
	CU_ASSERT_TRUE(has_weight(p, "lm_head.weight"));
	vn_plan_destroy(p);
	vn_plan_destroy(accepted("{\"n_embd\":16,\"n_layer\":4,\"n_head\":4,\"n_positions\":64}")); /* both, and the same */
	refused("{\"n_embd\":32}", VN_ERR_FORMAT, "n_embd is 32, but hidden_size is 16");
	refused("{\"n_layer\":2}", VN_ERR_FORMAT, "n_layer is 2, but num_hidden_layers is 4");
	refused("{\"n_head\":2}", VN_ERR_FORMAT, "n_head is 2, but num_attention_heads is 4");
	refused("{\"n_positions\":32}", VN_ERR_FORMAT, "n_positions is 32, but max_position_embeddings is 64");
	page = vn_family_qwen2.plan;
}

static double scale_of(const char *fields, const char *name)
{
	vn_plan     *p = accepted(fields);
	const double scale = node_of(p, name)->c.attention.scale;

	vn_plan_destroy(p);
	return scale;
}

static void gpt2_scales_scores_as_its_config_says(void)
{
	page = vn_family_gpt2.plan;
	CU_ASSERT_EQUAL(scale_of("{" GPT2 "}", "layer2.attn_context"), 0.5);
	CU_ASSERT_EQUAL(scale_of("{" GPT2 ",\"scale_attn_weights\":false}", "layer2.attn_context"), 1.0);
	CU_ASSERT_EQUAL(scale_of("{" GPT2 ",\"scale_attn_by_inverse_layer_idx\":true}", "layer0.attn_context"), 0.5);
	CU_ASSERT_EQUAL(scale_of("{" GPT2 ",\"scale_attn_by_inverse_layer_idx\":true}", "layer2.attn_context"), 0.5 / 3);
	CU_ASSERT_EQUAL(scale_of("{" GPT2 ",\"reorder_and_upcast_attn\":true}", "layer0.attn_context"),
	                0.5); /* what is done anyway */
	refused("{\"add_cross_attention\":true}", VN_ERR_UNSUPPORTED, "add_cross_attention");
	refused("{\"num_attention_heads\":3}", VN_ERR_FORMAT, "n_embd 16 is not a multiple of 3 heads");
	refused("{\"activation_function\":\"relu\"}", VN_ERR_UNSUPPORTED, "activation_function 'relu'");
	refused("{\"n_layer\":0}", VN_ERR_FORMAT, "n_layer");
	refused("{\"layer_norm_epsilon\":\"1e-5\"}", VN_ERR_FORMAT, "layer_norm_epsilon");
	refused("{\"scale_attn_weights\":1}", VN_ERR_FORMAT, "scale_attn_weights");
	page = vn_family_qwen2.plan;
}

static void gemma2_norms_on_both_sides_scales_its_embedding_and_caps(void)
{
	page = vn_family_gemma2.plan;
	vn_plan *p = accepted("{\"head_dim\":4,\"query_pre_attn_scalar\":64}");

	CU_ASSERT_EQUAL(node_of(p, "embed")->op, VN_OP_SCALE);
	CU_ASSERT_EQUAL(node_of(p, "embed")->c.scale.scale, 4.0); /* the root of 16 */
	CU_ASSERT_EQUAL(node_of(p, "embed")->c.scale.cap, 0.0);
	CU_ASSERT_EQUAL(node_of(p, "layer3.attn_context")->c.attention.scale, 0.125);
	CU_ASSERT_EQUAL(node_of(p, "layer3.attn_context")->c.attention.cap, 50.0);
	CU_ASSERT_EQUAL(node_of(p, "logits")->c.scale.cap, 30.0);
	CU_ASSERT_EQUAL(node_of(p, "layer3.attn_norm")->c.norm.offset, 1.0);
	CU_ASSERT_EQUAL(node_of(p, "layer3.mlp_act")->c.act.act, VN_GELU_TANH);
	CU_ASSERT_STRING_EQUAL(p->value[node_of(p, "layer3.attn_residual")->in[1]].name, "layer3.attn_post_norm");
	CU_ASSERT_STRING_EQUAL(p->value[node_of(p, "layer3.output")->in[1]].name, "layer3.mlp_post_norm");
	vn_plan_destroy(p);
	windows("{\"head_dim\":4}", 4096, 0, 4096, 0);
	windows("{\"head_dim\":4,\"sliding_window\":8}", 8, 0, 8, 0);
	windows("{\"head_dim\":4,\"sliding_window\":null}", 0, 0, 0, 0);
	windows("{\"head_dim\":4,\"sliding_window\":8,\"layer_types\":[\"full_attention\",\"full_attention\","
	        "\"sliding_attention\",\"full_attention\"]}",
	        0, 0, 8, 0);
	p = accepted("{\"head_dim\":4,\"attn_logit_softcapping\":null,\"final_logit_softcapping\":null,"
	             "\"hidden_act\":\"silu\",\"hidden_activation\":\"gelu\"}");
	CU_ASSERT_EQUAL(node_of(p, "layer3.attn_context")->c.attention.cap, 0.0);
	CU_ASSERT_EQUAL(node_of(p, "logits")->op, VN_OP_LINEAR);
	CU_ASSERT_EQUAL(node_of(p, "layer3.mlp_act")->c.act.act, VN_GELU);
	vn_plan_destroy(p);
	refused("{\"head_dim\":4,\"final_logit_softcapping\":0}", VN_ERR_FORMAT, "final_logit_softcapping");
	refused("{\"head_dim\":4,\"query_pre_attn_scalar\":-1}", VN_ERR_FORMAT, "query_pre_attn_scalar");
	refused("{\"head_dim\":4,\"partial_rotary_factor\":0.5}", VN_ERR_UNSUPPORTED, "partial_rotary_factor");
	page = vn_family_qwen2.plan;
}

static void gemma3_has_a_rope_for_each_kind_of_layers(void)
{
	static const char
		*const four = "{\"head_dim\":4,\"rope_theta\":3e5,\"rope_local_base_freq\":2e4,\"sliding_window_pattern\":2,"
					  "\"sliding_window\":8,\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":8}}",
			   *const five = "{\"head_dim\":4,\"sliding_window\":8,\"layer_types\":[\"sliding_attention\","
							 "\"full_attention\",\"sliding_attention\",\"full_attention\"],"
							 "\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"linear\",\"factor\":8,"
							 "\"rope_theta\":3e5},\"sliding_attention\":{\"rope_theta\":2e4}}}";

	page = vn_family_gemma3_text.plan;
	for (int i = 0; i < 2; i++) {
		vn_plan *p = accepted(i ? five : four);
		CU_ASSERT_EQUAL(node_of(p, "layer1.k_rope")->c.rope.rope.theta, 3e5);
		CU_ASSERT_EQUAL(node_of(p, "layer1.k_rope")->c.rope.rope.factor, 8.0);
		CU_ASSERT_EQUAL(node_of(p, "layer2.k_rope")->c.rope.rope.theta, 2e4);
		CU_ASSERT_EQUAL(node_of(p, "layer2.k_rope")->c.rope.rope.type, VN_ROPE_DEFAULT);
		CU_ASSERT_EQUAL(node_of(p, "layer2.attn_context")->c.attention.scale, 0.0625);
		CU_ASSERT_EQUAL(node_of(p, "layer2.attn_context")->c.attention.cap, 0.0);
		CU_ASSERT_EQUAL(node_of(p, "layer2.q_norm")->c.norm.offset, 1.0);
		CU_ASSERT_EQUAL(node_of(p, "logits")->op, VN_OP_LINEAR);
		vn_plan_destroy(p);
		windows(i ? five : four, 8, 0, 8, 0);
	}
	windows("{\"head_dim\":4}", 4096, 4096, 4096, 4096); /* every sixth */
	vn_plan *p = accepted("{\"head_dim\":4,\"final_logit_softcapping\":3}");
	CU_ASSERT_EQUAL(node_of(p, "logits")->c.scale.cap, 3.0);
	CU_ASSERT_EQUAL(node_of(p, "layer0.q_rope")->c.rope.rope.theta, 1e4);
	vn_plan_destroy(p);
	refused("{\"head_dim\":4,\"sliding_window\":null}", VN_ERR_UNSUPPORTED, "sliding_window null");
	refused("{\"head_dim\":4,\"sliding_window_pattern\":0}", VN_ERR_FORMAT, "sliding_window_pattern");
	refused("{\"head_dim\":4,\"rope_parameters\":{\"sliding_attention\":{\"rope_type\":\"own\"}}}", VN_ERR_UNSUPPORTED,
	        "rope_type 'own'");
	refused("{\"head_dim\":4,\"rope_parameters\":{\"sliding_attention\":{\"partial_rotary_factor\":0.5}}}",
	        VN_ERR_UNSUPPORTED, "rope_parameters.sliding_attention");
	refused("{\"model_type\":\"gemma3\"}", VN_ERR_FORMAT, "a gemma3 model needs a text_config");
	page = vn_family_qwen2.plan;
}

/* transformers ignores a cap of scores, which other engines obey. */
static void gemma3_refuses_what_transformers_ignores(void)
{
	const char *const bad[] = { "attn_logit_softcapping\":50", "use_bidirectional_attention\":true",
		                        "use_sliding_window\":true" };
	char              text[128];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(text, sizeof text, "{\"text_config\":{\"%s}}", bad[i]);
		json_t  *o = json(text);
		vn_error e = { "" };
		CU_ASSERT_EQUAL(vn_config_refuse("c.json", &vn_family_gemma3, o, &e), VN_ERR_UNSUPPORTED);
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "is not supported"));
		json_decref(o);
	}
}

/* The row of a weight: "model.layers.3.mlp.up_proj.bias" is that of mlp.up_proj. */
static const vn_family_weight *row_of(const vn_family *f, const char *name)
{
	const size_t n = strlen(f->naming->layers);
	const char  *rest = strncmp(name, f->naming->layers, n) == 0 ? strchr(name + n, '.') + 1 : name;
	char         all[VN_NAME_MAX];

	if (strncmp(rest, "mlp.experts.", 12) == 0) { /* a row is for all experts */
		snprintf(all, sizeof all, "mlp.experts.%s", strchr(rest + 12, '.') + 1);
		rest = all;
	}
	for (const vn_family_weight *w = f->weights; w->hf; w++) {
		const size_t m = strlen(w->hf);
		if (strncmp(rest, w->hf, m) == 0 &&
		    (w->whole ? !rest[m] : strcmp(rest + m, ".weight") == 0 || strcmp(rest + m, ".bias") == 0))
			return w;
	}
	return NULL;
}

/* The point of a weight is told twice in a family's file: by its plan, and by its weights. */
static void every_weight_has_a_row_with_the_point_that_it_makes(void)
{
	for (int i = 0; vn_family_at(i); i++) {
		const vn_family *f = vn_family_at(i);
		vn_plan         *p = f->published ? vn_family_plan(f->published->config, NULL) : NULL;
		int              checked = 0;

		CU_ASSERT_PTR_NOT_NULL(f->weights);
		for (int k = 0; p && k < p->n_nodes; k++)
			for (int w = 0; w < p->node[k].n_w; w++) {
				const int               at = p->node[k].w[w];
				const vn_family_weight *row = at < 0 ? NULL : row_of(f, p->weight[at].name);
				const vn_point          made = p->value[p->node[k].out[0]].point;
				if (at < 0 || (strcmp(vn_point_get(made)->basis, "vocab") == 0 && row && row->point != made)) /* tied */
					continue;
				CU_ASSERT_PTR_NOT_NULL_FATAL(row);
				CU_ASSERT_EQUAL(row->point, made);
				checked++;
			}
		CU_ASSERT(!f->published || checked > 10);
		vn_plan_destroy(p);
	}
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(every_family_has_the_defaults_of_its_class),
		TEST(biases_are_where_the_family_and_the_config_put_them),
		TEST(qwen3_has_head_norms_before_rope_and_a_head_width_of_its_own),
		TEST(a_mistral_window_is_4096_unless_the_config_says_otherwise),
		TEST(a_llama_has_no_window),
		TEST(gpt2_has_the_defaults_of_its_class),
		TEST(gpt2_reads_its_own_names_or_those_of_newer_families),
		TEST(gpt2_scales_scores_as_its_config_says),
		TEST(gemma3_has_a_rope_for_each_kind_of_layers),
		TEST(gemma3_refuses_what_transformers_ignores),
		TEST(gemma2_norms_on_both_sides_scales_its_embedding_and_caps),
		TEST(every_weight_has_a_row_with_the_point_that_it_makes),
		CU_TEST_INFO_NULL,
	};
	return run_suite("families", tests);
}
