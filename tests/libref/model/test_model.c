/* test_model.c: opening a model directory, and everything that can be wrong with one. */
#include "libref/model/model.h"
#include "libref/family/family.h"
#include "tests/support/suite.h"
#include "tests/support/toy_model.h"

#include <math.h>

#define LM_HEAD "lm_head.weight"
#define Q0      "model.layers.0.self_attn.q_proj.weight"

static char dir[256];

static void drop_tensor(toy_model *m, const char *name)
{
	toy_tensor *t = toy_find(m, name);

	free(t->data);
	*t = m->tensor[--m->n];
}

static vn_model *open_toy(const toy_model *m, const char *config, vn_status *st, vn_error *e)
{
	vn_model *model = NULL;

	toy_save(m, dir, config);
	e->text[0] = '\0';
	*st = vn_model_open(dir, &model, e);
	return model;
}

static void opens(toy_model *m, const char *config, int warnings)
{
	vn_status st;
	vn_error  e;
	vn_model *model = open_toy(m, config, &st, &e);

	if (st)
		fprintf(stderr, "refused: %s\n", e.text);
	CU_ASSERT_EQUAL(st, VN_OK);
	for (int i = 0; model && i < warnings; i++)
		CU_ASSERT_PTR_NOT_NULL(vn_model_warning(model, i));
	CU_ASSERT(model && !vn_model_warning(model, warnings));
	vn_model_close(model);
	toy_free(m);
}

static void refused(toy_model *m, const char *config, vn_status want, const char *word, const char *other)
{
	vn_status  st;
	vn_error   e;
	vn_model  *model = open_toy(m, config, &st, &e);
	const bool named = strstr(e.text, dir) && strstr(e.text, word) && strstr(e.text, other);

	CU_ASSERT_EQUAL(st, want);
	CU_ASSERT_PTR_NULL(model);
	CU_ASSERT(named);
	if (st != want || !named)
		fprintf(stderr, "status %d, wanted '%s' and '%s', have '%s'\n", (int)st, word, other, e.text);
	vn_model_close(model);
	toy_free(m);
}

/* ---- a good one ---------------------------------------------------------------------- */

static void a_good_directory_opens_with_every_weight_in_its_place(void)
{
	toy_model m;
	vn_status st;
	vn_error  e;

	toy_build(&m, VN_F32);
	vn_model *model = open_toy(&m, TOY_CONFIG, &st, &e);
	CU_ASSERT_PTR_NOT_NULL_FATAL(model);
	const vn_plan *p = vn_model_plan(model);
	CU_ASSERT_EQUAL(p->n_weights, m.n);
	for (int i = 0; i < p->n_weights; i++) {
		const toy_tensor *t = toy_find(&m, p->weight[i].name);
		const vn_tensor  *w = &vn_model_weights(model)[i];
		CU_ASSERT_EQUAL(w->dtype, VN_F32);
		CU_ASSERT(vn_shape_equal(&w->shape, &p->weight[i].shape));
		CU_ASSERT_EQUAL(memcmp(w->data, t->data, t->bytes), 0);
	}
	CU_ASSERT_STRING_EQUAL(vn_model_family(model), "qwen2");
	CU_ASSERT_STRING_EQUAL(vn_model_path(model), dir);
	CU_ASSERT_STRING_EQUAL(vn_model_config(model), TOY_CONFIG);
	CU_ASSERT_STRING_EQUAL(vn_model_provenance(model), "unknown");
	CU_ASSERT_PTR_NULL(vn_model_warning(model, 0));
	vn_model_close(model);
	toy_free(&m);
	vn_model_close(NULL);
}

static void weights_may_have_any_of_the_four_formats_even_mixed(void)
{
	toy_model m;

	for (vn_dtype d = VN_F16; d <= VN_F64; d = (vn_dtype)(d + 1)) {
		toy_build(&m, d);
		opens(&m, TOY_CONFIG, 0);
	}
	toy_build(&m, VN_BF16);
	drop_tensor(&m, "model.norm.weight");
	toy_add(&m, "model.norm.weight", VN_F32, TOY_D, 0);
	opens(&m, TOY_CONFIG, 0);
}

static void every_known_prefix_is_understood(void)
{
	const char *prefix[] = { "", "transformer.", "model.language_model.", "language_model.model.", "model.model." };
	toy_model   m;

	for (size_t k = 0; k < sizeof prefix / sizeof *prefix; k++) {
		toy_build(&m, VN_F16);
		for (int i = 0; i < m.n; i++) {
			char name[128];
			snprintf(name, sizeof name, "%s%s", prefix[k], m.tensor[i].name + strlen("model."));
			strcpy(m.tensor[i].name, name);
		}
		opens(&m, TOY_CONFIG, 0);
	}
	toy_build(&m, VN_F16);
	for (int i = 0; i < m.n; i++)
		m.tensor[i].name[0] = 'n';
	refused(&m, TOY_CONFIG, VN_ERR_NOTFOUND, "model.embed_tokens.weight", "missing");
}

#define GPT2_CONFIG \
	"{\"model_type\":\"gpt2\",\"vocab_size\":32,\"n_positions\":16,\"n_embd\":16,\"n_head\":4,\"n_layer\":2}"

/* Adds every weight that the plan of a config reads. */
static void build_of(toy_model *m, const char *config, vn_dtype d)
{
	json_t          *j = json_loads(config, 0, NULL);
	const vn_family *family;
	vn_plan         *p;

	m->n = 0;
	CU_ASSERT_EQUAL_FATAL(vn_family_find("toy", j, &family, NULL), VN_OK);
	CU_ASSERT_EQUAL_FATAL(family->plan("toy", j, &p, NULL), VN_OK);
	for (int i = 0; i < p->n_weights; i++) {
		const vn_shape *s = &p->weight[i].shape;
		toy_add(m, p->weight[i].name, d, (int)s->dim[0], s->rank == 2 ? (int)s->dim[1] : 0);
	}
	vn_plan_destroy(p);
	json_decref(j);
}

static void gpt2_has_prefixes_and_buffers_of_its_own(void)
{
	const char *prefix[] = { "transformer.", "", "model." };
	toy_model   m;

	for (size_t k = 0; k < sizeof prefix / sizeof *prefix; k++)
		for (int buffers = 0; buffers < 2; buffers++) {
			build_of(&m, GPT2_CONFIG, VN_F16);
			if (buffers) {
				toy_add(&m, "transformer.h.1.attn.bias", VN_F16, 16, 16);
				toy_add(&m, "transformer.h.0.attn.masked_bias", VN_F16, 1, 0);
			}
			for (int i = 0; i < m.n; i++) {
				char name[128];
				snprintf(name, sizeof name, "%s%s", prefix[k], m.tensor[i].name + strlen("transformer."));
				strcpy(m.tensor[i].name, name);
			}
			opens(&m, GPT2_CONFIG, 0);
		}
	build_of(&m, GPT2_CONFIG, VN_F16); /* a bias is no buffer */
	toy_add(&m, "transformer.h.0.attn.q_attn.bias", VN_F16, 16, 0);
	refused(&m, GPT2_CONFIG, VN_ERR_FORMAT, "transformer.h.0.attn.q_attn.bias",
	        "a gpt2 model does not use this tensor");
	build_of(&m, GPT2_CONFIG, VN_F16);
	drop_tensor(&m, "transformer.h.1.attn.c_attn.bias");
	refused(&m, GPT2_CONFIG, VN_ERR_NOTFOUND, "transformer.h.1.attn.c_attn.bias", "missing");
	build_of(&m, GPT2_CONFIG, VN_F16); /* [out,in], as a Linear has it */
	toy_tensor *fc = toy_find(&m, "transformer.h.0.mlp.c_fc.weight");
	fc->dim[0] = 64, fc->dim[1] = 16;
	refused(&m, GPT2_CONFIG, VN_ERR_SHAPE, "c_fc.weight", "shape (64, 16), the config needs (16, 64)");
	build_of(&m, GPT2_CONFIG, VN_F16); /* tied, and the output matrix all the same */
	toy_add(&m, LM_HEAD, VN_F16, 32, 16);
	opens(&m, GPT2_CONFIG, 1);
}

static void names_in_the_table_are_those_of_the_file(void)
{
	toy_model     m;
	vn_status     st;
	vn_error      e;
	vn_weight_row row[TOY_MOST];

	toy_build(&m, VN_F16);
	for (int i = 0; i < m.n; i++) {
		char name[128];
		snprintf(name, sizeof name, "model.language_%s", m.tensor[i].name);
		strcpy(m.tensor[i].name, name);
	}
	vn_model *model = open_toy(&m, TOY_CONFIG, &st, &e);
	CU_ASSERT_PTR_NOT_NULL_FATAL(model);
	vn_model_table(model, 2, row);
	CU_ASSERT_STRING_EQUAL(row[0].name, "model.language_model.embed_tokens.weight");
	vn_model_close(model);
	toy_free(&m);
}

/* ---- weights ------------------------------------------------------------------------- */

static void each_missing_weight_is_named(void)
{
	toy_model m;
	char      name[128];

	toy_build(&m, VN_F16);
	const int n = m.n;
	toy_free(&m);
	for (int i = 0; i < n; i++) {
		toy_build(&m, VN_F16);
		strcpy(name, m.tensor[i].name);
		drop_tensor(&m, name);
		refused(&m, TOY_CONFIG, VN_ERR_NOTFOUND, name, "missing");
	}
}

static void a_tensor_that_nothing_reads_is_named(void)
{
	toy_model m;

	toy_build(&m, VN_F16);
	toy_add(&m, "model.layers.0.self_attn.o_proj.bias", VN_F16, TOY_D, 0);
	refused(&m, TOY_CONFIG, VN_ERR_FORMAT, "o_proj.bias", "a qwen2 model does not use this tensor");
	toy_build(&m, VN_F16);
	toy_add(&m, "model.layers.2.input_layernorm.weight", VN_F16, TOY_D, 0);
	refused(&m, TOY_CONFIG, VN_ERR_FORMAT, "layers.2.input_layernorm", "model.safetensors");
}

static void buffers_and_other_modalities_are_passed_over(void)
{
	toy_model m;

	toy_build(&m, VN_F16);
	toy_add(&m, "model.layers.0.self_attn.rotary_emb.inv_freq", VN_F32, TOY_K / 2, 0);
	toy_add(&m, "mtp.layers.0.weight", VN_F32, 3, 3);
	toy_add(&m, "model.visual.patch.weight", VN_F32, 3, 3);
	toy_add(&m, "visual.patch.weight", VN_F32, 3, 3);
	opens(&m, TOY_CONFIG, 0);
}

static void a_weight_of_another_shape_is_named_with_both_shapes(void)
{
	toy_model m;

	toy_build(&m, VN_F16);
	drop_tensor(&m, "model.layers.1.mlp.down_proj.weight"); /* transposed */
	toy_add(&m, "model.layers.1.mlp.down_proj.weight", VN_F16, TOY_F, TOY_D);
	refused(&m, TOY_CONFIG, VN_ERR_SHAPE, "layers.1.mlp.down_proj.weight: shape (24, 16)", "needs (16, 24)");

	toy_build(&m, VN_F16);
	drop_tensor(&m, "model.norm.weight"); /* of another rank */
	toy_add(&m, "model.norm.weight", VN_F16, 1, TOY_D);
	refused(&m, TOY_CONFIG, VN_ERR_SHAPE, "model.norm.weight: shape (1, 16)", "needs (16)");

	toy_build(&m, VN_F16);
	toy_tensor *t = toy_find(&m, Q0);
	*t = (toy_tensor) {
		.rank = 7, .dim = { 1, 1, 1, 1, 1, 16, 16 }, .bytes = t->bytes, .data = t->data, .dtype = "F16", .name = Q0
	};
	refused(&m, TOY_CONFIG, VN_ERR_SHAPE, Q0, "high rank");
}

static void a_weight_that_is_no_float_is_named_with_its_format(void)
{
	const struct {
		const char *dtype;
		size_t      size;
	} row[] = { { "I8", 1 }, { "F8_E4M3", 1 }, { "I32", 4 }, { "C64", 8 }, { "BOOL", 1 } };
	toy_model m;

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		toy_build(&m, VN_F64);
		toy_tensor *t = toy_find(&m, Q0);
		strcpy(t->dtype, row[i].dtype);
		t->bytes = toy_count(t) * row[i].size;
		refused(&m, TOY_CONFIG, VN_ERR_UNSUPPORTED, Q0, row[i].dtype);
	}
}

static void nan_weights_are_accepted_and_counted(void)
{
	const uint16_t nan = 0x7e01, inf = 0xfc00;
	toy_model      m;
	vn_status      st;
	vn_error       e;
	vn_weight_row  one[TOY_MOST], three[TOY_MOST];

	toy_build(&m, VN_F16);
	memcpy(toy_find(&m, Q0)->data + 6, &nan, 2);
	memcpy(toy_find(&m, Q0)->data + 60, &nan, 2);
	memcpy(toy_find(&m, Q0)->data + 100, &inf, 2);
	vn_model *model = open_toy(&m, TOY_CONFIG, &st, &e);
	CU_ASSERT_PTR_NOT_NULL_FATAL(model);
	memset(one, 0, sizeof one);
	memset(three, 0, sizeof three);
	vn_model_table(model, 1, one);
	vn_model_table(model, 3, three);
	for (int i = 0; i < vn_model_plan(model)->n_weights; i++) {
		const toy_tensor *t = toy_find(&m, one[i].name);
		const vn_stats    want = vn_stats_of(t->data, VN_F16, toy_count(t));
		const vn_digest   digest = vn_digest_of(t->data, t->bytes);
		const bool        q = strcmp(one[i].name, Q0) == 0;
		CU_ASSERT_EQUAL(one[i].stats.nan, q ? 2 : 0);
		CU_ASSERT_EQUAL(one[i].stats.inf, q ? 1 : 0);
		CU_ASSERT_EQUAL(memcmp(&one[i].stats, &want, sizeof want), 0);
		CU_ASSERT_STRING_EQUAL(one[i].digest.hex, digest.hex);
		CU_ASSERT_EQUAL(memcmp(&one[i].stats, &three[i].stats, sizeof want), 0);
		CU_ASSERT_STRING_EQUAL(one[i].digest.hex, three[i].digest.hex);
		CU_ASSERT_EQUAL(one[i].dtype, VN_F16);
		CU_ASSERT(vn_shape_equal(&one[i].shape, &vn_model_plan(model)->weight[i].shape));
	}
	vn_model_close(model);
	toy_free(&m);
}

/* ---- the output matrix ----------------------------------------------------------------- */

static void a_tied_model_with_an_equal_output_matrix_opens_without_a_word(void)
{
	toy_model m;

	toy_build(&m, VN_F16);
	toy_tensor *t = toy_add(&m, LM_HEAD, VN_F16, TOY_V, TOY_D);
	memcpy(t->data, toy_find(&m, "model.embed_tokens.weight")->data, t->bytes);
	opens(&m, TOY_CONFIG, 0);
}

static void a_tied_model_with_another_output_matrix_uses_it_and_warns(void)
{
	toy_model m;
	vn_status st;
	vn_error  e;

	toy_build(&m, VN_F16);
	toy_tensor *t = toy_add(&m, LM_HEAD, VN_F16, TOY_V, TOY_D);
	memcpy(t->data, toy_find(&m, "model.embed_tokens.weight")->data, t->bytes);
	t->data[t->bytes - 1] ^= 1;
	vn_model *model = open_toy(&m, TOY_CONFIG, &st, &e);
	CU_ASSERT_PTR_NOT_NULL_FATAL(model);
	CU_ASSERT_PTR_NOT_NULL_FATAL(vn_model_warning(model, 0));
	CU_ASSERT_PTR_NOT_NULL(strstr(vn_model_warning(model, 0), "lm_head.weight differs"));
	CU_ASSERT_PTR_NULL(vn_model_warning(model, 1));
	const vn_plan *p = vn_model_plan(model);
	CU_ASSERT_STRING_EQUAL(p->weight[p->node[p->n_nodes - 1].w[0]].name, LM_HEAD);
	vn_model_close(model);
	toy_free(&m);

	toy_build(&m, VN_F16); /* a row more is another matrix, however it begins */
	t = toy_add(&m, LM_HEAD, VN_F16, TOY_V + 1, TOY_D);
	memcpy(t->data, toy_find(&m, "model.embed_tokens.weight")->data, toy_find(&m, "model.embed_tokens.weight")->bytes);
	refused(&m, TOY_CONFIG, VN_ERR_SHAPE, LM_HEAD, "the config needs");
}

static void an_untied_model_needs_an_output_matrix(void)
{
	const char *untied = "{\"model_type\": \"qwen2\", \"vocab_size\": 32, \"hidden_size\": 16, \"intermediate_size\": "
						 "24, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
						 "\"max_position_embeddings\": 64}";
	toy_model   m;

	toy_build(&m, VN_F16);
	refused(&m, untied, VN_ERR_NOTFOUND, LM_HEAD, "missing");
	toy_build(&m, VN_F16);
	toy_add(&m, LM_HEAD, VN_F16, TOY_V, TOY_D);
	opens(&m, untied, 0);
	toy_build(&m, VN_F16); /* an older multimodal file has both below one more name */
	toy_add(&m, LM_HEAD, VN_F16, TOY_V, TOY_D);
	for (int i = 0; i < m.n; i++) {
		char name[128];
		snprintf(name, sizeof name, "language_model.%s", m.tensor[i].name);
		strcpy(m.tensor[i].name, name);
	}
	opens(&m, untied, 0);
}

/* ---- the directory ----------------------------------------------------------------------- */

static void provenance_is_what_the_files_say_and_else_unknown(void)
{
	const struct {
		const char *config, *meta, *want;
	} row[] = {
		{ "", NULL, "unknown" },
		{ ", \"vernier_provenance\": \"trained\"}", NULL, "trained" },
		{ ", \"vernier_provenance\": \"synthetic\"}", NULL, "synthetic" },
		{ ", \"vernier_provenance\": \"stolen\"}", NULL, "unknown" },
		{ ", \"vernier_provenance\": 7}", NULL, "unknown" },
		{ "", "{\"provenance\":\"synthetic\"}", "synthetic" },
		{ "", "{\"provenance\":\"trained\"}", "trained" },
		{ "", "{\"format\":\"pt\"}", "unknown" },
		{ ", \"vernier_provenance\": \"trained\"}", "{\"provenance\":\"synthetic\"}", "trained" },
	};
	toy_model m;

	toy_build(&m, VN_F16);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		char      config[1024];
		vn_model *model;
		snprintf(config, sizeof config, "%s", TOY_CONFIG);
		if (*row[i].config)
			strcpy(strrchr(config, '}'), row[i].config);
		toy_write_text(dir, "config.json", config);
		toy_save_part(&m, 0, m.n, dir, "model.safetensors", row[i].meta);
		CU_ASSERT_EQUAL_FATAL(vn_model_open(dir, &model, NULL), VN_OK);
		CU_ASSERT_STRING_EQUAL(vn_model_provenance(model), row[i].want);
		vn_model_close(model);
	}
	toy_free(&m);
}

static void a_config_that_is_none_is_refused(void)
{
	const char *bad[] = { "", "[]", "7", "{", "{\"model_type\": \"qwen2\"", "{}", "\xff" };
	toy_model   m;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		toy_build(&m, VN_F16);
		refused(&m, bad[i], VN_ERR_FORMAT, "config.json", "");
	}
	toy_build(&m, VN_F16);
	refused(&m, "{\n\n  \"a\": oops}", VN_ERR_FORMAT, "config.json:3:", "");
	toy_build(&m, VN_F16);
	refused(&m, "{\"model_type\": \"mamba\"}", VN_ERR_UNSUPPORTED, "config.json", "'mamba'");
}

static void quantised_weights_and_what_no_family_has_are_refused(void)
{
	toy_model m;

	toy_build(&m, VN_F16);
	refused(&m, "{\"model_type\": \"qwen2\", \"quantization_config\": {\"quant_method\": \"awq\"}}", VN_ERR_UNSUPPORTED,
	        "config.json", "quantization_config");
	toy_build(&m, VN_F16);
	refused(&m, "{\"model_type\": \"qwen2\", \"quantization_config\": \"awq\"}", VN_ERR_UNSUPPORTED, "config.json",
	        "quantization_config");
}

static void a_model_that_sees_later_tokens_is_refused(void)
{
	const char *bad[] = { "{\"model_type\": \"qwen2\", \"is_causal\": false}",
		                  "{\"model_type\": \"qwen2\", \"is_causal\": null}",
		                  "{\"model_type\": \"qwen3_5\", \"text_config\": {\"is_causal\": false}}" };
	toy_model   m;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		toy_build(&m, VN_F16);
		refused(&m, bad[i], VN_ERR_UNSUPPORTED, "config.json", "is_causal");
	}
}

static void a_directory_without_its_files_is_refused(void)
{
	vn_model *model;
	vn_error  e;
	char      d[256];

	toy_directory(d);
	CU_ASSERT_EQUAL(vn_model_open(d, &model, &e), VN_ERR_NOTFOUND);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "config.json"));
	CU_ASSERT_PTR_NULL(model);
	toy_write_text(d, "config.json", TOY_CONFIG);
	CU_ASSERT_EQUAL(vn_model_open(d, &model, &e), VN_ERR_NOTFOUND);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "model.safetensors"));
	toy_write(d, "model.safetensors", "", 0);
	CU_ASSERT_EQUAL(vn_model_open(d, &model, &e), VN_ERR_FORMAT);
	CU_ASSERT_PTR_NULL(model);
	CU_ASSERT_EQUAL(vn_model_open(toy_path(d, "config.json"), &model, &e), VN_ERR_FORMAT); /* a file, and no GGUF */
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "not a GGUF file"));
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "give its directory"));
	CU_ASSERT_PTR_NULL(model);
	toy_remove(d);
	CU_ASSERT_EQUAL(vn_model_open(toy_path(dir, "model.safetensors"), &model, &e), VN_ERR_FORMAT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "give its directory"));
}

static void a_sharded_model_is_the_same_model(void)
{
	toy_model   m;
	vn_model   *model;
	char        d[256];
	static char index[16384];

	toy_directory(d);
	toy_build(&m, VN_BF16);
	toy_write_text(d, "config.json", TOY_CONFIG);
	toy_save_part(&m, 0, 9, d, "1.safetensors", NULL);
	toy_save_part(&m, 9, m.n, d, "2.safetensors", NULL);
	strcpy(index, "{\"weight_map\":{");
	for (int i = 0; i < m.n; i++) /* the last is left out of the list */
		if (i < m.n - 1)
			sprintf(index + strlen(index), "%s\"%s\":\"%d.safetensors\"", i ? "," : "", m.tensor[i].name, 1 + (i >= 9));
	strcat(index, "}}");
	toy_write_text(d, "model.safetensors.index.json", index);
	CU_ASSERT_EQUAL_FATAL(vn_model_open(d, &model, NULL), VN_OK);
	for (int i = 0; i < m.n; i++) {
		const toy_tensor *t = toy_find(&m, vn_model_plan(model)->weight[i].name);
		CU_ASSERT_EQUAL(memcmp(vn_model_weights(model)[i].data, t->data, t->bytes), 0);
	}
	CU_ASSERT_PTR_NOT_NULL_FATAL(vn_model_warning(model, 0));
	CU_ASSERT_PTR_NOT_NULL(strstr(vn_model_warning(model, 0), "1 tensors are in the files but not in the index"));
	vn_model_close(model);
	toy_free(&m);
	toy_remove(d);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_good_directory_opens_with_every_weight_in_its_place),
		TEST(weights_may_have_any_of_the_four_formats_even_mixed),
		TEST(every_known_prefix_is_understood),
		TEST(gpt2_has_prefixes_and_buffers_of_its_own),
		TEST(names_in_the_table_are_those_of_the_file),
		TEST(each_missing_weight_is_named),
		TEST(a_tensor_that_nothing_reads_is_named),
		TEST(buffers_and_other_modalities_are_passed_over),
		TEST(a_weight_of_another_shape_is_named_with_both_shapes),
		TEST(a_weight_that_is_no_float_is_named_with_its_format),
		TEST(nan_weights_are_accepted_and_counted),
		TEST(a_tied_model_with_an_equal_output_matrix_opens_without_a_word),
		TEST(a_tied_model_with_another_output_matrix_uses_it_and_warns),
		TEST(an_untied_model_needs_an_output_matrix),
		TEST(provenance_is_what_the_files_say_and_else_unknown),
		TEST(a_config_that_is_none_is_refused),
		TEST(quantised_weights_and_what_no_family_has_are_refused),
		TEST(a_model_that_sees_later_tokens_is_refused),
		TEST(a_directory_without_its_files_is_refused),
		TEST(a_sharded_model_is_the_same_model),
		CU_TEST_INFO_NULL,
	};

	toy_directory(dir);
	const int failures = run_suite("model", tests);
	toy_remove(dir);
	return failures;
}
