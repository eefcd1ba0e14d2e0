/* test_gguf_source.c: GGUF files as models: config, names, and undoing converters' changes.
 *
 * The gguf package wrote the files of fixtures/gguf from models that vernier never saw;
 * fixtures/gguf/digests.txt has the digest of every weight. */
#include "libref/model/gguf_source.h"

#include "libref/base/digest.h"
#include "libref/model/gguf_config.h"
#include "libref/model/model.h"
#include "tests/support/suite.h"
#include "tests/support/toy_gguf.h"
#include "tests/support/toy_model.h"

#include <math.h>

#define FOLDER VERNIER_SOURCE "/fixtures/gguf/"

enum { F32 = 0, F16 = 1, Q8_0 = 8 };

static vn_source *open_twin(const char *file)
{
	char       path[512];
	vn_source *s = NULL;
	vn_error   e;

	snprintf(path, sizeof path, FOLDER "%s", file);
	if (vn_source_open(path, &s, &e))
		fprintf(stderr, "%s\n", e.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	return s;
}

static void check_weight(const vn_source *s, const char *file, const char *name, const char *shape, const char *digest)
{
	const vn_source_tensor *t = vn_source_find(s, name);
	char                    have[128] = "";
	vn_dtype                dtype;
	size_t                  n = 1;

	CU_ASSERT_PTR_NOT_NULL_FATAL(t);
	for (int i = 0; i < t->rank; i++) {
		n *= (size_t)t->dim[i];
		snprintf(have + strlen(have), sizeof have - strlen(have), "%s%lld", i ? "x" : "", (long long)t->dim[i]);
	}
	CU_ASSERT_STRING_EQUAL(have, shape);
	CU_ASSERT_FATAL(vn_dtype_from_name(t->dtype, &dtype));
	CU_ASSERT_EQUAL_FATAL(t->bytes, vn_dtype_bytes(dtype, n));
	float *y = malloc((n + 1) * sizeof *y);
	CU_ASSERT_PTR_NOT_NULL_FATAL(y);
	vn_to_f32(y, t->data, dtype, n);
	const vn_digest d = vn_digest_of(y, n * sizeof *y);
	if (strcmp(d.hex, digest) != 0)
		fprintf(stderr, "%s: %s (%s): %s, expected %s\n", file, name, t->dtype, d.hex, digest);
	CU_ASSERT_STRING_EQUAL(d.hex, digest);
	free(y);
}

static void every_weight_of_every_twin_is_what_was_put_in(void)
{
	FILE      *f = fopen(FOLDER "digests.txt", "r");
	char       file[128], name[128], shape[64], digest[64], open[128] = "";
	vn_source *s = NULL;
	size_t     seen = 0, files = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	while (fscanf(f, "%127s %127s %63s %63s", file, name, shape, digest) == 4) {
		if (strcmp(file, open) != 0) {
			CU_ASSERT(!s || seen == s->n); /* and nothing else */
			vn_source_close(s);
			s = open_twin(file);
			strcpy(open, file);
			files++;
			seen = 0;
		}
		check_weight(s, file, name, shape, digest);
		seen++;
	}
	CU_ASSERT(s && seen == s->n && files == 17);
	vn_source_close(s);
	fclose(f);
}

/* ---- configs ------------------------------------------------------------------------- */

static json_t *parse(const char *text)
{
	json_error_t e;
	json_t      *j = json_loads(text, 0, &e);

	if (!j)
		fprintf(stderr, "%s: %s\n", text, e.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(j);
	return j;
}

static void the_config_comes_back_from_the_metadata(void)
{
	const struct {
		const char *file, *config;
	} row[] = {
		{ "qwen2-trained.f32.gguf",
		  "{\"model_type\": \"qwen2\", \"vocab_size\": 512, \"hidden_size\": 48, \"num_hidden_layers\": 2,"
		  "\"intermediate_size\": 128, \"num_attention_heads\": 6, \"num_key_value_heads\": 2, \"head_dim\": 8, "
		  "\"hidden_act\": \"silu\",\"max_position_embeddings\": 512, \"rms_norm_eps\": 1e-6, "
		  "\"tie_word_embeddings\": true,\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 1e6}}" },
		{ "gpt2-tiny.f32.gguf",
		  "{\"model_type\": \"gpt2\", \"vocab_size\": 40, \"n_embd\": 32, \"n_layer\": 1, \"n_head\": 4, "
		  "\"n_positions\": 16,\"n_inner\": 96, \"layer_norm_epsilon\": 1e-5, \"tie_word_embeddings\": true, "
		  "\"activation_function\": \"gelu_new\"}" },
		{ "llama-tiny.q8_0.gguf",
		  "{\"model_type\": \"llama\", \"vocab_size\": 40, \"hidden_size\": 32, \"num_hidden_layers\": 1,"
		  "\"intermediate_size\": 96, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 16, "
		  "\"hidden_act\": \"silu\",\"max_position_embeddings\": 131072, \"rms_norm_eps\": 1e-5, "
		  "\"tie_word_embeddings\": false, \"attention_bias\": true, \"mlp_bias\": false,\"rope_parameters\": "
		  "{\"rope_type\": \"llama3\", \"rope_theta\": 500000.0, \"factor\": 32.0, \"low_freq_factor\": 1.0, "
		  "\"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192}}" },
		{ "mistral-tiny.f32.gguf",
		  "{\"model_type\": \"mistral\", \"vocab_size\": 40, \"hidden_size\": 32, \"num_hidden_layers\": 1,"
		  "\"intermediate_size\": 96, \"num_attention_heads\": 6, \"num_key_value_heads\": 2, \"head_dim\": 8, "
		  "\"hidden_act\": \"silu\",\"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-5, \"tie_word_embeddings\": "
		  "false, \"attention_bias\": false, \"mlp_bias\": false,\"sliding_window\": 5, \"rope_parameters\": "
		  "{\"rope_type\": \"default\", \"rope_theta\": 1e6}}" },
		{ "qwen3-tiny.f32.gguf",
		  "{\"model_type\": \"qwen3\", \"vocab_size\": 40, \"hidden_size\": 32, \"num_hidden_layers\": 1,"
		  "\"intermediate_size\": 96, \"num_attention_heads\": 4, \"num_key_value_heads\": 1, \"head_dim\": 16, "
		  "\"hidden_act\": \"silu\",\"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-6, \"tie_word_embeddings\": "
		  "true, \"attention_bias\": false,\"rope_parameters\": {\"rope_type\": \"yarn\", \"rope_theta\": 1e6, "
		  "\"factor\": 4.0, \"original_max_position_embeddings\": 16}}" },
		{ "qwen35-tiny.q8_0.gguf",
		  "{\"model_type\": \"qwen3_5_text\", \"vocab_size\": 40, \"hidden_size\": 32, \"num_hidden_layers\": 2,"
		  "\"intermediate_size\": 64, \"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"head_dim\": 16, "
		  "\"hidden_act\": \"silu\",\"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-6, \"tie_word_embeddings\": "
		  "true, \"attention_bias\": false,\"full_attention_interval\": 2, \"linear_conv_kernel_dim\": 4, "
		  "\"linear_key_head_dim\": 8, \"linear_value_head_dim\": 16,\"linear_num_key_heads\": 2, "
		  "\"linear_num_value_heads\": 6,\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 1e7, "
		  "\"partial_rotary_factor\": 0.25}}" },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		vn_source *s = open_twin(row[i].file);
		json_t    *want = parse(row[i].config), *have = parse(s->config);
		/* a real that is whole may be either */
		if (!json_equal(want, have)) {
			json_object_set_new(
				json_object_get(want, "rope_parameters"), "rope_theta",
				json_real(json_number_value(json_object_get(json_object_get(want, "rope_parameters"), "rope_theta"))));
			if (!json_equal(want, have))
				fprintf(stderr, "%s: %s\n", row[i].file, s->config);
		}
		CU_ASSERT(json_equal(want, have));
		json_decref(want);
		json_decref(have);
		vn_source_close(s);
	}
}

static void a_source_says_what_held_the_weights(void)
{
	const struct {
		const char *file, *format, *provenance;
	} row[] = {
		{ "qwen2-trained.f32.gguf", "gguf F32", "trained" },
		{ "qwen2-trained.f16.gguf", "gguf F16, F32", "trained" },
		{ "qwen2-wide.q4_k_m.gguf", "gguf Q4_K, Q6_K, F32", "synthetic" },
		{ "qwen2-wide.mixed.gguf", "gguf Q6_K, Q5_1, Q5_K, Q4_0, Q4_K, Q5_0, Q4_1, Q8_0, F32", "synthetic" },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		char      path[512];
		vn_model *m = NULL;
		snprintf(path, sizeof path, FOLDER "%s", row[i].file);
		CU_ASSERT_EQUAL_FATAL(vn_model_open(path, &m, NULL), VN_OK);
		CU_ASSERT_STRING_EQUAL(vn_model_format(m), row[i].format);
		if (strcmp(vn_model_format(m), row[i].format) != 0)
			fprintf(stderr, "have %s\n", vn_model_format(m));
		CU_ASSERT_STRING_EQUAL(vn_model_provenance(m), row[i].provenance);
		CU_ASSERT_STRING_EQUAL(vn_model_path(m), path);
		vn_model_close(m);
	}
	vn_source *s = NULL;
	CU_ASSERT_EQUAL_FATAL(vn_source_open(VERNIER_SOURCE "/fixtures/qwen2-trained", &s, NULL), VN_OK);
	CU_ASSERT_STRING_EQUAL(s->format, "safetensors");
	vn_source_close(s);
}

/* Bit for bit the model of the directory that the file was made from. */
static void the_twin_in_float32_is_the_same_model(void)
{
	vn_model *a = NULL, *b = NULL;

	CU_ASSERT_EQUAL_FATAL(vn_model_open(VERNIER_SOURCE "/fixtures/qwen2-trained", &a, NULL), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_model_open(FOLDER "qwen2-trained.f32.gguf", &b, NULL), VN_OK);
	const vn_plan *p = vn_model_plan(a);
	CU_ASSERT_FATAL(vn_plan_equal(p, vn_model_plan(b)));
	for (int i = 0; i < p->n_weights; i++) {
		const vn_tensor *x = &vn_model_weights(a)[i], *y = &vn_model_weights(b)[i];
		CU_ASSERT(x->dtype == y->dtype && vn_shape_equal(&x->shape, &y->shape));
		CU_ASSERT_EQUAL(memcmp(x->data, y->data, vn_dtype_bytes(x->dtype, (size_t)vn_shape_count(&x->shape))), 0);
	}
	vn_model_close(a);
	vn_model_close(b);
}

/* ---- what is not converted stays where it is -------------------------------------------- */

static void only_what_was_changed_is_copied(void)
{
	const struct {
		const char *file;
		const char *copied[16];
	} row[] = {
		{ "qwen2-wide.mixed.gguf", { NULL } },
		{ "qwen3-tiny.q8_0.gguf", { NULL } },
		{ "llama-tiny.q8_0.gguf",
		  { "model.layers.0.self_attn.k_proj.bias", "model.layers.0.self_attn.k_proj.weight",
		    "model.layers.0.self_attn.q_proj.bias", "model.layers.0.self_attn.q_proj.weight", NULL } },
		{ "gpt2-tiny.f32.gguf",
		  { "transformer.h.0.attn.c_attn.weight", "transformer.h.0.attn.c_proj.weight",
		    "transformer.h.0.mlp.c_fc.weight", "transformer.h.0.mlp.c_proj.weight", NULL } },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		char       path[512];
		vn_gguf   *f = NULL;
		vn_source *s = NULL;
		int        next = 0;
		snprintf(path, sizeof path, FOLDER "%s", row[i].file);
		CU_ASSERT_EQUAL_FATAL(vn_gguf_open(path, &f, NULL), VN_OK);
		const unsigned char *low = NULL, *high = NULL;
		for (size_t k = 0; k < vn_gguf_count(f); k++) {
			const vn_gguf_tensor *t = vn_gguf_at(f, k);
			low = !low || (const unsigned char *)t->t.data < low ? t->t.data : low;
			high = (const unsigned char *)t->t.data + t->bytes > high ? (const unsigned char *)t->t.data + t->bytes
			                                                          : high;
		}
		s = calloc(1, sizeof *s);
		CU_ASSERT_EQUAL_FATAL(vn_source_of_gguf(f, s, NULL), VN_OK);
		for (size_t k = 0; k < s->n; k++)
			if (s->tensor[k].data < low || s->tensor[k].data >= high) {
				CU_ASSERT_PTR_NOT_NULL_FATAL(row[i].copied[next]);
				CU_ASSERT_STRING_EQUAL(s->tensor[k].name, row[i].copied[next++]);
			}
		CU_ASSERT_PTR_NULL(row[i].copied[next]);
		vn_source_close(s);
	}
}

static void rows_keep_their_format_and_cut_blocks_become_floats(void)
{
	const struct {
		const char *file, *name, *dtype;
	} row[] = {
		{ "llama-tiny.q8_0.gguf", "model.layers.0.self_attn.q_proj.weight", "Q8_0" },
		{ "gpt2-tiny.q8_0.gguf", "transformer.h.0.mlp.c_fc.weight", "F32" },
		{ "gpt2-tiny.q8_0.gguf", "transformer.wte.weight", "Q8_0" },
		{ "qwen35-tiny.q8_0.gguf", "model.layers.0.linear_attn.in_proj_qkv.weight", "Q8_0" },
		{ "qwen35-tiny.q8_0.gguf", "model.layers.0.linear_attn.out_proj.weight", "F32" },
		/* heads of 16, blocks of 32 */
		{ "qwen35-tiny.q8_0.gguf", "model.layers.0.linear_attn.A_log", "F32" },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		vn_source *s = open_twin(row[i].file);
		CU_ASSERT_STRING_EQUAL(vn_source_find(s, row[i].name)->dtype, row[i].dtype);
		vn_source_close(s);
	}
}

/* ---- files made by hand ------------------------------------------------------------------ */

static vn_status source_of(toy_gguf *g, vn_source **s, vn_error *e)
{
	static unsigned char *kept; /* of one source at a time */
	vn_gguf              *f = NULL;
	vn_status             st;

	free(kept);
	kept = malloc(g->n);
	CU_ASSERT_PTR_NOT_NULL_FATAL(kept);
	memcpy(kept, g->p, g->n);
	e->text[0] = '\0';
	*s = NULL;
	if (!(st = vn_gguf_parse("x.gguf", kept, g->n, &f, e))) {
		vn_source *made = calloc(1, sizeof *made);
		CU_ASSERT_PTR_NOT_NULL_FATAL(made);
		if ((st = vn_source_of_gguf(f, made, e)))
			vn_source_close(made);
		else
			*s = made;
	}
	gg_free(g);
	return st;
}

static size_t block_count; /* where its number is */

/* The keys of a small model of an architecture. */
static void begin(toy_gguf *g, const char *arch)
{
	const struct {
		const char *key;
		uint32_t    x;
	} keys[] = {
		{ "block_count", 1 },          { "context_length", 32 },      { "embedding_length", 16 },
		{ "feed_forward_length", 24 }, { "attention.head_count", 4 }, { "attention.head_count_kv", 2 },
	};
	char key[96];

	gg_start(g, 3);
	gg_key_text(g, "general.architecture", arch);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		snprintf(key, sizeof key, "%s.%s", arch, keys[i].key);
		gg_key_u32(g, key, keys[i].x);
		block_count = i == 0 ? g->n - 4 : block_count;
	}
	snprintf(key, sizeof key, "%s.attention.layer_norm_%sepsilon", arch, strcmp(arch, "gpt2") == 0 ? "" : "rms_");
	gg_key_f32(g, key, 1e-5f);
}

/* An embedding of 8 rows of 16. */
static void end(toy_gguf *g)
{
	static const float data[512];

	gg_tensor(g, "token_embd.weight", 16, 8, F32, 512);
	gg_data(g, data, 512);
}

static void refused(toy_gguf *g, vn_status want, const char *word, const char *other)
{
	vn_source *s;
	vn_error   e;
	vn_status  st = source_of(g, &s, &e);
	const bool named = strstr(e.text, "x.gguf: ") == e.text && strstr(e.text, word) && strstr(e.text, other);

	CU_ASSERT_EQUAL(st, want);
	CU_ASSERT_PTR_NULL(s);
	CU_ASSERT(named);
	if (st != want || !named)
		fprintf(stderr, "status %d, wanted '%s' and '%s', have '%s'\n", (int)st, word, other, e.text);
	vn_source_close(s);
}

/* One field of the config that a file with more keys comes to; NULL when it is not there. */
static char *field(toy_gguf *g, const char *object, const char *key)
{
	vn_source *s;
	vn_error   e;
	vn_status  st = source_of(g, &s, &e);

	if (st)
		fprintf(stderr, "refused: %s\n", e.text);
	CU_ASSERT_EQUAL_FATAL(st, VN_OK);
	json_t *j = parse(s->config);
	json_t *x = json_object_get(object ? json_object_get(j, object) : j, key);
	char   *text = x ? json_dumps(x, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
	json_decref(j);
	vn_source_close(s);
	return text;
}

#define FIELD(g, object, key, want) \
	do { \
		char *text_ = field(g, object, key); \
		CU_ASSERT_STRING_EQUAL(text_ ? text_ : "(absent)", want); \
		if (!text_ || strcmp(text_, want) != 0) \
			fprintf(stderr, "have %s\n", text_ ? text_ : "nothing"); \
		free(text_); \
	} while (0)

static void metadata_that_asks_for_more_is_refused_by_name(void)
{
	const struct {
		const char *key;
		uint32_t    x;
		const char *word;
	} numbers[] = {
		{ "qwen2.expert_count", 8, "expert_count' is 8" },
		{ "qwen2.attention.value_length", 8, "value_length' is 8" },
		{ "qwen2.final_logit_softcapping", 30, "softcapping' is 30" },
		{ "qwen2.attention.scale", 2, "scale' is 2" },
		{ "qwen2.attention.sliding_window", 8, "sliding_window' is set, but no pattern" },
		{ "qwen2.nextn_predict_layers", 2, "nextn" },
	};
	toy_gguf g;

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		begin(&g, "qwen2");
		gg_key_u32(&g, numbers[i].key, numbers[i].x);
		end(&g);
		refused(&g, strstr(numbers[i].key, "nextn") ? VN_ERR_FORMAT : VN_ERR_UNSUPPORTED, numbers[i].word, "qwen2.");
	}
	begin(&g, "qwen2");
	gg_key(&g, "qwen2.attention.causal", GG_BOOL), gg_bytes(&g, "", 1);
	end(&g);
	refused(&g, VN_ERR_UNSUPPORTED, "attention.causal", "false");
	begin(&g, "qwen2");
	gg_key_u32(&g, "qwen2.attention.causal", 0);
	end(&g);
	refused(&g, VN_ERR_FORMAT, "attention.causal", "true or false");
	begin(&g, "qwen2");
	gg_key_u32(&g, "qwen2.rope.dimension_count", 6);
	end(&g);
	refused(&g, VN_ERR_FORMAT, "rope.dimension_count' is 6", "4 columns");
	for (int linear = 0; linear < 2; linear++) { /* llama.cpp multiplies by it without a type, too */
		begin(&g, "qwen2");
		gg_key_f32(&g, "qwen2.rope.scaling.attn_factor", 1.25f);
		gg_key_f32(&g, "qwen2.rope.scaling.factor", linear ? 4.0f : 1.0f);
		end(&g);
		refused(&g, VN_ERR_UNSUPPORTED, "rope.scaling.attn_factor' is 1.25", "without the scaling type yarn");
	}
	begin(&g, "qwen2");
	gg_key_text(&g, "qwen2.rope.scaling.type", "yarn");
	gg_key_f32(&g, "qwen2.rope.scaling.attn_factor", 1.25f);
	gg_key_f32(&g, "qwen2.rope.scaling.yarn_attn_factor", 1.5f);
	end(&g);
	refused(&g, VN_ERR_FORMAT, "yarn_attn_factor' is 1.5", "'qwen2.rope.scaling.attn_factor' is 1.25");
	begin(&g, "qwen2");
	gg_key_text(&g, "qwen2.rope.scaling.type", "longrope");
	end(&g);
	refused(&g, VN_ERR_UNSUPPORTED, "rope.scaling.type' is 'longrope'", "supported: linear, yarn");
	begin(&g, "mamba2");
	end(&g);
	refused(&g, VN_ERR_UNSUPPORTED, "'mamba2'",
	        "known: deepseek2, gpt2, gpt-oss, llama, olmoe, qwen2, qwen3, qwen3moe, qwen35, qwen35moe");
	gg_start(&g, 3);
	end(&g);
	refused(&g, VN_ERR_FORMAT, "general.architecture", "is missing or empty");
	gg_start(&g, 3);
	gg_key_text(&g, "general.architecture", "qwen2");
	end(&g);
	refused(&g, VN_ERR_FORMAT, "'qwen2.embedding_length'", "missing");
	begin(&g, "qwen2");
	refused(&g, VN_ERR_NOTFOUND, "token_embd.weight", "missing");
	begin(&g, "qwen2");
	gg_key_text(&g, "qwen2.rope.freq_base", "much");
	end(&g);
	refused(&g, VN_ERR_FORMAT, "'qwen2.rope.freq_base'", "a number");
	begin(&g, "qwen2");
	gg_key_array(&g, "qwen2.vocab_size", GG_I32, 2), gg_u32(&g, 8), gg_u32(&g, 9);
	end(&g);
	refused(&g, VN_ERR_UNSUPPORTED, "'qwen2.vocab_size'", "not the same for all layers");
	begin(&g, "qwen2");
	gg_key(&g, "qwen2.vocab_size", GG_I32), gg_u32(&g, UINT32_MAX);
	end(&g);
	refused(&g, VN_ERR_FORMAT, "'qwen2.vocab_size'", "from 0 to");
}

/* Up to its tensors. */
static void begin_deepseek(toy_gguf *g, uint32_t gating)
{
	static const struct {
		const char *key;
		uint32_t    x;
	} keys[] = {
		{ "attention.kv_lora_rank", 8 }, { "attention.key_length_mla", 6 },  { "attention.value_length_mla", 4 },
		{ "rope.dimension_count", 2 },   { "leading_dense_block_count", 1 }, { "expert_count", 4 },
		{ "expert_used_count", 2 },      { "expert_shared_count", 1 },       { "expert_feed_forward_length", 8 },
		{ "expert_group_count", 2 },     { "expert_group_used_count", 1 },
	};
	char key[96];

	begin(g, "deepseek2");
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		snprintf(key, sizeof key, "deepseek2.%s", keys[i].key);
		gg_key_u32(g, key, keys[i].x);
	}
	gg_key_f32(g, "deepseek2.expert_weights_scale", 2.5f);
	gg_key_u32(g, "deepseek2.expert_gating_func", gating);
}

static void one_architecture_is_two_families_by_how_experts_are_chosen(void)
{
	toy_gguf g;

	begin_deepseek(&g, 1);
	end(&g);
	FIELD(&g, NULL, "model_type", "\"deepseek_v2\"");
	begin_deepseek(&g, 1);
	end(&g);
	FIELD(&g, NULL, "topk_method", "\"group_limited_greedy\"");
	begin_deepseek(&g, 2);
	end(&g);
	FIELD(&g, NULL, "model_type", "\"deepseek_v3\"");
	begin_deepseek(&g, 2);
	end(&g);
	FIELD(&g, NULL, "topk_method", "(absent)");
	begin_deepseek(&g, 2);
	end(&g);
	FIELD(&g, NULL, "q_lora_rank", "null");
	begin_deepseek(&g, 2);
	end(&g);
	FIELD(&g, NULL, "qk_nope_head_dim", "4");
	begin_deepseek(&g, 1);
	gg_key_text(&g, "deepseek2.rope.scaling.type", "yarn");
	gg_key_f32(&g, "deepseek2.rope.scaling.factor", 40.0f);
	gg_key_f32(&g, "deepseek2.rope.scaling.yarn_log_multiplier", 0.0707f);
	end(&g);
	FIELD(&g, "rope_parameters", "mscale_all_dim", "0.707");
	begin_deepseek(&g, 4);
	end(&g);
	refused(&g, VN_ERR_UNSUPPORTED, "'deepseek2.expert_gating_func' is 4", "not supported");
	begin(&g, "qwen3moe");
	gg_key_u32(&g, "qwen3moe.expert_count", 4), gg_key_u32(&g, "qwen3moe.expert_gating_func", 2);
	end(&g);
	refused(&g, VN_ERR_UNSUPPORTED, "'qwen3moe.expert_gating_func' is 2", "not supported");
	begin(&g, "deepseek2");
	end(&g);
	refused(&g, VN_ERR_FORMAT, "'deepseek2.rope.dimension_count'", "missing");
}

static void halves_of_a_matrix_that_do_not_fit_are_refused(void)
{
	static const float data[512];
	toy_gguf           g;

	for (int both = 0; both < 2; both++)
		for (int values = 0; values < 2 - both; values++) {
			begin_deepseek(&g, 1);
			gg_tensor(&g, "token_embd.weight", 16, 8, F32, 512);
			gg_tensor(&g, values ? "blk.0.attn_v_b.weight" : "blk.0.attn_k_b.weight", 4, 8, F32, 128);
			if (both)
				gg_tensor(&g, "blk.0.attn_v_b.weight", 8, 4, F32, 128);
			gg_data(&g, data, both ? 768 : 640);
			if (both)
				refused(&g, VN_ERR_SHAPE, "attn_k_b.weight' and 'blk.0.attn_v_b", "do not fit together");
			else
				refused(&g, VN_ERR_NOTFOUND, values ? "attn_v_b" : "attn_k_b",
				        values ? "no other half, attn_k_b" : "no other half, attn_v_b");
		}
}

/* Sizes beside a 0 may be large: no loop may count them, and their product must fit. */
static void halves_without_numbers_take_no_time(void)
{
	static const float data[128];
	toy_gguf           g;
	vn_source         *s;
	vn_error           e;

	begin_deepseek(&g, 1);
	gg_tensor(&g, "token_embd.weight", 16, 8, F32, 512);
	gg_entry(&g, "blk.0.attn_k_b.weight", 3, (const uint64_t[]) { 0, 8, 1ull << 57 }, F32, 512);
	gg_entry(&g, "blk.0.attn_v_b.weight", 3, (const uint64_t[]) { 8, 0, 1ull << 57 }, F32, 512);
	gg_data(&g, data, sizeof data);
	CU_ASSERT_EQUAL_FATAL(source_of(&g, &s, &e), VN_OK);
	CU_ASSERT_EQUAL(vn_source_find(s, "model.layers.0.self_attn.kv_b_proj.weight")->bytes, 0);
	vn_source_close(s);
	begin(&g, "qwen2");
	gg_entry(&g, "token_embd.weight", 3, (const uint64_t[]) { 0, 1ull << 60, 8 }, F32, 0);
	gg_data(&g, data, sizeof data);
	refused(&g, VN_ERR_FORMAT, "'token_embd.weight'", "overflows");
}

static void keys_become_fields(void)
{
	toy_gguf g;

	begin(&g, "qwen2");
	gg_key_array(&g, "qwen2.attention.value_length", GG_U32, 2), gg_u32(&g, 4), gg_u32(&g, 4);
	gg_key_f32(&g, "qwen2.attention.scale", 0.5f);
	gg_key_f32(&g, "qwen2.logit_scale", 1.0f);
	end(&g);
	FIELD(&g, NULL, "head_dim", "4");
	begin(&g, "qwen2");
	gg_key_f32(&g, "qwen2.rope.freq_base", 1e6f);
	gg_key_text(&g, "qwen2.rope.scaling.type", "linear");
	gg_key_f32(&g, "qwen2.rope.scaling.factor", 2.5f);
	end(&g);
	FIELD(&g, NULL, "rope_parameters", "{\"rope_type\":\"linear\",\"rope_theta\":1000000.0,\"factor\":2.5}");
	/* a factor alone is a linear one, unless it does nothing or the type says none */
	begin(&g, "qwen2");
	gg_key_f32(&g, "qwen2.rope.scaling.factor", 2.5f);
	end(&g);
	FIELD(&g, NULL, "rope_parameters", "{\"rope_type\":\"linear\",\"rope_theta\":10000.0,\"factor\":2.5}");
	for (int none = 0; none < 2; none++) {
		begin(&g, "qwen2");
		gg_key_f32(&g, "qwen2.rope.scaling.factor", none ? 2.5f : 1.0f);
		if (none)
			gg_key_text(&g, "qwen2.rope.scaling.type", "none");
		end(&g);
		FIELD(&g, NULL, "rope_parameters", "{\"rope_type\":\"default\",\"rope_theta\":10000.0}");
	}
	begin(&g, "qwen2");
	gg_key(&g, "qwen2.rope.freq_base", GG_F64), gg_bytes(&g, (const double[]) { 1e6 / 3 }, 8);
	end(&g);
	vn_source *s;
	vn_error   e;
	CU_ASSERT_EQUAL_FATAL(source_of(&g, &s, &e), VN_OK);
	json_t *j = parse(s->config); /* a double keeps all of its digits */
	CU_ASSERT_EQUAL(json_number_value(json_object_get(json_object_get(j, "rope_parameters"), "rope_theta")), 1e6 / 3);
	json_decref(j);
	vn_source_close(s);
	begin(&g, "llama");
	gg_key_f32(&g, "llama.rope.scale_linear", 4.0f);
	gg_key_u32(&g, "llama.rope.dimension_count", 4);
	end(&g);
	FIELD(&g, NULL, "rope_parameters", "{\"rope_type\":\"linear\",\"rope_theta\":10000.0,\"factor\":4.0}");
	begin(&g, "qwen3");
	gg_key_text(&g, "qwen3.rope.scaling.type", "yarn");
	gg_key_f32(&g, "qwen3.rope.scaling.factor", 4.0f);
	gg_key_u32(&g, "qwen3.rope.scaling.original_context_length", 8);
	gg_key_f32(&g, "qwen3.rope.scaling.yarn_attn_factor", 1.1f);
	gg_key_f32(&g, "qwen3.rope.scaling.yarn_beta_fast", 16.0f);
	gg_key_f32(&g, "qwen3.rope.scaling.yarn_beta_slow", 2.0f);
	end(&g);
	FIELD(&g, NULL, "rope_parameters",
	      "{\"rope_type\":\"yarn\",\"rope_theta\":10000.0,\"attention_factor\":1.1,"
	      "\"original_max_position_embeddings\":8,"
	      "\"factor\":4.0,\"beta_fast\":16.0,\"beta_slow\":2.0}");
	begin(&g, "qwen2");
	gg_key_u32(&g, "qwen2.attention.sliding_window", 8);
	gg_key_array(&g, "qwen2.attention.sliding_window_pattern", GG_BOOL, 1), gg_bytes(&g, "\1", 1);
	end(&g);
	FIELD(&g, NULL, "layer_types", "[\"sliding_attention\"]");
	begin(&g, "llama");
	gg_key_u32(&g, "llama.attention.sliding_window", 8);
	end(&g);
	FIELD(&g, NULL, "model_type", "\"mistral\"");
	begin(&g, "llama");
	gg_key_u32(&g, "llama.vocab_size", 7);
	end(&g);
	FIELD(&g, NULL, "vocab_size", "7");
	/* every share of a head must truncate to the columns that were meant */
	for (uint32_t R = 2; R <= 62; R += 2) {
		begin(&g, "qwen3");
		gg_key_u32(&g, "qwen3.attention.key_length", 63);
		gg_key_u32(&g, "qwen3.attention.value_length", 63);
		gg_key_u32(&g, "qwen3.rope.dimension_count", R);
		end(&g);
		char *text = field(&g, "rope_parameters", "partial_rotary_factor");
		CU_ASSERT(text && (uint32_t)(63 * strtod(text, NULL)) == R);
		free(text);
	}
}

static void gpt2_with_its_embedding_twice_is_tied(void)
{
	const char *tied[] = { "true", "false" };
	float       data[256] = { 0 };
	toy_gguf    g;

	for (int differ = 0; differ < 2; differ++) {
		begin(&g, "gpt2");
		gg_tensor(&g, "token_embd.weight", 16, 8, F32, 512);
		gg_tensor(&g, "output.weight", 16, 8, F32, 512);
		data[255] = (float)differ;
		gg_data(&g, data, 1024);
		FIELD(&g, NULL, "tie_word_embeddings", tied[differ]);
	}
}

static void names_that_are_not_in_the_table_stay_and_are_told(void)
{
	static const float data[1024];
	toy_gguf           g;
	vn_source         *s;
	vn_error           e;

	begin(&g, "qwen35");
	g.p[block_count] = 2; /* one of them of the next-token module */
	gg_key_u32(&g, "qwen35.ssm.conv_kernel", 4), gg_key_u32(&g, "qwen35.ssm.state_size", 4),
		gg_key_u32(&g, "qwen35.ssm.group_count", 2);
	gg_key_u32(&g, "qwen35.ssm.time_step_rank", 2), gg_key_u32(&g, "qwen35.ssm.inner_size", 8),
		gg_key_u32(&g, "qwen35.nextn_predict_layers", 1);
	const char *name[] = { "token_embd.weight",      "blk.0.attn_norm.weight",
		                   "blk.0.what.weight",      "blk.00.attn_norm.weight",
		                   "blk.1.attn_norm.weight", "blk.1.nextn.eh_proj.weight",
		                   "blk.2.attn_norm.weight", "blk.0.attn_norm.scale",
		                   "blk.x.attn_norm.weight", "blk.0.ssm_a" };
	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		gg_tensor(&g, name[i], 16, i ? 0 : 8, F32, i ? 64 : 512);
	gg_data(&g, data, 1100);
	CU_ASSERT_EQUAL_FATAL(source_of(&g, &s, &e), VN_OK);
	const char *want[] = { "blk.0.attn_norm.scale",
		                   "blk.0.what.weight",
		                   "blk.00.attn_norm.weight",
		                   "blk.x.attn_norm.weight",
		                   "model.embed_tokens.weight",
		                   "model.layers.0.input_layernorm.weight",
		                   "model.layers.0.linear_attn.A_log",
		                   "model.layers.2.input_layernorm.weight",
		                   "mtp.fc.weight",
		                   "mtp.layers.0.input_layernorm.weight" };
	CU_ASSERT_EQUAL_FATAL(s->n, sizeof want / sizeof *want);
	for (size_t i = 0; i < s->n; i++)
		CU_ASSERT_STRING_EQUAL(s->tensor[i].name, want[i]);
	CU_ASSERT_EQUAL(*(const float *)(const void *)vn_source_find(s, "model.layers.0.input_layernorm.weight")->data,
	                -1.0f);
	CU_ASSERT_EQUAL(*(const float *)(const void *)vn_source_find(s, "model.layers.0.linear_attn.A_log")->data,
	                -INFINITY); /* log 0 */
	vn_source_close(s);
}

/* Without the count, a head of two blocks would be one whose weights are missing. */
static void blocks_of_the_next_token_module_are_counted(void)
{
	toy_gguf g;

	begin(&g, "qwen35");
	g.p[block_count] = 3;
	gg_key_u32(&g, "qwen35.ssm.conv_kernel", 4), gg_key_u32(&g, "qwen35.ssm.state_size", 4),
		gg_key_u32(&g, "qwen35.ssm.group_count", 2);
	gg_key_u32(&g, "qwen35.ssm.time_step_rank", 2), gg_key_u32(&g, "qwen35.ssm.inner_size", 8),
		gg_key_u32(&g, "qwen35.nextn_predict_layers", 2);
	end(&g);
	FIELD(&g, NULL, "mtp_num_hidden_layers", "2");
}

static void a_tensor_that_its_change_does_not_fit_is_named(void)
{
	static const float data[4096] = { 1 };
	const struct {
		const char *arch, *name;
		uint64_t    inner, outer;
		vn_status   st;
		const char *word;
	} row[] = {
		{ "llama", "blk.0.attn_q.weight", 16, 18, VN_ERR_SHAPE, "rows for whole heads" },
		{ "llama", "blk.0.attn_k.weight", 16, 6, VN_ERR_SHAPE, "rows for whole heads" },
		{ "qwen35", "blk.0.attn_qkv.weight", 16, 9, VN_ERR_SHAPE, "rows for the value heads" },
		{ "qwen35", "blk.0.attn_gate.weight", 16, 7, VN_ERR_SHAPE, "rows for the value heads" },
		{ "qwen35", "blk.0.ssm_alpha.weight", 16, 12, VN_ERR_SHAPE, "rows for the value heads" },
		{ "qwen35", "blk.0.ssm_out.weight", 16, 16, VN_ERR_SHAPE, "columns for the value heads" },
		{ "qwen35", "blk.0.ssm_conv1d.weight", 16, 0, VN_ERR_SHAPE, "a matrix" },
		{ "qwen35", "blk.0.ssm_a", 6, 0, VN_ERR_FORMAT, "element 0 is 1" },
	};
	toy_gguf g;

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		begin(&g, row[i].arch);
		gg_key_u32(&g, "qwen35.ssm.conv_kernel", 4), gg_key_u32(&g, "qwen35.ssm.state_size", 4),
			gg_key_u32(&g, "qwen35.ssm.group_count", 2);
		gg_key_u32(&g, "qwen35.ssm.time_step_rank", 6), gg_key_u32(&g, "qwen35.ssm.inner_size", 24);
		gg_tensor(&g, row[i].name, row[i].inner, row[i].outer, F32,
		          (size_t)(4 * row[i].inner * (row[i].outer + !row[i].outer)));
		gg_tensor(&g, "token_embd.weight", 16, 8, F32, 512);
		gg_data(&g, data, sizeof data);
		refused(&g, row[i].st, row[i].name, row[i].word);
	}
	begin(&g, "qwen35");
	gg_key_u32(&g, "qwen35.ssm.conv_kernel", 4), gg_key_u32(&g, "qwen35.ssm.state_size", 4),
		gg_key_u32(&g, "qwen35.ssm.group_count", 4);
	gg_key_u32(&g, "qwen35.ssm.time_step_rank", 6), gg_key_u32(&g, "qwen35.ssm.inner_size", 24);
	gg_tensor(&g, "blk.0.ssm_beta.weight", 16, 6, F32, 384);
	gg_tensor(&g, "token_embd.weight", 16, 8, F32, 512);
	gg_data(&g, data, 1024);
	refused(&g, VN_ERR_FORMAT, "6 value heads cannot share 4 key heads", "");
	begin(&g, "qwen35");
	gg_key_u32(&g, "qwen35.ssm.conv_kernel", 4), gg_key_u32(&g, "qwen35.ssm.state_size", 1u << 21),
		gg_key_u32(&g, "qwen35.ssm.group_count", 4);
	gg_key_u32(&g, "qwen35.ssm.time_step_rank", 6), gg_key_u32(&g, "qwen35.ssm.inner_size", 24);
	end(&g);
	refused(&g, VN_ERR_FORMAT, "ssm.state_size", "at most");
	begin(&g, "gpt2");
	gg_tensor(&g, "transformer.wte.weight", 16, 8, F32, 512); /* under the name it would have come to */
	gg_tensor(&g, "token_embd.weight", 16, 8, F32, 512);
	gg_data(&g, data, 1024);
	refused(&g, VN_ERR_FORMAT, "two tensors of the file map to transformer.wte.weight", "");
}

/* ---- llama3 ---------------------------------------------------------------------------- */

static void add_divisors(toy_gguf *g, double theta, int R, double factor, double low, double high, double original,
                         double change)
{
	float d[256];

	begin(g, "llama");
	gg_key_f32(g, "llama.rope.freq_base", (float)theta);
	gg_key_u32(g, "llama.attention.key_length", (uint32_t)R);
	gg_key_u32(g, "llama.attention.value_length", (uint32_t)R);
	for (int i = 0; i < R / 2; i++) { /* models.md 1.6 over 1.5 */
		const double length = 2 * acos(-1.0) * pow(theta, 2.0 * i / R);
		const double t = (original / length - low) / (high - low);
		d[i] = (float)(length < original / high ? 1 : length > original / low ? factor : 1 / ((1 - t) / factor + t));
	}
	d[R / 2 - 1] = (float)((double)d[R / 2 - 1] * change);
	gg_tensor(g, "rope_freqs.weight", (uint64_t)R / 2, 0, F32, (size_t)R / 2 * 4);
	gg_tensor(g, "token_embd.weight", 16, 8, F32, 512);
	gg_data(g, d, (size_t)R / 2 * 4);
	while (g->n % 32)
		gg_bytes(g, "", 1);
	gg_bytes(g, (const float[128]) { 0 }, 512);
}

static void llama3_scaling_is_found_from_its_divisors(void)
{
	/* the fourth is the first with other words: all depends on original / low
	 * and original / high */
	const struct {
		double theta;
		int    R;
		double factor, low, high, original;
	} row[] = {
		{ 500000, 128, 8, 1, 4, 8192 },   { 500000, 64, 32, 1, 4, 8192 },  { 10000, 64, 16, 1, 4, 1024 },
		{ 500000, 128, 8, 2, 8, 16384 },  { 500000, 128, 4, 1, 4, 65536 }, { 10000, 128, 8, 1, 8, 4096 },
		{ 500000, 128, 2.5, 1, 4, 8192 },
	};
	toy_gguf g;

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		char want[256];
		add_divisors(&g, row[i].theta, row[i].R, row[i].factor, row[i].low, row[i].high, row[i].original, 1);
		snprintf(want, sizeof want,
		         "{\"rope_type\":\"llama3\",\"rope_theta\":%.1f,\"factor\":%.1f,\"low_freq_factor\":%.1f,"
		         "\"high_freq_factor\":%.1f,\"original_max_position_embeddings\":%.0f}",
		         row[i].theta, row[i].factor, 1.0, row[i].high / row[i].low, row[i].original / row[i].low);
		FIELD(&g, NULL, "rope_parameters", want);
	}
	add_divisors(&g, 500000, 128, 8, 1, 4, 8192, 1.01);
	refused(&g, VN_ERR_UNSUPPORTED, "rope_freqs.weight", "llama3");
	add_divisors(&g, 500000, 128, 8, 1, 4, 8192, -1);
	refused(&g, VN_ERR_UNSUPPORTED, "rope_freqs.weight", "llama3");
	add_divisors(&g, 500000, 128, 8, 1, 4, 8192, NAN);
	refused(&g, VN_ERR_UNSUPPORTED, "rope_freqs.weight", "llama3");
	begin(&g, "llama");
	gg_tensor(&g, "rope_freqs.weight", 3, 0, F32, 12); /* heads of 4 have two pairs */
	gg_tensor(&g, "token_embd.weight", 16, 8, F32, 512);
	gg_data(&g, (const float[256]) { 1, 1, 1 }, 1024);
	refused(&g, VN_ERR_SHAPE, "rope_freqs.weight", "2 pairs");
}

static void the_divisors_are_no_weight_of_the_model(void)
{
	vn_source *s = open_twin("llama-tiny.f32.gguf");
	CU_ASSERT_PTR_NULL(vn_source_find(s, "rope_freqs.weight"));
	vn_source_close(s);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(every_weight_of_every_twin_is_what_was_put_in),
		TEST(the_config_comes_back_from_the_metadata),
		TEST(a_source_says_what_held_the_weights),
		TEST(the_twin_in_float32_is_the_same_model),
		TEST(only_what_was_changed_is_copied),
		TEST(rows_keep_their_format_and_cut_blocks_become_floats),
		TEST(metadata_that_asks_for_more_is_refused_by_name),
		TEST(one_architecture_is_two_families_by_how_experts_are_chosen),
		TEST(halves_of_a_matrix_that_do_not_fit_are_refused),
		TEST(halves_without_numbers_take_no_time),
		TEST(keys_become_fields),
		TEST(gpt2_with_its_embedding_twice_is_tied),
		TEST(names_that_are_not_in_the_table_stay_and_are_told),
		TEST(blocks_of_the_next_token_module_are_counted),
		TEST(a_tensor_that_its_change_does_not_fit_is_named),
		TEST(llama3_scaling_is_found_from_its_divisors),
		TEST(the_divisors_are_no_weight_of_the_model),
		CU_TEST_INFO_NULL,
	};
	return run_suite("gguf_source", tests);
}
