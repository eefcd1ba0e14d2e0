/* fuzz_config.c: any bytes as a config.json.
 *
 * A config is refused with one line, or gives a plan that an engine may trust:
 * inputs before their readers, sizes positive, constants the kernels accept. */
#include "libref/exec/states.h"
#include "libref/family/config.h"
#include "libref/family/family.h"
#include "tests/fuzz/mutate.h"

/* Checks what the kernels rely on. Not with assert, which release builds lack. */
static void check_rope(const vn_plan *p, const vn_rope *r)
{
	static float f[2048];
	float        factor;

	if (!(r->theta > 1.0) || r->rotary_dim < 2 || r->rotary_dim % 2 != 0 || r->pow_block < 0)
		abort();
	if (r->type == VN_ROPE_YARN && r->original_context <= 0)
		abort();
	if (r->rotary_dim <= 2 * (int)(sizeof f / sizeof *f))
		vn_rope_frequencies(r, p->list, 100, f, &factor);
}

static void check_plan(const vn_plan *p)
{
	vn_slots s;

	for (int i = 0; i < p->n_nodes; i++) {
		const vn_node *n = &p->node[i];
		for (int j = 0; j < n->n_in; j++)
			if (n->in[j] < 0 || n->in[j] >= p->n_values || p->value[n->in[j]].node >= i)
				abort();
		for (int j = 0; j < n->n_w; j++)
			if (n->w[j] >= p->n_weights)
				abort();
		if (n->op == VN_OP_ROPE)
			check_rope(p, &n->c.rope.rope);
	}
	for (int v = 0; v < p->n_values; v++)
		for (int a = 0; a < p->value[v].rank; a++)
			if (p->value[v].size[a] == 0 || p->value[v].size[a] < VN_S)
				abort();
	for (int w = 0; w < p->n_weights; w++)
		if (vn_shape_count(&p->weight[w].shape) <= 0)
			abort();
	if (vn_slots_assign(&s, p))
		vn_slots_finish(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_error_t     je;
	json_t          *o = json_loadb((const char *)data, size, 0, &je);
	const vn_family *family;
	vn_plan         *p = NULL;
	vn_error         e = { "" };
	vn_status        st;

	if (!json_is_object(o)) {
		json_decref(o);
		return 0;
	}
	if ((st = vn_family_find("fuzz", o, &family, &e)) == VN_OK &&
	    (st = vn_config_refuse("fuzz", family, o, &e)) == VN_OK)
		st = family->plan("fuzz", o, &p, &e);
	if (st ? !fuzz_one_line(e.text) || p : !p)
		abort();
	if (p)
		check_plan(p);
	vn_plan_destroy(p);
	json_decref(o);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
static const char *const seeds[] = {
	"{\"model_type\":\"qwen2\",\"vocab_size\":32,\"hidden_size\":16,\"intermediate_size\":24,\"num_hidden_layers\":2,"
	"\"num_attention_heads\":4,\"num_key_value_heads\":2,\"max_position_embeddings\":64,\"rms_norm_eps\":1e-6,"
	"\"tie_word_embeddings\":true}",
	"{\"model_type\":\"qwen2\",\"num_hidden_layers\":3,\"use_sliding_window\":true,\"sliding_window\":8,"
	"\"max_window_layers\":1,\"layer_types\":[\"full_attention\",\"sliding_attention\",\"full_attention\"],"
	"\"hidden_act\":\"silu\"}",
	"{\"model_type\":\"qwen2\",\"num_hidden_layers\":1,\"head_dim\":8,\"rope_theta\":1e6,"
	"\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4.0,\"original_max_position_embeddings\":32,\"beta_fast\":32,"
	"\"beta_slow\":1,\"mscale\":1,\"mscale_all_dim\":0.7,\"truncate\":false}}",
	"{\"model_type\":\"qwen2\",\"num_hidden_layers\":1,\"rope_parameters\":{\"rope_type\":\"llama3\","
	"\"rope_theta\":500000,\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,"
	"\"original_max_position_embeddings\":8192,\"partial_rotary_factor\":0.5}}",
	"{\"model_type\":\"qwen2\",\"num_hidden_layers\":1,\"rope_theta\":1e4,\"rope_scaling\":{\"rope_type\":\"linear\","
	"\"factor\":2},\"rope_parameters\":{\"rope_type\":\"linear\",\"rope_theta\":1e4,\"factor\":2},"
	"\"num_key_value_heads\":null,\"num_attention_heads\":2}",
	"{\"model_type\":\"llama\",\"num_hidden_layers\":1,\"num_attention_heads\":2,\"head_dim\":4,"
	"\"rope_scaling\":{\"rope_type\":\"longrope\",\"factor\":4,\"short_factor\":[1,1.5],\"long_factor\":[2,4.0],"
	"\"original_max_position_embeddings\":16,\"attention_factor\":1.1}}",
	"{\"model_type\":\"llama\",\"num_hidden_layers\":1,\"rope_scaling\":{\"rope_type\":\"dynamic\",\"factor\":2.0},"
	"\"max_position_embeddings\":64}",
	"{\"model_type\":\"gpt2\",\"n_embd\":16,\"n_layer\":2,\"n_head\":4,\"n_positions\":64,\"n_inner\":24,"
	"\"vocab_size\":32,\"layer_norm_epsilon\":1e-5,\"activation_function\":\"gelu_new\","
	"\"scale_attn_by_inverse_layer_idx\":true,\"scale_attn_weights\":false}",
	"{\"model_type\":\"qwen3\",\"num_hidden_layers\":1,\"head_dim\":8,\"attention_bias\":true,\"hidden_act\":\"gelu\"}",
	"{\"model_type\":\"llama\",\"num_hidden_layers\":1,\"attention_bias\":true,\"mlp_bias\":true,"
	"\"layer_types\":[\"full_attention\"]}",
	"{\"model_type\":\"qwen3_5_text\",\"num_hidden_layers\":4,\"hidden_size\":16,\"head_dim\":16,"
	"\"linear_num_key_heads\":2,\"linear_num_value_heads\":4,\"linear_key_head_dim\":8,\"linear_value_head_dim\":6,"
	"\"linear_conv_kernel_dim\":3,\"attn_output_gate\":true}",
	"{\"model_type\":\"qwen3_5\",\"tie_word_embeddings\":true,\"text_config\":{\"num_hidden_layers\":2,"
	"\"full_attention_interval\":2,\"layer_types\":[\"linear_attention\",\"full_attention\"],"
	"\"output_gate_type\":\"swish\",\"attention_bias\":true}}",
	"{\"model_type\":\"llama\",\"num_hidden_layers\":1,\"is_causal\":true,\"logits_scaling\":1.0,"
	"\"per_layer_config\":{},\"text_config\":{\"logit_scale\":1},\"rope_parameters\":{\"type\":\"linear\",\"factor\":2,"
	"\"rope_theta\":1e4},\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":2},\"rope_theta\":1e4}",
	"{\"model_type\":\"mistral\",\"num_hidden_layers\":1,\"sliding_window\":8,\"layer_types\":[\"sliding_attention\"]}",
	"{\"model_type\":\"gemma2\",\"num_hidden_layers\":2,\"head_dim\":8,\"query_pre_attn_scalar\":7,"
	"\"attn_logit_softcapping\":null,\"final_logit_softcapping\":30.0,\"hidden_activation\":\"gelu_pytorch_tanh\","
	"\"sliding_window\":8,\"layer_types\":[\"sliding_attention\",\"full_attention\"]}",
	"{\"model_type\":\"gemma3\",\"text_config\":{\"num_hidden_layers\":2,\"head_dim\":8,\"sliding_window_pattern\":2,"
	"\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"linear\",\"factor\":8,\"rope_theta\":1e6},"
	"\"sliding_attention\":{\"rope_theta\":1e4}}}}",
	"{\"model_type\":\"gpt_oss\",\"num_hidden_layers\":1,\"num_local_experts\":4,\"num_experts_per_tok\":2,"
	"\"swiglu_limit\":7.0,\"rope_parameters\":{\"rope_type\":\"yarn\",\"factor\":4,\"truncate\":false},"
	"\"layer_types\":[\"sliding_attention\"],\"sliding_window\":8}",
	"{\"model_type\":\"gemma3_text\",\"num_hidden_layers\":1,\"head_dim\":8,\"rope_local_base_freq\":1e4,"
	"\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":8}}",
	"{\"model_type\":\"deepseek_v3\",\"num_hidden_layers\":2,\"first_k_dense_replace\":1,\"n_routed_experts\":8,"
	"\"num_experts_per_tok\":2,\"n_group\":4,\"topk_group\":2,\"q_lora_rank\":8,\"rope_interleave\":true,"
	"\"rope_scaling\":{\"type\":\"yarn\",\"factor\":40,\"mscale\":1.0,\"mscale_all_dim\":1.0}}",
	"{\"model_type\":\"deepseek_v2\",\"num_hidden_layers\":1,\"num_experts_per_tok\":2,\"n_group\":2,"
	"\"topk_group\":1,\"topk_method\":\"group_limited_greedy\",\"q_lora_rank\":null,\"scoring_func\":\"softmax\"}",
	"{\"model_type\":\"qwen3_5_moe_text\",\"num_hidden_layers\":2,\"num_experts\":4,\"num_experts_per_tok\":2,"
	"\"shared_expert_intermediate_size\":8,\"moe_intermediate_size\":8}",
};

int main(int argc, char **argv)
{
	return fuzz_texts(argc, argv, seeds, sizeof seeds / sizeof *seeds);
}
#endif
