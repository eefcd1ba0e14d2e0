/* test_plan.c: the nodes and values of each family's plan, with their order and shapes. */
#include "tests/support/plan_help.h"

/* ---- the qwen2 page: models.md 2.2 ------------------------------------------------------ */

/* T and S by their marks; on_demand as in the table ("optional", "not hookable" rows of
 * probs and scores). */
/* clang-format off */
static const struct { const char *name; int rank, size[3]; vn_op op; bool on_demand; } in_layer[] = {
	{ "input",         2, { VN_T, D },       VN_N_OPS,         false },
	{ "attn_norm",     2, { VN_T, D },       VN_OP_RMS_NORM,   false },
	{ "q_proj",        3, { VN_T, H, K },    VN_OP_LINEAR,     false },
	{ "k_proj",        3, { VN_T, G, K },    VN_OP_LINEAR,     false },
	{ "v_proj",        3, { VN_T, G, K },    VN_OP_LINEAR,     false },
	{ "q_rope",        3, { VN_T, H, K },    VN_OP_ROPE,       false },
	{ "k_rope",        3, { VN_T, G, K },    VN_OP_ROPE,       false },
	{ "k_cache",       3, { VN_S, G, K },    VN_OP_ATTENTION,  true },
	{ "v_cache",       3, { VN_S, G, K },    VN_OP_ATTENTION,  true },
	{ "attn_scores",   3, { H, VN_T, VN_S }, VN_OP_ATTENTION,  true },
	{ "attn_probs",    3, { H, VN_T, VN_S }, VN_OP_ATTENTION,  true },
	{ "attn_context",  3, { VN_T, H, K },    VN_OP_ATTENTION,  false },
	{ "attn_out",      2, { VN_T, D },       VN_OP_LINEAR,     false },
	{ "attn_residual", 2, { VN_T, D },       VN_OP_ADD,        false },
	{ "mlp_norm",      2, { VN_T, D },       VN_OP_RMS_NORM,   false },
	{ "gate_proj",     2, { VN_T, F },       VN_OP_LINEAR,     false },
	{ "up_proj",       2, { VN_T, F },       VN_OP_LINEAR,     false },
	{ "gate_act",      2, { VN_T, F },       VN_OP_ACT,        true },
	{ "mlp_act",       2, { VN_T, F },       VN_OP_GATED,      false },
	{ "down_proj",     2, { VN_T, D },       VN_OP_LINEAR,     false },
	{ "output",        2, { VN_T, D },       VN_OP_ADD,        false },
};
/* clang-format on */

static void every_checkpoint_of_a_qwen2_layer_is_there_in_order_with_its_shape(void)
{
	vn_plan *p = toy();
	int      before = -1;
	char     name[64];

	for (int l = 0; l < L; l++)
		for (size_t i = 0; i < sizeof in_layer / sizeof *in_layer; i++) {
			snprintf(name, sizeof name, "layer%d.%s", l, in_layer[i].name);
			const int v = vn_plan_find(p, name);
			CU_ASSERT_FATAL(v >= 0);
			CU_ASSERT(v > before);
			before = v;
			CU_ASSERT_EQUAL(p->value[v].layer, l);
			CU_ASSERT_EQUAL(p->value[v].rank, in_layer[i].rank);
			for (int a = 0; a < in_layer[i].rank; a++)
				CU_ASSERT_EQUAL(p->value[v].size[a], in_layer[i].size[a]);
			CU_ASSERT_EQUAL(p->value[v].on_demand, in_layer[i].on_demand);
			if (in_layer[i].op != VN_N_OPS)
				CU_ASSERT_EQUAL(p->node[p->value[v].node].op, in_layer[i].op);
		}
	vn_plan_destroy(p);
}

static void the_checkpoints_outside_layers_are_there_with_their_shapes(void)
{
	vn_plan *p = toy();
	const struct {
		const char *name;
		int         width;
	} row[] = { { "embed", D }, { "final_norm", D }, { "logits", V } };

	for (int i = 0; i < 3; i++) {
		const int v = vn_plan_find(p, row[i].name);
		CU_ASSERT_FATAL(v >= 0);
		CU_ASSERT_EQUAL(p->value[v].layer, -1);
		CU_ASSERT_EQUAL(p->value[v].rank, 2);
		CU_ASSERT_EQUAL(p->value[v].size[0], VN_T);
		CU_ASSERT_EQUAL(p->value[v].size[1], row[i].width);
	}
	CU_ASSERT_EQUAL(p->n_values, 3 + L * 21);
	CU_ASSERT_EQUAL(p->layers, L);
	CU_ASSERT_EQUAL(p->vocab, V);
	CU_ASSERT_EQUAL(p->context, 64);
	CU_ASSERT_EQUAL(p->n_states, 2 * L);
	CU_ASSERT_EQUAL(vn_plan_find(p, "layer2.input"), -1);
	CU_ASSERT_EQUAL(vn_plan_find(p, "layer0.q_norm"), -1);
	CU_ASSERT_EQUAL(vn_plan_find(p, ""), -1);
	vn_plan_destroy(p);
}

/* The number of words in the table of points is the rank, and (T, ...) says token first. */
static void the_axes_of_every_point_fit_its_values(void)
{
	vn_plan *p = toy();

	for (int v = 0; v < p->n_values; v++) {
		const char *axes = vn_point_get(p->value[v].point)->axes;
		int         words = 1;
		for (const char *c = axes; *c; c++)
			words += *c == ' ';
		CU_ASSERT_EQUAL(words, p->value[v].rank);
		CU_ASSERT_EQUAL(strncmp(axes, "token", 5) == 0, p->value[v].size[0] == VN_T);
	}
	vn_plan_destroy(p);
}

static void every_weight_of_qwen2_is_asked_for_in_its_shape(void)
{
	const struct {
		const char *name;
		int         rank;
		int64_t     dim[2];
	} row[] = {
		{ "input_layernorm.weight", 1, { D } },         { "post_attention_layernorm.weight", 1, { D } },
		{ "self_attn.q_proj.weight", 2, { H * K, D } }, { "self_attn.k_proj.weight", 2, { G * K, D } },
		{ "self_attn.v_proj.weight", 2, { G * K, D } }, { "self_attn.o_proj.weight", 2, { D, H * K } },
		{ "self_attn.q_proj.bias", 1, { H * K } },      { "self_attn.k_proj.bias", 1, { G * K } },
		{ "self_attn.v_proj.bias", 1, { G * K } },      { "mlp.gate_proj.weight", 2, { F, D } },
		{ "mlp.up_proj.weight", 2, { F, D } },          { "mlp.down_proj.weight", 2, { D, F } },
	};
	vn_plan *p = toy();
	int      found = 0;
	char     name[128];

	for (int l = 0; l < L; l++)
		for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
			snprintf(name, sizeof name, "model.layers.%d.%s", l, row[i].name);
			for (int w = 0; w < p->n_weights; w++) {
				const vn_shape want = { row[i].rank, { row[i].dim[0], row[i].dim[1] } };
				if (strcmp(p->weight[w].name, name) == 0)
					found += vn_shape_equal(&p->weight[w].shape, &want);
			}
		}
	CU_ASSERT_EQUAL(found, L * 12);
	CU_ASSERT_EQUAL(p->n_weights, L * 12 + 2); /* tied: no lm_head */
	vn_plan_destroy(p);
}

/* Every node reads values that are made before it; last_use is the last of them. */
static void inputs_come_before_their_readers_and_last_use_is_true(void)
{
	vn_plan *p = toy();

	for (int v = 0; v < p->n_values; v++) {
		int last = -1;
		for (int i = 0; i < p->n_nodes; i++)
			for (int j = 0; j < p->node[i].n_in; j++)
				if (p->node[i].in[j] == v) {
					CU_ASSERT(p->value[v].node < i);
					last = i;
				}
		CU_ASSERT_EQUAL(p->value[v].last_use, last);
		if (p->value[v].alias_of < 0)
			CU_ASSERT_EQUAL(p->node[p->value[v].node].out[p->value[v].slot], v);
	}
	vn_plan_destroy(p);
}

static void the_input_of_a_layer_is_another_name_for_what_came_before(void)
{
	vn_plan  *p = toy();
	const int in0 = vn_plan_find(p, "layer0.input"), in1 = vn_plan_find(p, "layer1.input");
	const int embed = vn_plan_find(p, "embed"), out0 = vn_plan_find(p, "layer0.output");

	CU_ASSERT_EQUAL(vn_plan_root(p, in0), embed);
	CU_ASSERT_EQUAL(vn_plan_root(p, in1), out0);
	CU_ASSERT_EQUAL(vn_plan_root(p, out0), out0);
	CU_ASSERT_EQUAL(p->value[in1].node, p->value[out0].node);
	CU_ASSERT_EQUAL(p->value[in1].layer, 1);
	vn_plan_destroy(p);
}

static void a_shape_puts_in_the_numbers_of_the_call(void)
{
	vn_plan        *p = toy();
	const vn_value *q = &p->value[vn_plan_find(p, "layer0.q_rope")],
				   *s = &p->value[vn_plan_find(p, "layer0.attn_probs")];
	char     text[VN_SHAPE_TEXT];
	vn_shape a = vn_value_shape(q, 5, 12), b = vn_value_shape(s, 5, 12);

	CU_ASSERT_STRING_EQUAL(vn_shape_text(&a, text), "(5, 4, 4)");
	CU_ASSERT_STRING_EQUAL(vn_shape_text(&b, text), "(4, 5, 12)");
	CU_ASSERT_EQUAL(vn_value_row(q), H * K);
	CU_ASSERT_EQUAL(vn_shape_count(&b), 4 * 5 * 12);
	vn_plan_destroy(p);
}

static void the_checkpoints_of_gpt2_are_there_in_order(void)
{
	const char *name[] = { "token_embed",
		                   "pos_embed",
		                   "embed",
		                   "layer0.input",
		                   "layer0.attn_norm",
		                   "layer0.c_attn",
		                   "layer0.q_proj",
		                   "layer0.k_proj",
		                   "layer0.v_proj",
		                   "layer0.attn_scores",
		                   "layer0.attn_probs",
		                   "layer0.attn_context",
		                   "layer0.attn_out",
		                   "layer0.attn_residual",
		                   "layer0.mlp_norm",
		                   "layer0.up_proj",
		                   "layer0.mlp_act",
		                   "layer0.down_proj",
		                   "layer0.output",
		                   "final_norm",
		                   "logits" };
	json_t  *o = json_loads("{\"n_embd\":16,\"n_layer\":1,\"n_head\":4,\"n_positions\":64,\"vocab_size\":32}", 0, NULL);
	vn_plan *p;
	vn_error e;
	int      before = -1;

	CU_ASSERT_EQUAL_FATAL(vn_family_gpt2.plan("c", o, &p, &e), VN_OK);
	json_decref(o);
	for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
		const int v = vn_plan_find(p, name[i]);
		CU_ASSERT(v > before);
		before = v;
	}
	CU_ASSERT_EQUAL(vn_plan_find(p, "layer0.q_rope"), -1);
	CU_ASSERT_EQUAL(vn_plan_find(p, "layer0.gate_proj"), -1);
	CU_ASSERT_EQUAL(p->n_weights, 2 + 12 + 2);
	vn_plan_destroy(p);
}

static void names_of_operations_and_points_lead_back_to_them(void)
{
	vn_op    op;
	vn_point point;

	for (int i = 0; i < VN_N_OPS; i++)
		CU_ASSERT(vn_op_from_name(vn_op_name((vn_op)i), &op) && op == (vn_op)i);
	CU_ASSERT_FALSE(vn_op_from_name("nothing", &op));
	for (int i = 0; i < VN_N_POINTS; i++) {
		CU_ASSERT(vn_point_from_name(vn_point_get((vn_point)i)->name, &point) && point == (vn_point)i);
		CU_ASSERT(*vn_point_get((vn_point)i)->basis && *vn_point_get((vn_point)i)->means);
	}
	CU_ASSERT_FALSE(vn_point_from_name("q", &point));
	CU_ASSERT_STRING_EQUAL(vn_act_name(VN_SILU), "silu");
	CU_ASSERT_STRING_EQUAL(vn_act_name(VN_GELU_TANH), "gelu_tanh");
}

static void a_name_is_a_layer_and_a_name_in_it(void)
{
	static const struct {
		const char *name, *in;
		int         layer;
	} is[] = {
		{ "layer3.q_rope", "q_rope", 3 },
		{ "layer12.attn.q", "attn.q", 12 },
		{ "layer0.", "", 0 },
		{ "logits", "logits", -1 },
		{ "layer3", "layer3", -1 },
		{ "layer.q", "layer.q", -1 },
		{ "layer-1.q", "layer-1.q", -1 },
		{ "layer3x.q", "layer3x.q", -1 },
		{ "layer99999999999.q", "layer99999999999.q", -1 },
		{ "my.tensor", "my.tensor", -1 },
		{ "model.layers.3.q", "model.layers.3.q", -1 },
		{ "", "", -1 },
	};

	for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
		const char *in = vn_name_in_layer(is[i].name);
		CU_ASSERT_EQUAL(vn_name_layer(is[i].name), is[i].layer);
		CU_ASSERT_STRING_EQUAL(in, is[i].in);
		CU_ASSERT_PTR_EQUAL(in, is[i].name + strlen(is[i].name) - strlen(is[i].in)); /* not a copy */
	}
}

static void the_words_of_a_dims_string_are_counted_from_0(void)
{
	static const char *const same[] = { "token kv_head dim", " token  kv_head dim ", "token   kv_head  dim" };
	size_t                   n;
	for (int i = 0; i < 3; i++) {
		CU_ASSERT(strncmp(vn_axes_word(same[i], 0, &n), "token", 5) == 0 && n == 5);
		CU_ASSERT(strncmp(vn_axes_word(same[i], 1, &n), "kv_head", 7) == 0 && n == 7);
		CU_ASSERT(strncmp(vn_axes_word(same[i], 2, &n), "dim", 3) == 0 && n == 3);
		vn_axes_word(same[i], 3, &n);
		CU_ASSERT_EQUAL(n, 0);
		vn_axes_word(same[i], 9, &n);
		CU_ASSERT_EQUAL(n, 0);
		CU_ASSERT_EQUAL(vn_axes_find(same[i], "kv_head"), 1);
		CU_ASSERT_EQUAL(vn_axes_find(same[i], "head"), -1);
		CU_ASSERT_EQUAL(vn_axes_find(same[i], "kv"), -1);
	}
	vn_axes_word("", 0, &n);
	CU_ASSERT_EQUAL(n, 0);
	CU_ASSERT_EQUAL(vn_axes_find("", ""), -1);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(every_checkpoint_of_a_qwen2_layer_is_there_in_order_with_its_shape),
		TEST(the_checkpoints_outside_layers_are_there_with_their_shapes),
		TEST(the_axes_of_every_point_fit_its_values),
		TEST(every_weight_of_qwen2_is_asked_for_in_its_shape),
		TEST(inputs_come_before_their_readers_and_last_use_is_true),
		TEST(the_input_of_a_layer_is_another_name_for_what_came_before),
		TEST(a_shape_puts_in_the_numbers_of_the_call),
		TEST(the_checkpoints_of_gpt2_are_there_in_order),
		TEST(names_of_operations_and_points_lead_back_to_them),
		TEST(a_name_is_a_layer_and_a_name_in_it),
		TEST(the_words_of_a_dims_string_are_counted_from_0),
		CU_TEST_INFO_NULL,
	};
	return run_suite("plan", tests);
}
