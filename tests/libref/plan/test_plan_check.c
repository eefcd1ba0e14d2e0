/* test_plan_check.c: constants and rules: what a plan may not say, however it came to say it. */
#include "tests/support/plan_help.h"

#include <math.h>

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
	/* clang-format off */
	const struct { vn_op op; const char *name; double value; } bad[] = {
		{ VN_OP_ATTENTION, "heads", 0 }, { VN_OP_ATTENTION, "heads", 1.5 }, { VN_OP_ATTENTION, "causal", 2 },
		  { VN_OP_ATTENTION, "window", -1 },
		{ VN_OP_ATTENTION, "window", 1e300 }, { VN_OP_ATTENTION, "scale", (double)NAN },
		  { VN_OP_ATTENTION, "scale", (double)INFINITY },
		{ VN_OP_ROPE, "theta", 1 }, { VN_OP_ROPE, "theta", 0.5 }, { VN_OP_ROPE, "theta", -1e4 },
		  { VN_OP_ROPE, "rotary_dim", 3 },
		{ VN_OP_ROPE, "rotary_dim", 0 }, { VN_OP_ROPE, "type", VN_N_ROPES }, { VN_OP_ROPE, "truncate", 0.5 },
		{ VN_OP_RMS_NORM, "eps", -1e-6 }, { VN_OP_RMS_NORM, "scale", 1 }, { VN_OP_ADD, "eps", 1 },
		  { VN_OP_ACT, "act", VN_N_ACTS },
	};
	/* clang-format on */

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

/* Under the address sanitizer: checking a plan is safe with any content. */
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
				int     *field[] = { &n->layer,
					                 &n->n_in,
					                 &n->n_w,
					                 &n->n_out,
					                 &n->in[0],
					                 &n->in[2],
					                 &n->w[0],
					                 &n->w[1],
					                 &n->out[0],
					                 &n->out[2],
					                 &n->c.attention.heads,
					                 &n->c.attention.kv_heads,
					                 &n->n_state,
					                 &n->state[0],
					                 &n->out[3] };
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
	json_t *o = json_loads(
		"{\"model_type\":\"llama\",\"vocab_size\":32,\"hidden_size\":16,\"intermediate_size\":24,"
		"\"num_hidden_layers\":2,\"num_attention_heads\":4,\"max_position_embeddings\":64,"
		"\"rope_scaling\":{\"rope_type\":\"longrope\",\"factor\":4,\"short_factor\":[1,1.5],\"long_factor\":[2,4.1]}}",
		0, NULL);
	vn_plan *p = NULL;
	vn_error e;

	CU_ASSERT_EQUAL_FATAL(vn_family_llama.plan("c", o, &p, &e), VN_OK);
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
	const int other = vn_list_add(c, 2, (float[]) { 7, 8 });
	CU_ASSERT_EQUAL(other, 3);
	CU_ASSERT_EQUAL(vn_list_add(c, 2, (float[]) { 7, 8 }), 3);
	CU_ASSERT_EQUAL(vn_list_add(c, 2, (float[]) { 2, 4.1f }), 2);
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
	vn_plan      *p = longrope();
	vn_error      e;
	vn_rope      *r = &p->node[p->value[vn_plan_find(p, "layer1.k_rope")].node].c.rope.rope;
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
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "long_factor must be lists of 2 numbers"));
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

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_constant_set_in_a_clone_changes_the_clone_alone),
		TEST(every_constant_is_read_back_as_it_was_set),
		TEST(a_constant_out_of_range_or_unknown_is_refused_and_nothing_changes),
		TEST(what_follows_from_the_rest_must_be_as_it_follows),
		TEST(constants_that_are_no_numbers_are_refused),
		TEST(any_number_in_any_place_is_looked_at_safely),
		TEST(a_list_belongs_to_its_plan_and_is_compared_by_its_numbers),
		TEST(lists_that_do_not_fit_are_refused),
		CU_TEST_INFO_NULL,
	};
	return run_suite("plan_check", tests);
}
