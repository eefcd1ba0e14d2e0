/* test_plan.c: building plans, changing copies of them, and choosing checkpoints. */
#include "libref/plan/family.h"
#include "libref/plan/tap.h"

#include <CUnit/Basic.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { V = 32, D = 16, F = 24, L = 2, H = 4, G = 2, K = 4 };

static vn_plan *toy(void)
{
	json_t  *o = json_loads("{\"model_type\":\"qwen2\",\"vocab_size\":32,\"hidden_size\":16,\"intermediate_size\":24,\"num_hidden_layers\":2,"
	                        "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"max_position_embeddings\":64,"
	                        "\"tie_word_embeddings\":true}", 0, NULL);
	vn_plan *p = NULL;
	vn_error e;

	CU_ASSERT_EQUAL_FATAL(vn_plan_qwen2("c", o, &p, &e), VN_OK);
	json_decref(o);
	return p;
}

/* ---- the qwen2 page: models.md 2.2 ------------------------------------------------------ */

/* T and S by their marks; on_demand as in the table ("optional", "not hookable" rows of probs and scores). */
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
	const struct { const char *name; int width; } row[] = { { "embed", D }, { "final_norm", D }, { "logits", V } };

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
	const struct { const char *name; int rank; int64_t dim[2]; } row[] = {
		{ "input_layernorm.weight", 1, { D } }, { "post_attention_layernorm.weight", 1, { D } },
		{ "self_attn.q_proj.weight", 2, { H * K, D } }, { "self_attn.k_proj.weight", 2, { G * K, D } },
		{ "self_attn.v_proj.weight", 2, { G * K, D } }, { "self_attn.o_proj.weight", 2, { D, H * K } },
		{ "self_attn.q_proj.bias", 1, { H * K } }, { "self_attn.k_proj.bias", 1, { G * K } }, { "self_attn.v_proj.bias", 1, { G * K } },
		{ "mlp.gate_proj.weight", 2, { F, D } }, { "mlp.up_proj.weight", 2, { F, D } }, { "mlp.down_proj.weight", 2, { D, F } },
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
	vn_plan       *p = toy();
	const vn_value *q = &p->value[vn_plan_find(p, "layer0.q_rope")], *s = &p->value[vn_plan_find(p, "layer0.attn_probs")];
	char            text[VN_SHAPE_TEXT];
	vn_shape        a = vn_value_shape(q, 5, 12), b = vn_value_shape(s, 5, 12);

	CU_ASSERT_STRING_EQUAL(vn_shape_text(&a, text), "(5, 4, 4)");
	CU_ASSERT_STRING_EQUAL(vn_shape_text(&b, text), "(4, 5, 12)");
	CU_ASSERT_EQUAL(vn_value_row(q), H * K);
	CU_ASSERT_EQUAL(vn_shape_count(&b), 4 * 5 * 12);
	vn_plan_destroy(p);
}

/* ---- the builder ------------------------------------------------------------------------- */

/* Ends a builder that must have failed with this text. */
static void fails(vn_builder *b, vn_status want, const char *word)
{
	vn_plan *p = (vn_plan *)(void *)b;
	vn_error e = { "" };

	CU_ASSERT_EQUAL(vn_plan_finish(b, &p, &e), want);
	CU_ASSERT_PTR_NULL(p);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, word));
	if (!strstr(e.text, word))
		fprintf(stderr, "wanted '%s', have '%s'\n", word, e.text);
	vn_plan_destroy(p);
}

static int matrix(vn_builder *b, const char *name, int64_t m, int64_t n)
{
	return vn_plan_weight(b, name, n ? 2 : 1, (int64_t[]){ m, n });
}

/* A builder with an embedding of width 8. */
static vn_builder *begin(int *x)
{
	vn_builder *b = vn_plan_begin(2, 10, 16);

	CU_ASSERT_PTR_NOT_NULL_FATAL(b);
	*x = vn_plan_embed(b, matrix(b, "e", 10, 8), VN_POINT_EMBED);
	return b;
}

static void a_weight_asked_for_twice_is_one_and_in_two_shapes_a_failure(void)
{
	vn_builder *b = vn_plan_begin(1, 10, 16);
	const int   w = matrix(b, "w", 4, 8);

	CU_ASSERT_EQUAL(matrix(b, "w", 4, 8), w);
	CU_ASSERT_NOT_EQUAL(matrix(b, "v", 4, 8), w);
	matrix(b, "w", 8, 4);
	fails(b, VN_ERR_SHAPE, "weight w is wanted in two shapes");
}

static void sizes_that_do_not_fit_are_refused_with_the_name(void)
{
	const vn_rope rope = { .theta = 1e4, .rotary_dim = 4 }, wide = { .theta = 1e4, .rotary_dim = 6 }, odd = { .theta = 1e4, .rotary_dim = 3 };
	vn_builder   *b;
	int           x, y;

	b = begin(&x), vn_plan_rms_norm(b, x, matrix(b, "n", 7, 0), 1e-6, VN_POINT_ATTN_NORM);
	fails(b, VN_ERR_SHAPE, "weight n does not have the width");
	b = begin(&x), vn_plan_rms_norm(b, x, matrix(b, "n", 8, 1), 1e-6, VN_POINT_ATTN_NORM);
	fails(b, VN_ERR_SHAPE, "weight n");
	b = begin(&x), vn_plan_linear(b, x, matrix(b, "w", 4, 7), -1, 0, VN_POINT_Q_PROJ);
	fails(b, VN_ERR_SHAPE, "weight w does not fit");
	b = begin(&x), vn_plan_linear(b, x, matrix(b, "w", 8, 0), -1, 0, VN_POINT_Q_PROJ);
	fails(b, VN_ERR_SHAPE, "weight w does not fit");
	b = begin(&x), vn_plan_linear(b, x, matrix(b, "w", 8, 8), -1, 3, VN_POINT_Q_PROJ);
	fails(b, VN_ERR_SHAPE, "weight w does not fit");
	b = begin(&x), vn_plan_linear(b, x, matrix(b, "w", 8, 8), matrix(b, "bias", 7, 0), 2, VN_POINT_Q_PROJ);
	fails(b, VN_ERR_SHAPE, "bias bias does not fit");
	b = begin(&x), vn_plan_linear(b, x, matrix(b, "w", 8, 8), matrix(b, "bias", 8, 1), 2, VN_POINT_Q_PROJ);
	fails(b, VN_ERR_SHAPE, "bias bias does not fit");
	b = begin(&x), vn_plan_rope(b, x, &rope, VN_POINT_Q_ROPE);
	fails(b, VN_ERR_SHAPE, "embed: rotary width");
	b = begin(&x), y = vn_plan_linear(b, x, matrix(b, "w", 8, 8), -1, 2, VN_POINT_Q_PROJ), vn_plan_rope(b, y, &wide, VN_POINT_Q_ROPE);
	fails(b, VN_ERR_SHAPE, "q_proj: rotary width");
	b = begin(&x), y = vn_plan_linear(b, x, matrix(b, "w", 8, 8), -1, 2, VN_POINT_Q_PROJ), vn_plan_rope(b, y, &odd, VN_POINT_Q_ROPE);
	fails(b, VN_ERR_SHAPE, "q_proj: rotary width");
	b = begin(&x), y = vn_plan_linear(b, x, matrix(b, "w", 4, 8), -1, 0, VN_POINT_UP_PROJ), vn_plan_add(b, x, y, VN_POINT_OUTPUT);
	fails(b, VN_ERR_SHAPE, "embed: the other side");
	b = begin(&x), y = vn_plan_linear(b, x, matrix(b, "w", 8, 8), -1, 2, VN_POINT_UP_PROJ), vn_plan_gated(b, VN_SILU, y, x, VN_POINT_MLP_ACT);
	fails(b, VN_ERR_SHAPE, "up_proj: the other side");
	b = vn_plan_begin(1, 10, 16), vn_plan_embed(b, matrix(b, "e", 9, 8), VN_POINT_EMBED);
	fails(b, VN_ERR_SHAPE, "weight e");
	b = vn_plan_begin(1, 10, 16), vn_plan_embed(b, matrix(b, "e", 10, 0), VN_POINT_EMBED);
	fails(b, VN_ERR_SHAPE, "weight e");
	b = vn_plan_begin(1, 10, 16), vn_plan_positions(b, matrix(b, "p", 10, 8), VN_POINT_POS_EMBED);
	fails(b, VN_ERR_SHAPE, "weight p does not have a row for every position");
	b = begin(&x), vn_plan_layer_norm(b, x, matrix(b, "n", 8, 0), matrix(b, "bias", 7, 0), 1e-6, VN_POINT_ATTN_NORM);
	fails(b, VN_ERR_SHAPE, "weight bias does not have the width");
	b = begin(&x), vn_plan_conv1d(b, x, matrix(b, "w", 12, 8), -1, 0, VN_POINT_C_ATTN);
	fails(b, VN_ERR_SHAPE, "weight w does not fit");
	b = begin(&x), vn_plan_conv1d(b, x, matrix(b, "w", 8, 12), matrix(b, "bias", 8, 0), 0, VN_POINT_C_ATTN);
	fails(b, VN_ERR_SHAPE, "bias bias does not fit");
}

static void columns_that_are_not_there_cannot_be_taken(void)
{
	const struct { int stride, from, width, heads; } bad[] = {
		{ 0, 0, 1, 0 }, { 3, 0, 1, 0 }, { -8, 0, 1, 0 }, { 16, 0, 8, 0 }, { 8, -1, 4, 0 }, { 8, 0, 0, 0 }, { 8, 0, 9, 0 }, { 8, 5, 4, 0 },
		{ 4, 2147483647, 1, 0 }, { 4, 1, 2147483647, 0 }, { 8, 0, 4, 3 },
	};
	vn_plan    *p;
	vn_error    e;
	int         x;
	vn_builder *b;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		b = begin(&x), vn_plan_slice(b, x, bad[i].stride, bad[i].from, bad[i].width, bad[i].heads, VN_POINT_Q_PROJ);
		fails(b, VN_ERR_SHAPE, "embed: there are no such columns");
	}
	b = begin(&x);
	const int y = vn_plan_slice(b, x, 4, 1, 3, 2, VN_POINT_Q_PROJ);
	CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &p, &e), VN_OK);
	CU_ASSERT_EQUAL(p->value[y].rank, 3);
	CU_ASSERT_EQUAL(p->value[y].size[1], 2);
	CU_ASSERT_EQUAL(p->value[y].size[2], 3);
	vn_node *n = &p->node[p->value[y].node];
	for (size_t i = 0; i < sizeof bad / sizeof *bad - 1; i++) { /* the rules say the same */
		n->c.slice.stride = bad[i].stride, n->c.slice.from = bad[i].from, n->c.slice.width = bad[i].width;
		CU_ASSERT_EQUAL(vn_plan_check(p, &e), VN_ERR_UNSUPPORTED);
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "nodes[1] (slice, q_proj)"));
	}
	n->c.slice.stride = 4, n->c.slice.from = 0, n->c.slice.width = 3;
	CU_ASSERT_EQUAL(vn_plan_check(p, &e), VN_OK);
	vn_plan_destroy(p);
}

/* Another experiment than was built: the weight of c_proj (D,D) fits either way, that of c_fc does not. */
static void a_product_may_be_turned_over_where_the_shape_allows_it(void)
{
	json_t  *o = json_loads("{\"n_embd\":16,\"n_layer\":1,\"n_head\":4,\"n_positions\":64,\"vocab_size\":32}", 0, NULL);
	vn_plan *p;
	vn_error e;

	CU_ASSERT_EQUAL_FATAL(vn_plan_gpt2("c", o, &p, &e), VN_OK);
	json_decref(o);
	vn_node *proj = &p->node[p->value[vn_plan_find(p, "layer0.attn_out")].node];
	vn_node *fc = &p->node[p->value[vn_plan_find(p, "layer0.up_proj")].node];
	CU_ASSERT_EQUAL(vn_const_set(proj, "transposed", 0, &e), VN_OK);
	CU_ASSERT_EQUAL(vn_plan_check(p, &e), VN_OK);
	CU_ASSERT_EQUAL(vn_const_set(fc, "transposed", 0, &e), VN_OK);
	CU_ASSERT_EQUAL(vn_plan_check(p, &e), VN_ERR_UNSUPPORTED);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "(linear, layer0.up_proj)"));
	fc->c.linear.transposed = 2;
	CU_ASSERT_EQUAL(vn_plan_check(p, &e), VN_ERR_UNSUPPORTED);
	vn_plan_destroy(p);
}

static void the_checkpoints_of_gpt2_are_there_in_order(void)
{
	const char *name[] = { "token_embed", "pos_embed", "embed", "layer0.input", "layer0.attn_norm", "layer0.c_attn", "layer0.q_proj",
	                       "layer0.k_proj", "layer0.v_proj", "layer0.attn_scores", "layer0.attn_probs", "layer0.attn_context",
	                       "layer0.attn_out", "layer0.attn_residual", "layer0.mlp_norm", "layer0.up_proj", "layer0.mlp_act",
	                       "layer0.down_proj", "layer0.output", "final_norm", "logits" };
	json_t  *o = json_loads("{\"n_embd\":16,\"n_layer\":1,\"n_head\":4,\"n_positions\":64,\"vocab_size\":32}", 0, NULL);
	vn_plan *p;
	vn_error e;
	int      before = -1;

	CU_ASSERT_EQUAL_FATAL(vn_plan_gpt2("c", o, &p, &e), VN_OK);
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

static void queries_keys_and_values_must_fit_together(void)
{
	const struct { int h, hk, g, gk, u, uk; } bad[] = {
		{ 4, 16, 3, 12, 3, 12 }, /* 4 heads over 3 */
		{ 4, 16, 2, 16, 2, 16 }, /* another width */
		{ 4, 16, 2, 8, 4, 16 },  /* more values than keys */
		{ 4, 16, 2, 8, 2, 16 },  /* wider values */
		{ 0, 16, 2, 8, 2, 8 }, { 4, 16, 0, 8, 2, 8 }, { 4, 16, 2, 8, 0, 8 }, /* without heads */
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		int         x;
		vn_builder *b = begin(&x);
		const int   q = vn_plan_linear(b, x, matrix(b, "q", bad[i].hk, 8), -1, bad[i].h, VN_POINT_Q_PROJ);
		const int   k = vn_plan_linear(b, x, matrix(b, "k", bad[i].gk, 8), -1, bad[i].g, VN_POINT_K_PROJ);
		const int   v = vn_plan_linear(b, x, matrix(b, "v", bad[i].uk, 8), -1, bad[i].u, VN_POINT_V_PROJ);
		vn_plan_attention(b, q, k, v, 0.5, 0, VN_POINT_ATTN_CONTEXT);
		fails(b, VN_ERR_SHAPE, "q_proj: queries, keys and values");
	}
}

static void a_checkpoint_may_be_named_once(void)
{
	int         x;
	vn_builder *b = begin(&x);

	vn_plan_add(b, x, x, VN_POINT_EMBED);
	fails(b, VN_ERR_UNSUPPORTED, "checkpoint embed is named twice");
	b = begin(&x);
	vn_plan_layer(b, 1);
	vn_plan_name(b, x, VN_POINT_INPUT);
	vn_plan_layer(b, 0);
	vn_plan_name(b, x, VN_POINT_INPUT); /* another layer, another name */
	vn_plan_layer(b, 1);
	vn_plan_name(b, x, VN_POINT_INPUT);
	fails(b, VN_ERR_UNSUPPORTED, "checkpoint layer1.input is named twice");
}

static void the_first_failure_is_kept_and_later_calls_do_no_harm(void)
{
	int         x;
	vn_builder *b = begin(&x);
	int         y = vn_plan_linear(b, x, matrix(b, "first", 4, 7), -1, 0, VN_POINT_Q_PROJ);

	y = vn_plan_rms_norm(b, y, matrix(b, "second", 3, 0), 1e-6, VN_POINT_ATTN_NORM);
	y = vn_plan_rope(b, y, &(vn_rope){ .theta = 1e4, .rotary_dim = 3 }, VN_POINT_Q_ROPE);
	y = vn_plan_attention(b, y, y, y, 1, 0, VN_POINT_ATTN_CONTEXT);
	y = vn_plan_act(b, VN_SILU, y, VN_POINT_GATE_ACT, true);
	y = vn_plan_gated(b, VN_SILU, y, y, VN_POINT_MLP_ACT);
	y = vn_plan_embed(b, y, VN_POINT_EMBED);
	vn_plan_name(b, y, VN_POINT_INPUT);
	fails(b, VN_ERR_SHAPE, "weight first");
}

static void a_weight_name_that_is_too_long_is_refused(void)
{
	char        name[2 * VN_NAME_MAX];
	vn_builder *b = vn_plan_begin(1, 10, 16);

	memset(name, 'w', sizeof name);
	name[VN_NAME_MAX - 1] = '\0';
	matrix(b, name, 4, 8);
	name[VN_NAME_MAX - 1] = 'w';
	name[VN_NAME_MAX] = '\0';
	matrix(b, name, 4, 8);
	fails(b, VN_ERR_UNSUPPORTED, "too long");
}

static void an_empty_plan_and_a_second_name_for_a_second_name_are_fine(void)
{
	vn_plan    *p;
	int         x;
	vn_builder *b = vn_plan_begin(0, 0, 0);

	CU_ASSERT_EQUAL(vn_plan_finish(b, &p, NULL), VN_OK);
	CU_ASSERT_EQUAL(p->n_nodes, 0);
	vn_plan_destroy(p);
	vn_plan_destroy(NULL);
	b = begin(&x);
	vn_plan_name(b, x, VN_POINT_INPUT);
	vn_plan_layer(b, 0);
	vn_plan_name(b, x + 1, VN_POINT_INPUT);
	CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &p, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_plan_root(p, vn_plan_find(p, "layer0.input")), x);
	vn_plan_destroy(p);
}

/* Engines look for memory under the first name only. */
static void a_node_that_is_given_a_second_name_reads_the_first(void)
{
	vn_plan    *p;
	int         x;
	vn_builder *b = begin(&x);

	vn_plan_name(b, x, VN_POINT_INPUT);
	vn_plan_add(b, x + 1, x + 1, VN_POINT_OUTPUT);
	CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &p, NULL), VN_OK);
	CU_ASSERT_EQUAL(p->node[1].in[0], x);
	CU_ASSERT_EQUAL(p->node[1].in[1], x);
	CU_ASSERT_EQUAL(p->value[x].last_use, 1);
	CU_ASSERT_EQUAL(p->value[x + 1].last_use, -1);
	vn_plan_destroy(p);
}

/* ---- constants --------------------------------------------------------------------------- */

static int const_index(vn_op op, const char *name)
{
	for (int i = 0; vn_const_name(op, i); i++)
		if (strcmp(vn_const_name(op, i), name) == 0)
			return i;
	return -1;
}

static void a_constant_set_in_a_clone_changes_the_clone_alone(void)
{
	vn_plan *p = toy(), *c;
	vn_error e;

	CU_ASSERT_EQUAL_FATAL(vn_plan_clone(p, &c, &e), VN_OK);
	CU_ASSERT(c->node != p->node && c->value != p->value && c->weight != p->weight);
	CU_ASSERT_EQUAL(memcmp(c->node, p->node, (size_t)p->n_nodes * sizeof *p->node), 0);
	CU_ASSERT_EQUAL(memcmp(c->value, p->value, (size_t)p->n_values * sizeof *p->value), 0);
	CU_ASSERT_EQUAL(memcmp(c->weight, p->weight, (size_t)p->n_weights * sizeof *p->weight), 0);
	vn_node       *n = &c->node[c->value[vn_plan_find(c, "layer1.attn_context")].node];
	const vn_node *o = &p->node[n - c->node];
	CU_ASSERT_EQUAL(vn_const_set(n, "scale", 0.25, &e), VN_OK);
	CU_ASSERT_EQUAL(vn_const_set(n, "window", 3, &e), VN_OK);
	CU_ASSERT_EQUAL(n->c.attention.scale, 0.25);
	CU_ASSERT_EQUAL(n->c.attention.window, 3);
	CU_ASSERT_EQUAL(o->c.attention.scale, 0.5);
	CU_ASSERT_EQUAL(o->c.attention.window, 0);
	vn_plan_destroy(p);
	CU_ASSERT_STRING_EQUAL(c->value[0].name, "embed");
	vn_plan_destroy(c);
}

static void every_constant_is_read_back_as_it_was_set(void)
{
	vn_error e;

	for (int op = 0; op < VN_N_OPS; op++)
		for (int i = 0; vn_const_name((vn_op)op, i); i++) {
			const char *name = vn_const_name((vn_op)op, i);
			vn_node     n = { .op = (vn_op)op };
			for (double x = 2; x >= 0; x--)
				if (vn_const_set(&n, name, x, &e) == VN_OK) {
					CU_ASSERT_EQUAL(vn_const_get(&n, i), x);
					for (int j = 0; vn_const_name((vn_op)op, j); j++)
						CU_ASSERT(j == i || vn_const_get(&n, j) == 0.0); /* and touched no other */
					break;
				}
			CU_ASSERT_EQUAL(const_index((vn_op)op, name), i); /* names are unique */
		}
	CU_ASSERT_PTR_NULL(vn_const_name(VN_OP_ADD, 0));
}

static void a_constant_out_of_range_or_unknown_is_refused_and_nothing_changes(void)
{
	const struct { vn_op op; const char *name; double value; } bad[] = {
		{ VN_OP_ATTENTION, "heads", 0 }, { VN_OP_ATTENTION, "heads", 1.5 }, { VN_OP_ATTENTION, "causal", 2 }, { VN_OP_ATTENTION, "window", -1 },
		{ VN_OP_ATTENTION, "window", 1e300 }, { VN_OP_ATTENTION, "scale", (double)NAN }, { VN_OP_ATTENTION, "scale", (double)INFINITY },
		{ VN_OP_ROPE, "theta", 1 }, { VN_OP_ROPE, "theta", 0.5 }, { VN_OP_ROPE, "theta", -1e4 }, { VN_OP_ROPE, "rotary_dim", 3 },
		{ VN_OP_ROPE, "rotary_dim", 0 }, { VN_OP_ROPE, "type", VN_N_ROPES }, { VN_OP_ROPE, "truncate", 0.5 },
		{ VN_OP_RMS_NORM, "eps", -1e-6 }, { VN_OP_RMS_NORM, "scale", 1 }, { VN_OP_ADD, "eps", 1 }, { VN_OP_ACT, "act", VN_N_ACTS },
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		vn_node       n = { .op = bad[i].op };
		const vn_node before = n;
		vn_error      e = { "" };
		CU_ASSERT_EQUAL(vn_const_set(&n, bad[i].name, bad[i].value, &e), VN_ERR_USAGE);
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, bad[i].name));
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, vn_op_name(bad[i].op)));
		CU_ASSERT_EQUAL(memcmp(&n, &before, sizeof n), 0);
	}
}

/* ---- the rules ------------------------------------------------------------------------------ */

static void what_follows_from_the_rest_must_be_as_it_follows(void)
{
	vn_plan *p = toy();
	vn_error e;

	CU_ASSERT_EQUAL(vn_plan_check(p, &e), VN_OK);
	for (int v = 0; v < p->n_values; v++) {
		vn_value *x = &p->value[v];
		int      *derived[] = { &x->node, &x->slot, &x->last_use, &x->state };
		for (int i = 0; i < 4; i++)
			for (int by = -1; by <= 1; by += 2) {
				*derived[i] += by;
				CU_ASSERT_EQUAL(vn_plan_check(p, &e), VN_ERR_UNSUPPORTED);
				CU_ASSERT_PTR_NOT_NULL(strstr(e.text, x->name));
				*derived[i] -= by;
			}
	}
	for (int s = 0; s < p->n_states; s++) {
		vn_state *x = &p->state[s], was = *x;
		int      *derived[] = { &x->node, &x->value, &x->input, &x->rank, &x->size[0], &x->size[2] };
		for (int i = 0; i < 6; i++)
			for (int by = -1; by <= 1; by += 2) {
				*derived[i] += by;
				CU_ASSERT_EQUAL(vn_plan_check(p, &e), VN_ERR_UNSUPPORTED);
				*x = was;
			}
		x->wide = true;
		CU_ASSERT_EQUAL(vn_plan_check(p, &e), VN_ERR_UNSUPPORTED);
		*x = was;
	}
	p->n_states--;
	CU_ASSERT_EQUAL(vn_plan_check(p, &e), VN_ERR_UNSUPPORTED);
	CU_ASSERT_EQUAL(vn_plan_settle(p, &e), VN_OK);
	CU_ASSERT_EQUAL(p->n_states, 2 * L);
	vn_plan_destroy(p);
}

static void constants_that_are_no_numbers_are_refused(void)
{
	vn_plan *p = toy();
	vn_error e;

	for (int i = 0; i < p->n_nodes; i++) {
		vn_node  *n = &p->node[i], was = *n;
		double   *real[] = { &n->c.norm.eps, &n->c.rope.rope.theta, &n->c.rope.rope.mscale, &n->c.attention.scale };
		const int op[] = { VN_OP_RMS_NORM, VN_OP_ROPE, VN_OP_ROPE, VN_OP_ATTENTION };
		for (int k = 0; k < 4; k++)
			if ((int)n->op == op[k]) {
				*real[k] = (double)NAN;
				CU_ASSERT_EQUAL(vn_plan_check(p, &e), VN_ERR_UNSUPPORTED);
				*real[k] = (double)INFINITY;
				CU_ASSERT_EQUAL(vn_plan_check(p, &e), VN_ERR_UNSUPPORTED);
				*n = was;
			}
	}
	CU_ASSERT_EQUAL(vn_plan_check(p, &e), VN_OK);
	vn_plan_destroy(p);
}

/* Under the address sanitizer: whatever stands in a plan, looking at it is safe. */
static void any_number_in_any_place_is_looked_at_safely(void)
{
	const int odd[] = { -2147483647 - 1, -3, -2, -1, 0, 1, 3, 5, 1000, 2147483647 };
	vn_plan  *p = toy(), *c;
	vn_error  e;
	int       refused = 0;

	for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
		for (int i = 0; i < p->n_nodes; i++)
			for (int f = 0; f < 15; f++) {
				CU_ASSERT_EQUAL_FATAL(vn_plan_clone(p, &c, NULL), VN_OK);
				vn_node *n = &c->node[i];
				int     *field[] = { &n->layer, &n->n_in, &n->n_w, &n->n_out, &n->in[0], &n->in[2], &n->w[0], &n->w[1], &n->out[0],
				                     &n->out[2], &n->c.attention.heads, &n->c.attention.kv_heads, &n->n_state, &n->state[0], &n->out[3] };
				*field[f] = odd[k];
				refused += vn_plan_check(c, &e) != VN_OK;
				vn_plan_settle(c, &e);
				vn_plan_destroy(c);
			}
		for (int i = 0; i < p->n_values; i++)
			for (int f = 0; f < 7; f++) {
				CU_ASSERT_EQUAL_FATAL(vn_plan_clone(p, &c, NULL), VN_OK);
				vn_value *v = &c->value[i];
				int      *field[] = { &v->layer, &v->node, &v->slot, &v->alias_of, &v->rank, &v->size[1], &v->state };
				*field[f] = odd[k];
				refused += vn_plan_check(c, &e) != VN_OK;
				vn_plan_settle(c, &e);
				vn_plan_destroy(c);
			}
	}
	CU_ASSERT(refused > 2000);
	vn_plan_destroy(p);
}

static vn_plan *longrope(void)
{
	json_t  *o = json_loads("{\"model_type\":\"llama\",\"vocab_size\":32,\"hidden_size\":16,\"intermediate_size\":24,\"num_hidden_layers\":2,"
	                        "\"num_attention_heads\":4,\"max_position_embeddings\":64,\"rope_scaling\":{\"rope_type\":\"longrope\","
	                        "\"factor\":4,\"short_factor\":[1,1.5],\"long_factor\":[2,4.1]}}", 0, NULL);
	vn_plan *p = NULL;
	vn_error e;

	CU_ASSERT_EQUAL_FATAL(vn_plan_llama("c", o, &p, &e), VN_OK);
	json_decref(o);
	return p;
}

static void a_list_belongs_to_its_plan_and_is_compared_by_its_numbers(void)
{
	vn_plan *p = longrope(), *c;
	vn_error e;

	CU_ASSERT_EQUAL_FATAL(vn_plan_clone(p, &c, &e), VN_OK);
	CU_ASSERT_EQUAL(c->n_lists, 2);
	CU_ASSERT(c->list != p->list && c->list[0].x != p->list[0].x);
	CU_ASSERT_TRUE(vn_plan_equal(p, c));
	c->list[1].x[1] = 4.2f;
	CU_ASSERT_FALSE(vn_plan_equal(p, c));
	c->list[1].x[1] = p->list[1].x[1];
	/* the same numbers under another number are the same */
	const int other = vn_list_add(c, 2, (float[]){ 7, 8 });
	CU_ASSERT_EQUAL(other, 3);
	CU_ASSERT_EQUAL(vn_list_add(c, 2, (float[]){ 7, 8 }), 3);
	CU_ASSERT_EQUAL(vn_list_add(c, 2, (float[]){ 2, 4.1f }), 2);
	for (int i = 0; i < c->n_nodes; i++)
		if (c->node[i].op == VN_OP_ROPE)
			c->node[i].c.rope.rope.long_factor = other;
	CU_ASSERT_FALSE(vn_plan_equal(p, c));
	memcpy(c->list[2].x, p->list[1].x, 2 * sizeof(float));
	CU_ASSERT_TRUE(vn_plan_equal(p, c));
	vn_plan_destroy(c);
	vn_plan_destroy(p);
}

static void lists_that_do_not_fit_are_refused(void)
{
	vn_plan *p = longrope();
	vn_error e;
	vn_rope *r = &p->node[p->value[vn_plan_find(p, "layer1.k_rope")].node].c.rope.rope;
	const vn_rope was = *r;
	const float   bad[] = { 0, -1, (float)NAN, (float)INFINITY };

	CU_ASSERT_EQUAL(vn_plan_check(p, &e), VN_OK);
	for (int list = -1; list <= 3; list++) {
		r->short_factor = list;
		CU_ASSERT_EQUAL(vn_plan_check(p, &e), list == 1 || list == 2 ? VN_OK : VN_ERR_UNSUPPORTED);
		*r = was;
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		p->list[1].x[0] = bad[i];
		CU_ASSERT_EQUAL(vn_plan_check(p, &e), VN_ERR_UNSUPPORTED);
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "long_factor is not a list of 2 numbers"));
	}
	p->list[1].x[0] = 2;
	p->list[1].n = 1;
	CU_ASSERT_EQUAL(vn_plan_check(p, &e), VN_ERR_UNSUPPORTED);
	p->list[1].n = 2;
	r->original_context = 1;
	CU_ASSERT_EQUAL(vn_plan_check(p, &e), VN_ERR_UNSUPPORTED);
	*r = was;
	r->type = VN_ROPE_DYNAMIC;
	CU_ASSERT_EQUAL(vn_plan_check(p, &e), VN_OK);
	r->max_context = 0;
	CU_ASSERT_EQUAL(vn_plan_check(p, &e), VN_ERR_UNSUPPORTED);
	*r = was;
	CU_ASSERT_EQUAL(vn_plan_check(p, &e), VN_OK);
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

/* ---- taps -------------------------------------------------------------------------------- */

/* How many values are chosen; -1: refused. */
static int choose(const vn_plan *p, bool *want, int first, int last, vn_error *e, const char *a, const char *b)
{
	const char *pattern[] = { a, b };
	int         n = 0;

	if (vn_taps_choose(p, pattern, !!a + !!b, first, last, want, e))
		return -1;
	for (int v = 0; v < p->n_values; v++)
		n += want[v];
	return n;
}

static void without_patterns_all_is_chosen_that_is_not_on_demand(void)
{
	vn_plan *p = toy();
	bool     want[64];
	vn_error e;

	CU_ASSERT_EQUAL(choose(p, want, -1, 0, &e, NULL, NULL), p->n_values - 5 * L);
	CU_ASSERT_FALSE(want[vn_plan_find(p, "layer0.attn_probs")]);
	CU_ASSERT_FALSE(want[vn_plan_find(p, "layer1.gate_act")]);
	CU_ASSERT_TRUE(want[vn_plan_find(p, "logits")]);
	CU_ASSERT_EQUAL(choose(p, want, 1, 1, &e, NULL, NULL), 3 + 16 + 1); /* outside layers too, and layer0.output for its alias */
	vn_plan_destroy(p);
}

static void a_pattern_chooses_by_name_even_on_demand(void)
{
	vn_plan *p = toy();
	bool     want[64];
	vn_error e;

	memset(want, 1, sizeof want); /* cleared first */
	CU_ASSERT_EQUAL(choose(p, want, -1, 0, &e, "layer*.{q,k}_rope", NULL), 4);
	CU_ASSERT_EQUAL(choose(p, want, -1, 0, &e, "layer*.attn_probs", "logits"), 3);
	CU_ASSERT_EQUAL(choose(p, want, 1, 1, &e, "layer*.attn_probs", "logits"), 2);
	CU_ASSERT_TRUE(want[vn_plan_find(p, "layer1.attn_probs")]);
	CU_ASSERT_EQUAL(choose(p, want, -1, 0, &e, "*", NULL), p->n_values);
	vn_plan_destroy(p);
}

static void a_second_name_chooses_the_value_it_stands_for(void)
{
	vn_plan *p = toy();
	bool     want[64];
	vn_error e;

	CU_ASSERT_EQUAL(choose(p, want, -1, 0, &e, "layer1.input", NULL), 2);
	CU_ASSERT_TRUE(want[vn_plan_find(p, "layer0.output")]);
	CU_ASSERT_TRUE(want[vn_plan_find(p, "layer1.input")]);
	vn_plan_destroy(p);
}

static void a_pattern_that_selects_nothing_is_named(void)
{
	vn_plan *p = toy();
	bool     want[64];
	vn_error e = { "" };

	CU_ASSERT_EQUAL(choose(p, want, -1, 0, &e, "logits", "layer9.*"), -1);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "'layer9.*'"));
	CU_ASSERT_EQUAL(choose(p, want, -1, 0, &e, "{", NULL), -1);
	CU_ASSERT_EQUAL(choose(p, want, -1, 0, &e, "", NULL), -1);
	CU_ASSERT_EQUAL(choose(p, want, 7, 9, &e, "layer*.q_rope", NULL), -1);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "layers 7-9"));
	vn_plan_destroy(p);
}

static void rows_are_cut_to_the_call(void)
{
	const struct { vn_tap_rows rows; int64_t first, last, past, tokens, want_first, want_count; } row[] = {
		{ VN_ROWS_ALL, 0, 0, 0, 5, 0, 5 },     { VN_ROWS_ALL, 0, 0, 7, 5, 0, 5 },
		{ VN_ROWS_LAST, 0, 0, 0, 5, 4, 1 },    { VN_ROWS_LAST, 0, 0, 7, 1, 0, 1 },
		{ VN_ROWS_RANGE, 1, 3, 0, 5, 1, 3 },   { VN_ROWS_RANGE, 0, 99, 0, 5, 0, 5 },
		{ VN_ROWS_RANGE, 3, 3, 0, 5, 3, 1 },   { VN_ROWS_RANGE, 8, 9, 7, 5, 1, 2 },
		{ VN_ROWS_RANGE, 4, 8, 7, 5, 0, 2 },   { VN_ROWS_RANGE, 11, 20, 7, 5, 4, 1 },
		{ VN_ROWS_RANGE, 0, 6, 7, 5, -1, 0 },  { VN_ROWS_RANGE, 12, 20, 7, 5, -1, 0 },
		{ VN_ROWS_RANGE, 3, 2, 0, 5, -1, 0 },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const vn_taps t = { .rows = row[i].rows, .first = row[i].first, .last = row[i].last };
		int64_t       first = -9, count = -9;
		vn_taps_select(&t, row[i].past, row[i].tokens, &first, &count);
		CU_ASSERT_EQUAL(count, row[i].want_count);
		CU_ASSERT(row[i].want_count ? first == row[i].want_first : first >= 0 && first <= row[i].tokens);
	}
}

int main(void)
{
	unsigned failures = 1;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;

	CU_pSuite s = CU_add_suite("plan", NULL, NULL);
	if (s && CU_ADD_TEST(s, every_checkpoint_of_a_qwen2_layer_is_there_in_order_with_its_shape) &&
	    CU_ADD_TEST(s, the_checkpoints_outside_layers_are_there_with_their_shapes) &&
	    CU_ADD_TEST(s, the_axes_of_every_point_fit_its_values) &&
	    CU_ADD_TEST(s, every_weight_of_qwen2_is_asked_for_in_its_shape) &&
	    CU_ADD_TEST(s, inputs_come_before_their_readers_and_last_use_is_true) &&
	    CU_ADD_TEST(s, the_input_of_a_layer_is_another_name_for_what_came_before) &&
	    CU_ADD_TEST(s, a_shape_puts_in_the_numbers_of_the_call) &&
	    CU_ADD_TEST(s, a_weight_asked_for_twice_is_one_and_in_two_shapes_a_failure) &&
	    CU_ADD_TEST(s, sizes_that_do_not_fit_are_refused_with_the_name) &&
	    CU_ADD_TEST(s, columns_that_are_not_there_cannot_be_taken) &&
	    CU_ADD_TEST(s, a_product_may_be_turned_over_where_the_shape_allows_it) &&
	    CU_ADD_TEST(s, the_checkpoints_of_gpt2_are_there_in_order) &&
	    CU_ADD_TEST(s, queries_keys_and_values_must_fit_together) &&
	    CU_ADD_TEST(s, a_checkpoint_may_be_named_once) &&
	    CU_ADD_TEST(s, the_first_failure_is_kept_and_later_calls_do_no_harm) &&
	    CU_ADD_TEST(s, a_weight_name_that_is_too_long_is_refused) &&
	    CU_ADD_TEST(s, an_empty_plan_and_a_second_name_for_a_second_name_are_fine) &&
	    CU_ADD_TEST(s, a_node_that_is_given_a_second_name_reads_the_first) &&
	    CU_ADD_TEST(s, a_constant_set_in_a_clone_changes_the_clone_alone) &&
	    CU_ADD_TEST(s, every_constant_is_read_back_as_it_was_set) &&
	    CU_ADD_TEST(s, a_constant_out_of_range_or_unknown_is_refused_and_nothing_changes) &&
	    CU_ADD_TEST(s, what_follows_from_the_rest_must_be_as_it_follows) &&
	    CU_ADD_TEST(s, constants_that_are_no_numbers_are_refused) &&
	    CU_ADD_TEST(s, any_number_in_any_place_is_looked_at_safely) &&
	    CU_ADD_TEST(s, a_list_belongs_to_its_plan_and_is_compared_by_its_numbers) &&
	    CU_ADD_TEST(s, lists_that_do_not_fit_are_refused) &&
	    CU_ADD_TEST(s, names_of_operations_and_points_lead_back_to_them) &&
	    CU_ADD_TEST(s, without_patterns_all_is_chosen_that_is_not_on_demand) &&
	    CU_ADD_TEST(s, a_pattern_chooses_by_name_even_on_demand) &&
	    CU_ADD_TEST(s, a_second_name_chooses_the_value_it_stands_for) &&
	    CU_ADD_TEST(s, a_pattern_that_selects_nothing_is_named) &&
	    CU_ADD_TEST(s, rows_are_cut_to_the_call)) {
		CU_basic_set_mode(CU_BRM_VERBOSE);
		CU_basic_run_tests();
		failures = CU_get_number_of_failures();
	}
	CU_cleanup_registry();
	return failures != 0;
}
