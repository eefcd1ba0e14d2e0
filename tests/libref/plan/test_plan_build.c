/* test_plan_build.c: the builder: nodes that fit together, and refusals that name the node. */
#include "tests/support/plan_help.h"

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
	return vn_plan_weight(b, name, n ? 2 : 1, (int64_t[]) { m, n });
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
	fails(b, VN_ERR_SHAPE, "weight w is used with two shapes");
}

static void sizes_that_do_not_fit_are_refused_with_the_name(void)
{
	const vn_rope rope = { .theta = 1e4, .rotary_dim = 4 }, wide = { .theta = 1e4, .rotary_dim = 6 },
				  odd = { .theta = 1e4, .rotary_dim = 3 };
	vn_builder *b;
	int         x, y;

	b = begin(&x), vn_plan_rms_norm(b, x, matrix(b, "n", 7, 0), 1e-6, VN_POINT_ATTN_NORM);
	fails(b, VN_ERR_SHAPE, "weight n is not as wide as the tensor");
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
	fails(b, VN_ERR_SHAPE, "embed: the rotary width");
	b = begin(&x), y = vn_plan_linear(b, x, matrix(b, "w", 8, 8), -1, 2, VN_POINT_Q_PROJ),
	vn_plan_rope(b, y, &wide, VN_POINT_Q_ROPE);
	fails(b, VN_ERR_SHAPE, "q_proj: the rotary width");
	b = begin(&x), y = vn_plan_linear(b, x, matrix(b, "w", 8, 8), -1, 2, VN_POINT_Q_PROJ),
	vn_plan_rope(b, y, &odd, VN_POINT_Q_ROPE);
	fails(b, VN_ERR_SHAPE, "q_proj: the rotary width");
	b = begin(&x), y = vn_plan_linear(b, x, matrix(b, "w", 4, 8), -1, 0, VN_POINT_UP_PROJ),
	vn_plan_add(b, x, y, VN_POINT_OUTPUT);
	fails(b, VN_ERR_SHAPE, "embed: its two inputs have different shapes");
	b = begin(&x), y = vn_plan_linear(b, x, matrix(b, "w", 8, 8), -1, 2, VN_POINT_UP_PROJ),
	vn_plan_gated(b, VN_SILU, y, x, VN_POINT_MLP_ACT);
	fails(b, VN_ERR_SHAPE, "up_proj: its two inputs have different shapes");
	b = vn_plan_begin(1, 10, 16), vn_plan_embed(b, matrix(b, "e", 9, 8), VN_POINT_EMBED);
	fails(b, VN_ERR_SHAPE, "weight e");
	b = vn_plan_begin(1, 10, 16), vn_plan_embed(b, matrix(b, "e", 10, 0), VN_POINT_EMBED);
	fails(b, VN_ERR_SHAPE, "weight e");
	b = vn_plan_begin(1, 10, 16), vn_plan_positions(b, matrix(b, "p", 10, 8), VN_POINT_POS_EMBED);
	fails(b, VN_ERR_SHAPE, "weight p does not have a row for every position");
	b = begin(&x), vn_plan_layer_norm(b, x, matrix(b, "n", 8, 0), matrix(b, "bias", 7, 0), 1e-6, VN_POINT_ATTN_NORM);
	fails(b, VN_ERR_SHAPE, "weight bias is not as wide as the tensor");
	b = begin(&x), vn_plan_conv1d(b, x, matrix(b, "w", 12, 8), -1, 0, VN_POINT_C_ATTN);
	fails(b, VN_ERR_SHAPE, "weight w does not fit");
	b = begin(&x), vn_plan_conv1d(b, x, matrix(b, "w", 8, 12), matrix(b, "bias", 8, 0), 0, VN_POINT_C_ATTN);
	fails(b, VN_ERR_SHAPE, "bias bias does not fit");
}

/* Experts of width 8 for a router of 4; the plan is settled. */
static vn_plan *with_experts(int *experts)
{
	int            x;
	vn_builder    *b = begin(&x);
	const vn_shape in = { 2, { 6, 8 } }, out = { 2, { 8, 6 } };
	vn_plan       *p;
	vn_error       e;

	const int logits = vn_plan_linear(b, x, matrix(b, "r", 4, 8), -1, 0, VN_POINT_ROUTER_LOGITS);
	const int ids = vn_plan_top_k(b, logits, -1, 2, VN_POINT_ROUTER_IDS);
	const int weights = vn_plan_route(b, logits, ids, true, false, VN_POINT_ROUTER_WEIGHTS);
	const int w[] = { vn_plan_weights(b, 4, "gate", "", in),
		              vn_plan_weights(b, 4, "up", "", in),
		              vn_plan_weights(b, 4, "down", "", out),
		              -1,
		              -1,
		              -1 };
	*experts = vn_plan_experts(b, x, ids, w, 4, VN_SILU, VN_POINT_EXPERT_OUT);
	vn_plan_combine(b, *experts, weights, VN_POINT_MOE_OUT);
	CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &p, &e), VN_OK);
	return p;
}

static void experts_need_weights_for_each_and_ids_for_each_slot(void)
{
	vn_plan *p, *c;
	vn_error e;
	int      experts;

	p = with_experts(&experts);
	vn_node *n = &p->node[p->value[experts].node];
	const struct {
		void       *at;
		int         bad;
		const char *word;
	} row[] = {
		{ &n->c.experts.experts, 5, "nodes[4] (experts, expert_out): the shapes" },
		{ &n->c.experts.experts, 0, "nodes[4]" },
		{ &n->w[VN_EXPERT_UP], n->w[VN_EXPERT_DOWN], "nodes[4] (experts, expert_out): the shapes" },
		{ &n->in[VN_EXPERTS_IDS], n->in[VN_EXPERTS_X], "nodes[4]" },
		{ &n->x.experts.moved, 4, "moved is 4, but there are 4 experts" },
		{ &n->x.experts.form, VN_N_EXPERT_FORMS, "form is " },
		{ &n[-2].c.top_k.k, 3, "nodes[2] (top_k, router_ids)" },
		{ &n[-2].x.top_k.skip, 3, "2 of 4 columns cannot be chosen" },
		{ &n[-1].c.route.columns, 3, "nodes[3] (route, router_weights)" },
		{ &n[-1].x.route.form, VN_N_ROUTE_FORMS, "(route, router_weights): form is " },
		{ &n[1].c.combine.slots, 3, "nodes[5] (combine, moe_out)" },
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		int *at = row[i].at, was = *at;
		*at = row[i].bad;
		CU_ASSERT_EQUAL(vn_plan_settle(p, &e), VN_ERR_UNSUPPORTED);
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, row[i].word));
		if (!strstr(e.text, row[i].word))
			fprintf(stderr, "wanted '%s', have '%s'\n", row[i].word, e.text);
		*at = was;
	}
	CU_ASSERT_EQUAL(vn_plan_settle(p, &e), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_plan_clone(p, &c, &e), VN_OK);
	CU_ASSERT(vn_plan_equal(p, c));
	c->node[p->value[experts].node].c.experts.act = VN_GELU;
	CU_ASSERT_FALSE(vn_plan_equal(p, c));
	vn_plan_destroy(c);
	vn_plan_destroy(p);
}

static void columns_that_are_not_there_cannot_be_taken(void)
{
	const struct {
		int stride, from, width, heads;
	} bad[] = {
		{ 0, 0, 1, 0 },          { 3, 0, 1, 0 },          { -8, 0, 1, 0 }, { 16, 0, 8, 0 },
		{ 8, -1, 4, 0 },         { 8, 0, 0, 0 },          { 8, 0, 9, 0 },  { 8, 5, 4, 0 },
		{ 4, 2147483647, 1, 0 }, { 4, 1, 2147483647, 0 }, { 8, 0, 4, 3 },
	};
	vn_plan    *p;
	vn_error    e;
	int         x;
	vn_builder *b;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		b = begin(&x),
		vn_plan_slice(b, x, (vn_columns) { bad[i].stride, bad[i].from, bad[i].width }, bad[i].heads, VN_POINT_Q_PROJ);
		fails(b, VN_ERR_SHAPE, "embed: its input does not have the columns to take");
	}
	b = begin(&x);
	const int y = vn_plan_slice(b, x, (vn_columns) { 4, 1, 3 }, 2, VN_POINT_Q_PROJ);
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

/* Another experiment than was built: the weight of c_proj (D,D) fits either way,
 * that of c_fc does not. */
static void a_weight_may_be_transposed_where_the_shape_allows_it(void)
{
	json_t  *o = json_loads("{\"n_embd\":16,\"n_layer\":1,\"n_head\":4,\"n_positions\":64,\"vocab_size\":32}", 0, NULL);
	vn_plan *p;
	vn_error e;

	CU_ASSERT_EQUAL_FATAL(vn_family_gpt2.plan("c", o, &p, &e), VN_OK);
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

static void queries_keys_and_values_must_fit_together(void)
{
	const struct {
		int h, hk, g, gk, u, uk;
	} bad[] = {
		{ 4, 16, 3, 12, 3, 12 },                                               /* 4 heads over 3 */
		{ 4, 16, 2, 16, 2, 16 },                                               /* another width */
		{ 4, 16, 2, 8, 4, 16 },                                                /* more values than keys */
		{ 0, 16, 2, 8, 2, 8 },   { 4, 16, 0, 8, 2, 8 }, { 4, 16, 2, 8, 0, 8 }, /* without heads */
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		int         x;
		vn_builder *b = begin(&x);
		const int   q = vn_plan_linear(b, x, matrix(b, "q", bad[i].hk, 8), -1, bad[i].h, VN_POINT_Q_PROJ);
		const int   k = vn_plan_linear(b, x, matrix(b, "k", bad[i].gk, 8), -1, bad[i].g, VN_POINT_K_PROJ);
		const int   v = vn_plan_linear(b, x, matrix(b, "v", bad[i].uk, 8), -1, bad[i].u, VN_POINT_V_PROJ);
		vn_plan_attention(b, q, k, v, 0.5, 0);
		fails(b, VN_ERR_SHAPE, "q_proj: the shapes of queries, keys and values");
	}
}

static void a_checkpoint_may_be_named_once(void)
{
	int         x;
	vn_builder *b = begin(&x);

	vn_plan_add(b, x, x, VN_POINT_EMBED);
	fails(b, VN_ERR_UNSUPPORTED, "two checkpoints are named embed");
	b = begin(&x);
	vn_plan_layer(b, 1);
	vn_plan_name(b, x, VN_POINT_INPUT);
	vn_plan_layer(b, 0);
	vn_plan_name(b, x, VN_POINT_INPUT); /* another layer, another name */
	vn_plan_layer(b, 1);
	vn_plan_name(b, x, VN_POINT_INPUT);
	fails(b, VN_ERR_UNSUPPORTED, "two checkpoints are named layer1.input");
}

static void the_first_failure_is_kept_and_later_calls_do_no_harm(void)
{
	int         x;
	vn_builder *b = begin(&x);
	int         y = vn_plan_linear(b, x, matrix(b, "first", 4, 7), -1, 0, VN_POINT_Q_PROJ);

	y = vn_plan_rms_norm(b, y, matrix(b, "second", 3, 0), 1e-6, VN_POINT_ATTN_NORM);
	y = vn_plan_rope(b, y, &(vn_rope) { .theta = 1e4, .rotary_dim = 3 }, VN_POINT_Q_ROPE);
	y = vn_plan_attention(b, y, y, y, 1, 0);
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

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_weight_asked_for_twice_is_one_and_in_two_shapes_a_failure),
		TEST(sizes_that_do_not_fit_are_refused_with_the_name),
		TEST(experts_need_weights_for_each_and_ids_for_each_slot),
		TEST(columns_that_are_not_there_cannot_be_taken),
		TEST(a_weight_may_be_transposed_where_the_shape_allows_it),
		TEST(queries_keys_and_values_must_fit_together),
		TEST(a_checkpoint_may_be_named_once),
		TEST(the_first_failure_is_kept_and_later_calls_do_no_harm),
		TEST(a_weight_name_that_is_too_long_is_refused),
		TEST(an_empty_plan_and_a_second_name_for_a_second_name_are_fine),
		TEST(a_node_that_is_given_a_second_name_reads_the_first),
		CU_TEST_INFO_NULL,
	};
	return run_suite("plan_build", tests);
}
