/* test_config.c: config.json, field by field, and as the page of Qwen2 reads it. The
 * other families: test_families.c. */
#include "tests/support/suite.h"
#include "tests/support/test_config_help.h"

static vn_rope rope_of(const char *fields)
{
	vn_plan *p = accepted(fields);
	vn_rope  r = node_of(p, "layer0.q_rope")->c.rope.rope;

	vn_plan_destroy(p);
	return r;
}

/* ---- single fields ------------------------------------------------------------------ */

static void an_absent_or_null_field_keeps_the_default(void)
{
	json_t *o = json("{\"n\":null}");
	int     i = 7;
	double  x = 1.5;
	bool    b = true;
	vn_act  a = VN_N_ACTS;

	CU_ASSERT_EQUAL(vn_config_int("c", o, "n", 0, 9, &i, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_config_int("c", o, "none", 0, 9, &i, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_config_real("c", o, "n", 0, 9, &x, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_config_bool("c", o, "n", &b, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_config_act("c", o, "n", &a, NULL), VN_OK);
	CU_ASSERT_EQUAL(i, 7);
	CU_ASSERT_EQUAL(x, 1.5);
	CU_ASSERT_TRUE(b);
	CU_ASSERT_EQUAL(a, VN_N_ACTS);
	json_decref(o);
}

static void a_field_of_another_type_or_out_of_range_is_refused_by_name(void)
{
	const char *bad[] = { "{\"n\":\"3\"}", "{\"n\":true}", "{\"n\":[3]}",   "{\"n\":3.5}",
		                  "{\"n\":-1}",    "{\"n\":10}",   "{\"n\":1e300}", "{\"n\":-1e300}" };
	vn_error    e;

	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		json_t *o = json(bad[k]);
		int     i = 7;
		double  x = 7;
		e.text[0] = '\0';
		CU_ASSERT_EQUAL(vn_config_int("c.json", o, "n", 0, 9, &i, &e), VN_ERR_FORMAT);
		CU_ASSERT_STRING_EQUAL(e.text, "c.json: n must be a whole number from 0 to 9");
		CU_ASSERT_EQUAL(i, 7);
		if (k != 3) {
			CU_ASSERT_EQUAL(vn_config_real("c.json", o, "n", 0, 9, &x, &e), VN_ERR_FORMAT);
			CU_ASSERT_STRING_EQUAL(e.text, "c.json: n must be a number from 0 to 9");
			CU_ASSERT_EQUAL(x, 7.0);
		}
		json_decref(o);
	}
	json_t *o = json("{\"n\":1}");
	bool    b = true;
	CU_ASSERT_EQUAL(vn_config_bool("c.json", o, "n", &b, &e), VN_ERR_FORMAT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "n must be true or false"));
	CU_ASSERT_TRUE(b);
	json_decref(o);
}

static void a_whole_number_may_be_written_as_a_real(void)
{
	json_t *o = json("{\"n\":3.0}");
	int     i = 7;

	CU_ASSERT_EQUAL(vn_config_int("c", o, "n", 0, 9, &i, NULL), VN_OK);
	CU_ASSERT_EQUAL(i, 3);
	json_decref(o);
}

static void activations_are_known_by_transformers_names(void)
{
	const struct {
		const char *fields;
		vn_act      act;
	} row[] = {
		{ "{\"hidden_act\":\"silu\"}", VN_SILU },
		{ "{\"hidden_act\":\"swish\"}", VN_SILU },
		{ "{\"hidden_act\":null}", VN_SILU },
		{ "{\"hidden_act\":\"gelu\"}", VN_GELU },
		{ "{\"hidden_act\":\"gelu_new\"}", VN_GELU_TANH },
		{ "{\"hidden_act\":\"gelu_pytorch_tanh\"}", VN_GELU_TANH },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		vn_plan *p = accepted(row[i].fields);
		CU_ASSERT_EQUAL(node_of(p, "layer0.mlp_act")->c.act.act, row[i].act);
		CU_ASSERT_EQUAL(node_of(p, "layer0.gate_act")->c.act.act, row[i].act);
		vn_plan_destroy(p);
	}
	refused("{\"hidden_act\":\"relu\"}", VN_ERR_UNSUPPORTED, "hidden_act 'relu'");
	refused("{\"hidden_act\":\"quick_gelu\"}", VN_ERR_UNSUPPORTED, "hidden_act 'quick_gelu'");
	refused("{\"hidden_act\":\"sigmoid\"}", VN_ERR_UNSUPPORTED, "hidden_act 'sigmoid'");
	refused("{\"hidden_act\":\"SiLU\"}", VN_ERR_UNSUPPORTED, "hidden_act 'SiLU'");
	refused("{\"hidden_act\":7}", VN_ERR_UNSUPPORTED, "hidden_act '(not a string)'");
}

/* ---- the family ------------------------------------------------------------------------ */

static void a_longer_name_of_a_recurrent_family_is_recurrent(void)
{
	CU_ASSERT(vn_family_is_recurrent("qwen3_5") && vn_family_is_recurrent("qwen3_5_text"));
	CU_ASSERT(vn_family_is_recurrent("qwen3_5_moe"));
	CU_ASSERT(!vn_family_is_recurrent("qwen3") && !vn_family_is_recurrent("") && !vn_family_is_recurrent(NULL));
}

static void the_family_is_found_by_model_type_and_others_are_refused_by_name(void)
{
	const vn_family *f = NULL;
	vn_error         e;
	json_t          *o = json("{\"model_type\":\"qwen2\"}");

	CU_ASSERT_EQUAL(vn_family_find("c.json", o, &f, &e), VN_OK);
	CU_ASSERT_STRING_EQUAL(f->model_type, "qwen2");
	json_object_set_new(o, "model_type", json_string("bert"));
	CU_ASSERT_EQUAL(vn_family_find("c.json", o, &f, &e), VN_ERR_UNSUPPORTED);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "c.json: model_type 'bert'"));
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "qwen2"));
	json_object_set_new(o, "model_type", json_integer(2));
	CU_ASSERT_EQUAL(vn_family_find("c.json", o, &f, &e), VN_ERR_FORMAT);
	json_object_del(o, "model_type");
	CU_ASSERT_EQUAL(vn_family_find("c.json", o, &f, &e), VN_ERR_FORMAT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "model_type is missing"));
	json_decref(o);
}

/* The class defaults of transformers, not those of a published model. */
static void missing_fields_take_the_class_defaults(void)
{
	json_t  *o = json("{\"model_type\":\"qwen2\",\"num_hidden_layers\":1}");
	vn_plan *p;
	vn_error e;

	CU_ASSERT_EQUAL_FATAL(vn_family_qwen2.plan("c.json", o, &p, &e), VN_OK);
	CU_ASSERT_EQUAL(p->vocab, 151936);
	CU_ASSERT_EQUAL(p->context, 32768);
	CU_ASSERT_EQUAL(width(p, "embed", 1), 4096);
	CU_ASSERT_EQUAL(width(p, "layer0.gate_proj", 1), 22016);
	CU_ASSERT_EQUAL(width(p, "layer0.q_proj", 1), 32);
	CU_ASSERT_EQUAL(width(p, "layer0.k_proj", 1), 32);
	CU_ASSERT_EQUAL(width(p, "layer0.q_proj", 2), 128);
	CU_ASSERT_EQUAL(node_of(p, "layer0.attn_norm")->c.norm.eps, 1e-6);
	CU_ASSERT_EQUAL(node_of(p, "layer0.q_rope")->c.rope.rope.theta, 10000.0);
	CU_ASSERT_EQUAL(node_of(p, "layer0.attn_context")->c.attention.window, 0);
	CU_ASSERT_EQUAL(node_of(p, "layer0.attn_context")->c.attention.scale, 1.0 / sqrt(128.0));
	CU_ASSERT_STRING_EQUAL(p->weight[p->n_weights - 1].name, "lm_head.weight"); /* untied */
	vn_plan_destroy(p);
	json_object_del(o, "num_hidden_layers");
	CU_ASSERT_EQUAL_FATAL(vn_family_qwen2.plan("c.json", o, &p, &e), VN_OK);
	CU_ASSERT_EQUAL(p->layers, 32);
	vn_plan_destroy(p);
	json_decref(o);
}

static void key_value_heads_null_is_as_many_as_heads_and_absent_is_the_default(void)
{
	vn_plan *p = accepted("{\"num_key_value_heads\":null}");

	CU_ASSERT_EQUAL(width(p, "layer0.k_proj", 1), 4);
	vn_plan_destroy(p);
	refused("{\"num_key_value_heads\":\"(absent)\"}", VN_ERR_FORMAT, "4 heads cannot share 32 key/value heads");
	p = accepted("{\"num_key_value_heads\":\"(absent)\",\"num_attention_heads\":64,\"hidden_size\":256}");
	CU_ASSERT_EQUAL(width(p, "layer0.k_proj", 1), 32);
	vn_plan_destroy(p);
}

static void the_head_width_is_read_or_derived(void)
{
	vn_plan *p = accepted("{\"head_dim\":6}");

	CU_ASSERT_EQUAL(width(p, "layer0.q_proj", 2), 6);
	CU_ASSERT_EQUAL(node_of(p, "layer0.q_rope")->c.rope.rope.rotary_dim, 6);
	CU_ASSERT_EQUAL(node_of(p, "layer0.attn_context")->c.attention.scale, 1.0 / sqrt(6.0));
	vn_plan_destroy(p);
	p = accepted("{\"head_dim\":null}");
	CU_ASSERT_EQUAL(width(p, "layer0.q_proj", 2), 4);
	vn_plan_destroy(p);
	vn_plan_destroy(accepted("{\"head_dim\":4,\"hidden_size\":18}"));
	refused("{\"hidden_size\":18}", VN_ERR_FORMAT, "hidden_size 18 is not a multiple of 4 heads");
	refused("{\"hidden_size\":2}", VN_ERR_FORMAT, "");
	refused("{\"head_dim\":5}", VN_ERR_UNSUPPORTED, "rotary width is 5");
}

static void heads_must_share_key_value_heads_evenly(void)
{
	refused("{\"num_key_value_heads\":3}", VN_ERR_FORMAT, "4 heads cannot share 3");
	refused("{\"num_key_value_heads\":8}", VN_ERR_FORMAT, "4 heads cannot share 8");
}

static void sizes_out_of_range_are_refused_by_name(void)
{
	const char *field[] = {
		"vocab_size",          "hidden_size",         "intermediate_size", "num_hidden_layers",
		"num_attention_heads", "num_key_value_heads", "head_dim",          "max_position_embeddings"
	};
	const char *value[] = { "0", "-1", "2.5", "\"8\"", "9007199254740993", "1e30", "false", "{}" };
	char        json_text[128];

	for (size_t i = 0; i < sizeof field / sizeof *field; i++)
		for (size_t j = 0; j < sizeof value / sizeof *value; j++) {
			snprintf(json_text, sizeof json_text, "{\"%s\":%s}", field[i], value[j]);
			refused(json_text, VN_ERR_FORMAT, field[i]);
		}
	refused("{\"rms_norm_eps\":-1e-6}", VN_ERR_FORMAT, "rms_norm_eps");
	refused("{\"rms_norm_eps\":\"1e-6\"}", VN_ERR_FORMAT, "rms_norm_eps");
	refused("{\"tie_word_embeddings\":1}", VN_ERR_FORMAT, "tie_word_embeddings");
	refused("{\"use_sliding_window\":\"yes\"}", VN_ERR_FORMAT, "use_sliding_window");
	refused("{\"use_sliding_window\":true,\"sliding_window\":0}", VN_ERR_FORMAT, "sliding_window");
}

static void the_largest_model_is_planned_in_a_moment(void)
{
	refused("{\"num_hidden_layers\":1000000}", VN_ERR_FORMAT, "num_hidden_layers");
	vn_plan *p = accepted("{\"num_hidden_layers\":1024}");
	CU_ASSERT_EQUAL(p->layers, 1024);
	CU_ASSERT(vn_plan_find(p, "layer1023.output") >= 0);
	vn_plan_destroy(p);
}

static void unknown_fields_are_ignored(void)
{
	vn_plan_destroy(
		accepted("{\"torch_dtype\":\"bfloat16\",\"dtype\":7,\"unheard_of\":{\"a\":[]},\"architectures\":[\"X\"]}"));
}

static void refused_of_all(const char *text, const char *want)
{
	json_t  *o = json(text);
	vn_error e = { "" };

	CU_ASSERT_EQUAL(vn_config_refuse("c.json", &vn_family_qwen2, o, &e), VN_ERR_UNSUPPORTED);
	CU_ASSERT_STRING_EQUAL(e.text, want);
	json_decref(o);
}

/* transformers obeys the first four in every family, whatever its page says. */
static void what_no_family_has_is_refused_by_name(void)
{
	refused_of_all("{\"is_causal\":false}", "c.json: is_causal false is not supported");
	refused_of_all("{\"is_causal\":null}", "c.json: is_causal null is not supported");
	refused_of_all("{\"per_layer_config\":{\"1\":{\"sliding_window\":4}}}",
	               "c.json: per_layer_config is not supported");
	refused_of_all("{\"quantization_config\":{}}", "c.json: quantization_config: quantised weights are not supported");
	refused_of_all("{\"text_config\":{\"is_causal\":false}}", "c.json: is_causal false is not supported");
	refused_of_all("{\"logits_scaling\":4.0}", "c.json: logits_scaling 4 is not supported");
	refused_of_all("{\"final_logit_softcapping\":30}", "c.json: final_logit_softcapping 30 is not supported");
	refused_of_all("{\"use_bidirectional_attention\":true}",
	               "c.json: use_bidirectional_attention true is not supported");
	refused_of_all("{\"rope_interleaved\":\"yes\"}", "c.json: rope_interleaved \"yes\" is not supported");

	json_t *o = json(
		"{\"is_causal\":true,\"per_layer_config\":{},\"quantization_config\":null,\"logits_scaling\":1.0,"
		"\"logit_scale\":1,\"rope_interleaved\":false,\"attn_logit_softcapping\":null,\"attention_chunk_size\":0,"
		"\"text_config\":7}");
	vn_error e;
	CU_ASSERT_EQUAL(vn_config_refuse("c.json", &vn_family_qwen2, o, &e), VN_OK);
	json_decref(o);
}

static vn_status refused_of(const vn_family *f, const char *text, vn_error *e)
{
	json_t         *o = json(text);
	const vn_status st = vn_config_refuse("c.json", f, o, e);

	json_decref(o);
	return st;
}

static void a_setting_that_only_another_family_obeys_is_refused(void)
{
	vn_error e = { "" };

	CU_ASSERT_EQUAL(refused_of(&vn_family_llama, "{\"attention_bias\":true}", &e), VN_OK);
	CU_ASSERT_EQUAL(refused_of(&vn_family_qwen2, "{\"attention_bias\":true}", &e), VN_ERR_UNSUPPORTED);
	CU_ASSERT_STRING_EQUAL(e.text, "c.json: attention_bias true is not supported");
	CU_ASSERT_EQUAL(refused_of(&vn_family_qwen2, "{\"attention_bias\":false,\"mlp_bias\":null}", &e), VN_OK);
	CU_ASSERT_EQUAL(refused_of(&vn_family_llama, "{\"sliding_window\":4096}", &e), VN_ERR_UNSUPPORTED);
	CU_ASSERT_EQUAL(refused_of(&vn_family_mistral, "{\"sliding_window\":4096}", &e), VN_OK);
	/* Qwen2's switch, as its configs have it */
	CU_ASSERT_EQUAL(refused_of(&vn_family_llama, "{\"sliding_window\":4096,\"use_sliding_window\":false}", &e), VN_OK);
	CU_ASSERT_EQUAL(refused_of(&vn_family_qwen3_5_text, "{\"scale_attn_by_inverse_layer_idx\":true}", &e),
	                VN_ERR_UNSUPPORTED);
	CU_ASSERT_EQUAL(refused_of(&vn_family_gpt2, "{\"scale_attn_by_inverse_layer_idx\":true}", &e), VN_OK);
}

/* ---- windows ------------------------------------------------------------------------------ */

static void a_window_counts_from_max_window_layers_on_and_only_when_used(void)
{
	windows("{\"sliding_window\":8,\"max_window_layers\":2}", 0, 0, 0, 0);
	windows("{\"sliding_window\":0,\"max_window_layers\":2}", 0, 0, 0, 0);
	windows("{\"use_sliding_window\":false,\"sliding_window\":8,\"max_window_layers\":0}", 0, 0, 0, 0);
	windows("{\"use_sliding_window\":true,\"sliding_window\":8,\"max_window_layers\":2}", 0, 0, 8, 8);
	windows("{\"use_sliding_window\":true,\"sliding_window\":8,\"max_window_layers\":0}", 8, 8, 8, 8);
	windows("{\"use_sliding_window\":true,\"sliding_window\":8}", 0, 0, 0, 0); /* 28 full layers */
}

static void a_window_of_null_is_none_and_an_absent_one_is_4096(void)
{
	windows("{\"use_sliding_window\":true,\"max_window_layers\":1}", 0, 4096, 4096, 4096);
	windows("{\"use_sliding_window\":true,\"max_window_layers\":1,\"sliding_window\":null}", 0, 0, 0, 0);
}

static void layer_types_decide_when_they_are_given(void)
{
	windows("{\"use_sliding_window\":true,\"sliding_window\":8,\"max_window_layers\":0,\"layer_types\":"
	        "[\"full_attention\",\"sliding_attention\",\"full_attention\",\"sliding_attention\"]}",
	        0, 8, 0, 8);
	windows("{\"use_sliding_window\":true,\"sliding_window\":8,\"max_window_layers\":2,\"layer_types\":null}", 0, 0, 8,
	        8);
	windows("{\"use_sliding_window\":true,\"sliding_window\":8,\"layer_types\":"
	        "[\"sliding_attention\",\"full_attention\",\"full_attention\",\"full_attention\"]}",
	        8, 0, 0, 0);
}

static void layer_types_that_do_not_fit_are_refused(void)
{
	refused("{\"layer_types\":[\"full_attention\"]}", VN_ERR_FORMAT, "layer_types has 1 entries, expected 4");
	refused("{\"layer_types\":[\"full_attention\",\"full_attention\",\"linear_attention\",\"full_attention\"]}",
	        VN_ERR_UNSUPPORTED, "layer_types[2]: 'linear_attention'");
	refused("{\"layer_types\":[\"full_attention\",7,\"full_attention\",\"full_attention\"]}", VN_ERR_UNSUPPORTED,
	        "layer_types[1]");
	/* a window without a width */
	refused("{\"layer_types\":[\"full_attention\",\"sliding_attention\",\"full_attention\",\"full_attention\"]}",
	        VN_ERR_UNSUPPORTED, "layer_types[1] is 'sliding_attention', but the config sets no sliding_window");
	refused("{\"layer_types\":\"full_attention\"}", VN_ERR_FORMAT, "layer_types");
}

/* ---- RoPE --------------------------------------------------------------------------------- */

static void both_spellings_of_rope_say_the_same(void)
{
	const vn_rope four = rope_of("{\"rope_theta\":5e5,\"rope_scaling\":{\"type\":\"linear\",\"factor\":4.0}}");
	const vn_rope five = rope_of("{\"rope_parameters\":{\"rope_type\":\"linear\",\"rope_theta\":500000,\"factor\":4}}");
	const vn_rope both = rope_of("{\"rope_theta\":5e5,\"rope_scaling\":{\"type\":\"linear\",\"factor\":4.0},"
	                             "\"rope_parameters\":{\"rope_type\":\"linear\",\"rope_theta\":500000,\"factor\":4}}");
	const vn_rope *r[] = { &four, &five, &both };

	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(r[i]->type, VN_ROPE_LINEAR);
		CU_ASSERT_EQUAL(r[i]->theta, 5e5);
		CU_ASSERT_EQUAL(r[i]->factor, 4.0);
		CU_ASSERT_EQUAL(r[i]->rotary_dim, 4);
	}
}

static void spellings_that_disagree_are_refused_by_field(void)
{
	refused("{\"rope_theta\":1e4,\"rope_parameters\":{\"rope_theta\":1e6}}", VN_ERR_FORMAT, "rope_theta is 10000");
	refused("{\"rope_scaling\":{\"type\":\"linear\",\"factor\":4},\"rope_parameters\":{\"rope_type\":\"linear\","
	        "\"factor\":2}}",
	        VN_ERR_FORMAT, "disagree on factor");
	refused("{\"rope_scaling\":{\"type\":\"linear\",\"factor\":4},\"rope_parameters\":{\"rope_type\":\"yarn\","
	        "\"factor\":4}}",
	        VN_ERR_FORMAT, "disagree on type");
	refused("{\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":4},\"rope_parameters\":{\"rope_theta\":1e4}}",
	        VN_ERR_FORMAT, "disagree on");
	/* one of them lacks the factor: transformers would use rope_scaling alone */
	refused("{\"rope_theta\":1e4,\"rope_scaling\":{\"type\":\"linear\"},\"rope_parameters\":{\"rope_type\":\"linear\","
	        "\"factor\":4}}",
	        VN_ERR_FORMAT, "disagree on factor");
	refused("{\"rope_scaling\":{\"rope_theta\":1e6},\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":4,"
	        "\"rope_theta\":1e6}}",
	        VN_ERR_FORMAT, "disagree on");
	refused("{\"rope_scaling\":{\"type\":\"linear\",\"factor\":4},\"rope_parameters\":{\"rope_type\":\"linear\","
	        "\"factor\":4,\"rope_theta\":1e6}}",
	        VN_ERR_FORMAT, "disagree on rope_theta");
	refused("{\"rope_scaling\":{\"type\":\"linear\",\"factor\":4,\"rope_theta\":1e6},"
	        "\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":4}}",
	        VN_ERR_FORMAT, "disagree on rope_theta");
	vn_plan_destroy(accepted("{\"rope_scaling\":{\"type\":\"linear\",\"factor\":4,\"mscale\":null},\"rope_theta\":1e6,"
	                         "\"rope_parameters\":{\"type\":\"linear\",\"factor\":4.0,\"rope_theta\":1e6}}"));
	vn_plan_destroy(accepted("{\"rope_scaling\":{\"type\":\"default\"},\"rope_parameters\":{}}"));
}

static void null_and_empty_settings_are_none(void)
{
	const char *none[] = { "{}",
		                   "{\"rope_scaling\":null}",
		                   "{\"rope_scaling\":{}}",
		                   "{\"rope_parameters\":null}",
		                   "{\"rope_parameters\":{}}",
		                   "{\"rope_scaling\":null,\"rope_parameters\":{\"rope_type\":\"default\"}}",
		                   "{\"rope_scaling\":{\"type\":null}}" };

	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		const vn_rope r = rope_of(none[i]);
		CU_ASSERT_EQUAL(r.type, VN_ROPE_DEFAULT);
		CU_ASSERT_EQUAL(r.theta, 10000.0);
		CU_ASSERT_EQUAL(r.factor, 1.0);
	}
}

/* The rotated columns of a head of 8. */
static int partial(const char *fields)
{
	json_t  *o = json(fields);
	vn_rope  r = { .theta = 1e4, .rotary_dim = 8 };
	vn_error e;

	CU_ASSERT_EQUAL(vn_config_rope("c.json", o, 64, 1.0, &r, &e), VN_OK);
	json_decref(o);
	return r.rotary_dim;
}

static void a_null_setting_is_passed_over_for_the_other_place(void)
{
	vn_rope r = rope_of("{\"rope_theta\":1e6,\"rope_parameters\":{\"rope_theta\":null}}");

	CU_ASSERT_EQUAL(r.theta, 1e6);
	CU_ASSERT_EQUAL(partial("{\"partial_rotary_factor\":0.5,\"rope_parameters\":{\"rope_type\":\"default\"}}"), 4);
	CU_ASSERT_EQUAL(partial("{\"partial_rotary_factor\":0.5,\"rope_parameters\":{\"partial_rotary_factor\":0.25}}"), 2);
	CU_ASSERT_EQUAL(partial("{\"partial_rotary_factor\":0.5,\"rope_parameters\":{\"partial_rotary_factor\":null}}"), 4);
}

static void every_scaling_reads_its_own_fields(void)
{
	vn_rope r = rope_of(
		"{\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,"
		"\"original_max_position_embeddings\":8192}}");

	CU_ASSERT_EQUAL(r.type, VN_ROPE_LLAMA3);
	CU_ASSERT_EQUAL(r.factor, 8.0);
	CU_ASSERT_EQUAL(r.low_freq_factor, 1.0);
	CU_ASSERT_EQUAL(r.high_freq_factor, 4.0);
	CU_ASSERT_EQUAL(r.original_context, 8192);

	r = rope_of("{\"rope_parameters\":{\"rope_type\":\"yarn\",\"factor\":40,\"original_max_position_embeddings\":32,"
	            "\"beta_fast\":16,\"beta_slow\":2,\"attention_factor\":1.5,\"mscale\":1,\"mscale_all_dim\":0.707,"
	            "\"truncate\":false}}");
	CU_ASSERT_EQUAL(r.type, VN_ROPE_YARN);
	CU_ASSERT_EQUAL(r.beta_fast, 16.0);
	CU_ASSERT_EQUAL(r.beta_slow, 2.0);
	CU_ASSERT_EQUAL(r.attention_factor, 1.5);
	CU_ASSERT_EQUAL(r.mscale, 1.0);
	CU_ASSERT_EQUAL(r.mscale_all_dim, 0.707);
	CU_ASSERT_FALSE(r.truncate);

	r = rope_of("{\"rope_parameters\":{\"rope_type\":\"yarn\",\"factor\":4}}");
	CU_ASSERT_EQUAL(r.beta_fast, 32.0);
	CU_ASSERT_EQUAL(r.beta_slow, 1.0);
	CU_ASSERT_TRUE(r.truncate);
	CU_ASSERT_EQUAL(r.original_context, 64); /* max_position_embeddings */
}

static void the_original_context_at_the_top_level_wins(void)
{
	const vn_rope r = rope_of(
		"{\"original_max_position_embeddings\":16,\"rope_parameters\":{\"rope_type\":\"yarn\",\"factor\":4,"
		"\"original_max_position_embeddings\":32}}");

	CU_ASSERT_EQUAL(r.original_context, 16);
}

static void yarn_without_a_factor_takes_the_ratio_of_the_contexts(void)
{
	const vn_rope r = rope_of(
		"{\"rope_parameters\":{\"rope_type\":\"yarn\",\"factor\":null,\"original_max_position_embeddings\":16}}");

	CU_ASSERT_EQUAL(r.factor, 4.0);
}

static void unknown_rope_types_are_refused_by_name(void)
{
	const char *type[] = { "proportional", "mrope", "su", "", "Linear" };
	char        text[128], want[64];

	for (size_t i = 0; i < sizeof type / sizeof *type; i++) {
		snprintf(text, sizeof text, "{\"rope_scaling\":{\"rope_type\":\"%s\",\"factor\":2}}", type[i]);
		snprintf(want, sizeof want, "rope_type '%s' is not supported", type[i]);
		refused(text, VN_ERR_UNSUPPORTED, want);
	}
	refused("{\"rope_scaling\":{\"type\":7}}", VN_ERR_UNSUPPORTED, "rope_type");
}

static void dynamic_keeps_the_length_the_model_was_made_for_and_has_no_other(void)
{
	vn_plan      *p = accepted("{\"head_dim\":8,\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2.5}}");
	const vn_rope r = node_of(p, "layer0.q_rope")->c.rope.rope;

	CU_ASSERT_EQUAL(r.type, VN_ROPE_DYNAMIC);
	CU_ASSERT_EQUAL(r.factor, 2.5);
	CU_ASSERT_EQUAL(r.max_context, 64);
	CU_ASSERT_EQUAL(p->context, 1 << 24);
	vn_plan_destroy(p);
	refused("{\"rope_scaling\":{\"type\":\"dynamic\"}}", VN_ERR_FORMAT, "has no factor");
	refused("{\"head_dim\":2,\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}}", VN_ERR_UNSUPPORTED,
	        "dynamic RoPE");
}

static void longrope_brings_its_lists_into_the_plan(void)
{
	vn_plan *p = accepted(
		"{\"rope_parameters\":{\"rope_type\":\"longrope\",\"factor\":null,\"original_max_position_embeddings\":16,"
		"\"short_factor\":[1,1.5],\"long_factor\":[2,4.25]}}");
	for (int l = 0; l < 4; l++)
		for (int k = 0; k < 2; k++) {
			char name[32];
			snprintf(name, sizeof name, "layer%d.%c_rope", l, k ? 'k' : 'q');
			const vn_rope r = node_of(p, name)->c.rope.rope;
			CU_ASSERT_EQUAL(r.type, VN_ROPE_LONGROPE);
			CU_ASSERT_EQUAL(r.factor, 4.0); /* 64 / 16 */
			CU_ASSERT_EQUAL(r.original_context, 16);
			CU_ASSERT_EQUAL_FATAL(r.short_factor, 1);
			CU_ASSERT_EQUAL_FATAL(r.long_factor, 2);
		}
	CU_ASSERT_EQUAL(p->n_lists, 2);
	CU_ASSERT_EQUAL(p->list[0].n, 2);
	CU_ASSERT_EQUAL(p->list[0].x[1], 1.5f);
	CU_ASSERT_EQUAL(p->list[1].x[1], 4.25f);
	CU_ASSERT_EQUAL(p->context, 64);
	vn_plan_destroy(p);

	static const char *const bad[] = { "\"short_factor\":[1,1]",
		                               "\"short_factor\":[1,1],\"long_factor\":[1]",
		                               "\"short_factor\":[1,1],\"long_factor\":[1,1,1]",
		                               "\"short_factor\":[1,1],\"long_factor\":[1,\"2\"]",
		                               "\"short_factor\":[1,1],\"long_factor\":[1,0]",
		                               "\"short_factor\":[1,1],\"long_factor\":[1,-2]",
		                               "\"short_factor\":[1,1],\"long_factor\":7" };
	char                     text[256];
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(text, sizeof text, "{\"rope_scaling\":{\"rope_type\":\"longrope\",\"factor\":4,%s}}", bad[i]);
		refused(text, VN_ERR_FORMAT, "longrope's long_factor must be a list of 2 numbers");
	}
	refused("{\"rope_scaling\":{\"rope_type\":\"longrope\",\"factor\":4}}", VN_ERR_FORMAT, "longrope's short_factor");
	refused(
		"{\"original_max_position_embeddings\":1,\"rope_scaling\":{\"rope_type\":\"longrope\",\"short_factor\":[1,1],"
		"\"long_factor\":[1,1]}}",
		VN_ERR_FORMAT, "original_max_position_embeddings");
}

static int context_of(const char *fields)
{
	vn_plan  *p = accepted(fields);
	const int context = p->context;

	vn_plan_destroy(p);
	return context;
}

static void a_scaling_that_stretches_the_context_makes_it_longer(void)
{
	CU_ASSERT_EQUAL(context_of("{\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.5}}"), 160);
	CU_ASSERT_EQUAL(context_of("{\"rope_scaling\":{\"type\":\"linear\",\"factor\":0.5}}"), 64);
	/* as Qwen2.5's model cards have it; and where max_position_embeddings says it already */
	CU_ASSERT_EQUAL(
		context_of("{\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"original_max_position_embeddings\":64}}"), 256);
	CU_ASSERT_EQUAL(
		context_of("{\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"original_max_position_embeddings\":16}}"), 64);
	CU_ASSERT_EQUAL(
		context_of("{\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,"
	               "\"original_max_position_embeddings\":32}}"),
		64);
	CU_ASSERT_EQUAL(
		context_of("{\"max_position_embeddings\":1073741824,\"rope_scaling\":{\"type\":\"linear\",\"factor\":1e9}}"),
		1 << 30);
}

static void settings_that_are_no_object_are_refused_by_the_right_name(void)
{
	refused("{\"rope_scaling\":7}", VN_ERR_FORMAT, "rope_scaling must be an object");
	refused("{\"rope_parameters\":[]}", VN_ERR_FORMAT, "rope_parameters must be an object");
	refused("{\"rope_parameters\":{},\"rope_scaling\":\"yarn\"}", VN_ERR_FORMAT, "rope_scaling must be an object");
	refused("{\"rope_parameters\":{\"full_attention\":{\"rope_theta\":1e4}}}", VN_ERR_UNSUPPORTED,
	        "by layer type (full_attention)");
	refused("{\"rope_scaling\":{\"full_attention\":{\"type\":\"linear\",\"factor\":4}}}", VN_ERR_UNSUPPORTED,
	        "rope_scaling by layer type");
	refused("{\"rope_scaling\":{\"full_attention\":{\"rope_type\":\"linear\",\"factor\":4}}}", VN_ERR_UNSUPPORTED,
	        "rope_scaling by layer type (full_attention)");
}

static void numbers_rope_cannot_use_are_refused(void)
{
	refused("{\"rope_theta\":0}", VN_ERR_FORMAT, "rope_theta");
	refused("{\"rope_theta\":-10000}", VN_ERR_FORMAT, "rope_theta");
	refused("{\"rope_theta\":1}", VN_ERR_FORMAT, "rope_theta"); /* every pair would rotate alike: the logarithm is 0 */
	refused("{\"rope_theta\":0.5}", VN_ERR_FORMAT, "rope_theta");
	refused("{\"rope_parameters\":{\"rope_theta\":1.0}}", VN_ERR_FORMAT, "rope_theta");
	refused("{\"rope_theta\":\"1e6\"}", VN_ERR_FORMAT, "rope_theta");
	refused("{\"rope_scaling\":{\"type\":\"linear\"}}", VN_ERR_FORMAT, "has no factor");
	refused("{\"rope_scaling\":{\"type\":\"yarn\",\"original_max_position_embeddings\":16}}", VN_ERR_FORMAT,
	        "has no factor"); /* null is another matter */
	refused("{\"rope_scaling\":{\"type\":\"linear\",\"factor\":0}}", VN_ERR_FORMAT, "factor");
	refused("{\"rope_scaling\":{\"type\":\"linear\",\"factor\":-4}}", VN_ERR_FORMAT, "factor");
	refused("{\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8,\"low_freq_factor\":4,\"high_freq_factor\":4}}",
	        VN_ERR_FORMAT, "low_freq_factor");
	refused("{\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8}}", VN_ERR_FORMAT, "low_freq_factor");
	refused("{\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8,\"high_freq_factor\":4}}", VN_ERR_FORMAT,
	        "low_freq_factor");
	refused("{\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"truncate\":1}}", VN_ERR_FORMAT, "truncate");
	refused("{\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"original_max_position_embeddings\":0}}", VN_ERR_FORMAT,
	        "original_max_position_embeddings");
	refused("{\"partial_rotary_factor\":0}", VN_ERR_UNSUPPORTED, "rotary width is 0");
	refused("{\"partial_rotary_factor\":1.5}", VN_ERR_FORMAT, "partial_rotary_factor");
	refused("{\"head_dim\":6,\"partial_rotary_factor\":0.5}", VN_ERR_UNSUPPORTED, "rotary width is 3");
	refused("{\"head_dim\":8,\"partial_rotary_factor\":0.5}", VN_ERR_UNSUPPORTED, "partial_rotary_factor");
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(an_absent_or_null_field_keeps_the_default),
		TEST(a_field_of_another_type_or_out_of_range_is_refused_by_name),
		TEST(a_whole_number_may_be_written_as_a_real),
		TEST(activations_are_known_by_transformers_names),
		TEST(a_longer_name_of_a_recurrent_family_is_recurrent),
		TEST(the_family_is_found_by_model_type_and_others_are_refused_by_name),
		TEST(missing_fields_take_the_class_defaults),
		TEST(key_value_heads_null_is_as_many_as_heads_and_absent_is_the_default),
		TEST(the_head_width_is_read_or_derived),
		TEST(heads_must_share_key_value_heads_evenly),
		TEST(sizes_out_of_range_are_refused_by_name),
		TEST(the_largest_model_is_planned_in_a_moment),
		TEST(unknown_fields_are_ignored),
		TEST(what_no_family_has_is_refused_by_name),
		TEST(a_setting_that_only_another_family_obeys_is_refused),
		TEST(a_window_counts_from_max_window_layers_on_and_only_when_used),
		TEST(a_window_of_null_is_none_and_an_absent_one_is_4096),
		TEST(layer_types_decide_when_they_are_given),
		TEST(layer_types_that_do_not_fit_are_refused),
		TEST(both_spellings_of_rope_say_the_same),
		TEST(spellings_that_disagree_are_refused_by_field),
		TEST(null_and_empty_settings_are_none),
		TEST(a_null_setting_is_passed_over_for_the_other_place),
		TEST(every_scaling_reads_its_own_fields),
		TEST(the_original_context_at_the_top_level_wins),
		TEST(yarn_without_a_factor_takes_the_ratio_of_the_contexts),
		TEST(unknown_rope_types_are_refused_by_name),
		TEST(dynamic_keeps_the_length_the_model_was_made_for_and_has_no_other),
		TEST(longrope_brings_its_lists_into_the_plan),
		TEST(a_scaling_that_stretches_the_context_makes_it_longer),
		TEST(settings_that_are_no_object_are_refused_by_the_right_name),
		TEST(numbers_rope_cannot_use_are_refused),
		CU_TEST_INFO_NULL,
	};
	return run_suite("config", tests);
}
