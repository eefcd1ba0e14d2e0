/* test_eval.c: changed constants, and a call in parts (libref/exec/eval.h). */
#include "libref/exec/eval.h"
#include "libref/ops/blas.h"
#include "tests/support/ref_help.h"

#include <math.h>

/* ---- some tokens of a call ------------------------------------------------------------------- */

/* A few tokens by themselves are summed in double. If they are declared part of a long call, they
 * get its bits. */
static void rows_of_a_long_call_have_its_products(void)
{
	enum { IN = 512, OUT = 256, FEW = 3, FROM = 70, ALL = 96 };
	static float    x[ALL * IN], w[OUT * IN], all[ALL * OUT], some[FEW * OUT];
	const vn_tensor t = { VN_F32, { 2, { OUT, IN } }, w };
	const vn_node   n = { .op = VN_OP_LINEAR };
	vn_args         a = { .policy = F32, .threads = 2, .tokens = ALL, .in = { x }, .w = { &t } };

	for (int i = 0; i < ALL * IN; i++)
		x[i] = (float)sin(1.7 * i);
	for (int i = 0; i < OUT * IN; i++)
		w[i] = (float)sin(2.3 * i + 1);
	CU_ASSERT_EQUAL_FATAL(vn_blas_prepare(8, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_eval_for(F32)->node(&n, &a, OUT, OUT, all, NULL), VN_OK);
	a.tokens = FEW;
	a.in[0] = x + FROM * IN;
	CU_ASSERT_EQUAL(vn_eval_for(F32)->node(&n, &a, OUT, OUT, some, NULL), VN_OK);
	CU_ASSERT_NOT_EQUAL(memcmp(some, all + FROM * OUT, sizeof some), 0);
	a.of = ALL;
	for (int threads = 1; threads <= 8; threads *= 2) {
		a.threads = threads;
		CU_ASSERT_EQUAL(vn_eval_for(F32)->node(&n, &a, OUT, OUT, some, NULL), VN_OK);
		CU_ASSERT_EQUAL(memcmp(some, all + FROM * OUT, sizeof some), 0);
	}
}

/* A product in a format is in it whatever formats the policy has, and is not shared. */
static void a_product_in_a_format_is_in_it_under_every_policy(void)
{
	enum { IN = 512, OUT = 256, T_ALL = 96 };
	static float    x[T_ALL * IN], w[OUT * IN], y[2][T_ALL * OUT];
	const vn_tensor t = { VN_F32, { 2, { OUT, IN } }, w };
	vn_node         n = { .op = VN_OP_LINEAR };
	vn_policy       roles = F32;

	for (int i = 0; i < T_ALL * IN; i++)
		x[i] = (float)sin(1.7 * i);
	for (int i = 0; i < OUT * IN; i++)
		w[i] = (float)sin(2.3 * i + 1);
	roles.role[VN_ROLE_WEIGHTS] = VN_ROLE_F8;
	CU_ASSERT_TRUE(vn_eval_shares(&n, &t, T_ALL, F32, F32));
	n.x.linear.format = VN_FORMAT_BF16;
	CU_ASSERT_FALSE(vn_eval_shares(&n, &t, T_ALL, F32, F32));
	for (int k = 0; k < 2; k++) {
		const vn_args a = { .policy = k ? roles : F32, .threads = 1, .tokens = T_ALL, .in = { x }, .w = { &t } };
		CU_ASSERT_EQUAL(vn_eval_for(a.policy)->node(&n, &a, OUT, OUT, y[k], NULL), VN_OK);
		for (int i = 0; i < T_ALL * OUT; i++)
			CU_ASSERT_EQUAL((double)y[k][i], vn_in_format((double)y[k][i], VN_FORMAT_BF16));
	}
	CU_ASSERT_NOT_EQUAL(memcmp(y[0], y[1], sizeof *y), 0);
}

/* ---- changed constants ----------------------------------------------------------------------- */

static vn_plan *changed(const char *value, const char *constant, double to)
{
	vn_plan *c;

	CU_ASSERT_EQUAL_FATAL(vn_plan_clone(vn_model_plan(model), &c, NULL), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_const_set(&c->node[c->value[vn_plan_find(c, value)].node], constant, to, NULL), VN_OK);
	return c;
}

static void a_clone_whose_constants_do_not_fit_its_shapes_is_refused(void)
{
	const struct {
		const char *value, *constant;
		double      to;
		const char *word;
	} row[] = {
		{ "layer0.attn_context", "heads", 64, "64 heads" },
		{ "layer0.attn_context", "heads", 2, "2 heads" },
		{ "layer1.attn_context", "kv_heads", 4, "4 key heads" },
		{ "layer1.attn_context", "kv_heads", 1, "1 key heads" },
		{ "layer0.attn_context", "head_dim", 8, "width 8" },
		{ "layer0.attn_context", "head_dim", 2, "width 2" },
		{ "layer0.q_rope", "rotary_dim", 6, "rotary_dim is 6" },
		{ "layer0.k_rope", "rotary_dim", 65536, "rotary_dim is 65536" },
		{ "layer0.q_rope", "type", VN_ROPE_LLAMA3, "low_freq_factor" },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		vn_plan *c = changed(row[i].value, row[i].constant, row[i].to);
		vn_ref  *r;
		vn_error e = { "" };
		CU_ASSERT_EQUAL(vn_ref_create(c, vn_model_weights(model), &(vn_ref_options) { .policy = F32 }, &r, &e),
		                VN_ERR_UNSUPPORTED);
		CU_ASSERT_PTR_NULL(r);
		const bool said = strstr(e.text, row[i].word) && strstr(e.text, row[i].value);
		CU_ASSERT(said);
		if (!said)
			fprintf(stderr, "%s of %s: '%s'\n", row[i].constant, row[i].value, e.text);
		vn_plan_destroy(c);
	}
}

static void a_changed_constant_changes_its_own_node_and_nothing_beside_it(void)
{
	const struct {
		const char *value, *constant;
		double      to;
	} row[] = {
		{ "layer1.attn_norm", "eps", 1e-2 },    { "layer1.q_rope", "theta", 500 },
		{ "layer1.k_rope", "rotary_dim", 2 },   { "layer1.attn_context", "scale", 0.25 },
		{ "layer1.attn_context", "window", 3 }, { "layer1.attn_context", "causal", 0 },
	};
	keep a, b;

	run(&a, F32, 2, "*", ids, T);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		vn_plan  *c = changed(row[i].value, row[i].constant, row[i].to);
		vn_ref   *r = engine(c, F32, 2);
		const int own = vn_plan_find(c, row[i].value), node = c->value[own].node;
		bool      follows[MOST_VALUES] = { false }; /* reads what the node made, at whatever distance */
		keep_start(&b, c, "*");
		forward(r, ids, T, &b);
		CU_ASSERT_FALSE(same_bits(&a, &b, row[i].value));
		follows[own] = true;
		for (int n = node; n < c->n_nodes; n++) {
			bool reads = n == node; /* its scores and probabilities may change, too */
			for (int j = 0; j < c->node[n].n_in; j++)
				reads = reads || follows[c->node[n].in[j]];
			for (int j = 0; reads && j < c->node[n].n_out; j++)
				follows[c->node[n].out[j]] = true;
		}
		for (int v = 0; v < c->n_values; v++)
			if (c->value[v].alias_of < 0 && !follows[v])
				CU_ASSERT(same_bits(&a, &b, c->value[v].name));
		CU_ASSERT_FALSE(same_bits(&a, &b, "logits"));
		vn_ref_ops.destroy(r);
		keep_clear(&b);
		vn_plan_destroy(c);
	}
	keep_clear(&a);
}

/* ---- a call in parts ------------------------------------------------------------------------- */

enum { MOST_ROW = T * TOY_V * 8 }; /* bytes of the largest value here, and more */

/* Computes a node outside the engine from the engine's values: (tokens, row) in the storage
 * format. */
static void compute(vn_ref *r, const vn_plan *p, int node, vn_policy policy, unsigned char *out)
{
	static unsigned char stored[VN_MAX_IN][MOST_ROW], real[VN_MAX_IN + 1][2 * MOST_ROW];
	const vn_eval       *e = vn_eval_for(policy);
	const vn_node       *n = &p->node[node];
	const vn_value      *y = &p->value[n->out[0]];
	vn_args              a = { .policy = policy, .threads = 1, .tokens = T, .ids = ids };
	const bool           half = policy.storage == VN_F16;

	for (int i = 0; i < n->n_in; i++) {
		CU_ASSERT_EQUAL_FATAL(vn_ref_ops.read(r, n->in[i], stored[i], NULL), VN_OK);
		if (half)
			vn_to_f32((float *)(void *)real[i], stored[i], VN_F16, (size_t)(T * vn_value_row(&p->value[n->in[i]])));
		a.in[i] = half ? real[i] : stored[i];
	}
	for (int i = 0; i < n->n_w; i++)
		a.w[i] = n->w[i] >= 0 ? &vn_model_weights(model)[n->w[i]] : NULL;
	for (int i = 0; i < n->n_state; i++) /* the first call: its own rows are all there are */
		a.state[i] = (void *)(uintptr_t)a.in[p->state[n->state[i]].input];
	CU_ASSERT_EQUAL(e->node(n, &a, vn_value_row(y), y->size[y->rank - 1], half ? real[VN_MAX_IN] : out, NULL), VN_OK);
	if (half)
		vn_from_f32(out, VN_F16, (float *)(void *)real[VN_MAX_IN], (size_t)(T * vn_value_row(y)));
}

static void a_node_computed_elsewhere_and_written_gives_the_same_bits(void)
{
	const vn_plan *p = vn_model_plan(model);
	unsigned char  made[MOST_ROW], back[MOST_ROW];

	for (int i = 0; i < 4; i++) {
		keep    whole, after, b;
		vn_ref *r = engine(p, all_policies[i], 1);
		run(&whole, all_policies[i], 1, "logits", ids, T);
		forward(r, ids, T, NULL);
		keep_start(&after, p, "logits");
		forward(r, ids, 1, &after); /* a token behind it: the cache must be as full */
		for (int n = 0; n < p->n_nodes; n++) {
			if (vn_value_streams(p, p->node[n].out[0]))
				continue;
			vn_ref_ops.reset(r);
			keep_start(&b, p, "logits");
			const vn_taps t = taps_of(&b);
			const size_t  bytes = (size_t)(T * vn_value_row(&p->value[p->node[n].out[0]])) *
			                     vn_dtype_size(all_policies[i].storage);
			CU_ASSERT_EQUAL_FATAL(vn_ref_ops.begin(r, ids, T, &t, NULL), VN_OK);
			CU_ASSERT_EQUAL(vn_ref_ops.run(r, 0, n, NULL), VN_OK);
			compute(r, p, n, all_policies[i], made);
			CU_ASSERT_EQUAL(vn_ref_ops.write(r, p->node[n].out[0], made, NULL), VN_OK);
			CU_ASSERT_EQUAL(vn_ref_ops.read(r, p->node[n].out[0], back, NULL), VN_OK);
			CU_ASSERT_EQUAL(memcmp(made, back, bytes), 0);
			CU_ASSERT_EQUAL(vn_ref_ops.run(r, n + 1, p->n_nodes, NULL), VN_OK);
			vn_ref_ops.end(r, true, NULL);
			CU_ASSERT_EQUAL(vn_ref_ops.position(r), T);
			CU_ASSERT(same_bits(&whole, &b, "logits"));
			forward(r, ids, 1, &b);
			CU_ASSERT(same_bits(&after, &b, "logits"));
			keep_clear(&b);
		}
		vn_ref_ops.destroy(r);
		keep_clear(&whole);
		keep_clear(&after);
	}
}

static void a_changed_value_changes_exactly_what_follows(void)
{
	const vn_plan *p = vn_model_plan(model);
	const int      v = vn_plan_find(p, "layer0.down_proj"), n = p->value[v].node;
	vn_ref        *r = engine(p, F32, 2);
	float          x[T * TOY_D];
	keep           a, b;

	run(&a, F32, 2, "*", ids, T);
	keep_start(&b, p, "*");
	const vn_taps t = taps_of(&b);
	CU_ASSERT_EQUAL_FATAL(vn_ref_ops.begin(r, ids, T, &t, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_ref_ops.run(r, 0, n, NULL), VN_OK);
	memcpy(x, a.value[v].data, sizeof x);
	x[5 * TOY_D + 3] += 1.0f; /* of token 5 */
	CU_ASSERT_EQUAL(vn_ref_ops.write(r, v, x, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_ref_ops.run(r, n + 1, p->n_nodes, NULL), VN_OK);
	vn_ref_ops.end(r, true, NULL);
	CU_ASSERT_PTR_NULL(b.value[v].data); /* a tap shows what a node makes */
	for (int i = 0; i < p->n_values; i++) {
		if (p->value[i].alias_of >= 0 || i == v)
			continue;
		if (p->value[i].node < n) {
			CU_ASSERT(same_bits(&a, &b, p->value[i].name));
		} else {
			CU_ASSERT_FALSE(same_bits(&a, &b, p->value[i].name));
			CU_ASSERT(rows_same(&a, &b, i, 5));
		}
	}
	vn_ref_ops.destroy(r);
	keep_clear(&a);
	keep_clear(&b);
}

static void what_is_not_there_is_refused_and_never_made_up(void)
{
	const vn_plan *p = vn_model_plan(model);
	const int      embed = vn_plan_find(p, "embed"), q = vn_plan_find(p, "layer0.q_proj"),
			  k = vn_plan_find(p, "layer0.k_rope");
	const int     out = p->value[vn_plan_find(p, "layer0.attn_out")].node;
	vn_ref       *r = engine(p, F32, 1);
	unsigned char x[MOST_ROW] = { 0 };
	vn_error      e;

	vn_ref_ops.end(r, true, NULL); /* nothing is begun: nothing happens */
	CU_ASSERT_EQUAL(vn_ref_ops.position(r), 0);
	CU_ASSERT_EQUAL(vn_ref_ops.run(r, 0, 1, &e), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_ref_ops.read(r, embed, x, &e), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_ref_ops.write(r, embed, x, &e), VN_ERR_USAGE);

	CU_ASSERT_EQUAL_FATAL(vn_ref_ops.begin(r, ids, T, NULL, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_ref_ops.begin(r, ids, T, NULL, &e), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_ref_ops.forward(r, ids, T, NULL, &e), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_ref_ops.run(r, -1, 1, &e), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_ref_ops.run(r, 0, p->n_nodes + 1, &e), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_ref_ops.read(r, embed, x, &e), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_ref_ops.run(r, 1, 2, &e), VN_ERR_USAGE);
	CU_ASSERT_STRING_EQUAL(
		e.text,
		"layer0.attn_norm: its input embed is not in memory: it was neither computed nor written, or is already freed");
	CU_ASSERT_EQUAL(vn_ref_ops.run(r, 0, out + 1, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_ref_ops.read(r, embed, x, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_ref_ops.read(r, vn_plan_find(p, "layer0.input"), x, NULL), VN_OK); /* its second name */
	CU_ASSERT_EQUAL(vn_ref_ops.read(r, p->n_values, x, &e), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_ref_ops.read(r, vn_plan_find(p, "layer0.attn_probs"), x, &e), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_ref_ops.write(r, vn_plan_find(p, "logits"), x, &e), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_ref_ops.run(r, out + 1, p->n_nodes, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_ref_ops.read(r, q, x, &e), VN_ERR_USAGE); /* its memory is another's by now */
	vn_ref_ops.end(r, false, NULL);
	CU_ASSERT_EQUAL(vn_ref_ops.position(r), 0);

	/* keys of a kept call that nobody made: refused when they are needed */
	CU_ASSERT_EQUAL_FATAL(vn_ref_ops.begin(r, ids, T, NULL, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_ref_ops.run(r, 0, p->value[k].node, NULL), VN_OK);
	vn_ref_ops.end(r, true, NULL);
	CU_ASSERT_EQUAL(vn_ref_ops.forward(r, ids, 1, NULL, &e), VN_ERR_USAGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "layer0.attn_context: its input layer0.k_rope is not in memory"));
	CU_ASSERT_EQUAL(vn_ref_ops.position(r), T);
	vn_ref_ops.reset(r);
	forward(r, ids, T, NULL);
	vn_ref_ops.destroy(r);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(rows_of_a_long_call_have_its_products),
		TEST(a_product_in_a_format_is_in_it_under_every_policy),
		TEST(a_clone_whose_constants_do_not_fit_its_shapes_is_refused),
		TEST(a_changed_constant_changes_its_own_node_and_nothing_beside_it),
		TEST(a_node_computed_elsewhere_and_written_gives_the_same_bits),
		TEST(a_changed_value_changes_exactly_what_follows),
		TEST(what_is_not_there_is_refused_and_never_made_up),
		CU_TEST_INFO_NULL,
	};
	return run_ref_suite("eval", tests);
}
