/* test_toggles.c: the nodes that a glob selects, and lists of globs. */
#include "capture/run/hybrid.h"
#include "libref/model/model.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

static vn_model *model;

static int count(const char *glob, bool *node)
{
	const vn_plan *p = vn_model_plan(model);
	int            n = 0;

	memset(node, 0, (size_t)p->n_nodes);
	CU_ASSERT_EQUAL(vn_toggles_match(p, glob, node, NULL), VN_OK);
	for (int i = 0; i < p->n_nodes; i++)
		n += node[i];
	return n;
}

static int maker(const char *name)
{
	const vn_plan *p = vn_model_plan(model);
	return p->value[vn_plan_find(p, name)].node;
}

static void a_glob_speaks_of_the_nodes_that_make_what_it_matches(void)
{
	const vn_plan *p = vn_model_plan(model);
	bool          *node = calloc((size_t)p->n_nodes, sizeof *node);

	CU_ASSERT_EQUAL(count("*", node), p->n_nodes);
	CU_ASSERT_EQUAL(count("layer1.{q,k}_rope", node), 2);
	CU_ASSERT(node[maker("layer1.q_rope")] && node[maker("layer1.k_rope")]);
	/* every output of a node stands for it */
	CU_ASSERT_EQUAL(count("layer0.attn_probs", node), 1);
	CU_ASSERT(node[maker("layer0.attn_context")]);
	CU_ASSERT_EQUAL(count("layer0.k_cache", node), 1);
	CU_ASSERT(node[maker("layer0.attn_context")]);
	free(node);
}

static void a_second_name_counts_where_no_first_one_matches(void)
{
	const vn_plan *p = vn_model_plan(model);
	bool          *node = calloc((size_t)p->n_nodes, sizeof *node);

	count("layer1.*", node);
	CU_ASSERT_FALSE(node[maker("layer0.output")]);
	CU_ASSERT_EQUAL(count("layer1.input", node), 1);
	CU_ASSERT(node[maker("layer0.output")]);
	free(node);
}

static void the_last_precision_that_matches_holds(void)
{
	const vn_plan *p = vn_model_plan(model);
	vn_policy     *policy = calloc((size_t)p->n_nodes, sizeof *policy);

	CU_ASSERT_EQUAL(vn_toggles_precision(p, "f32@layer1.*", policy, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_toggles_precision(p, "f16-acc16@*.q_proj", policy, NULL), VN_OK);
	CU_ASSERT_STRING_EQUAL(vn_policy_name(policy[maker("layer1.k_proj")]), "f32");
	CU_ASSERT_STRING_EQUAL(vn_policy_name(policy[maker("layer1.q_proj")]), "f16-acc16");
	CU_ASSERT_STRING_EQUAL(vn_policy_name(policy[maker("layer0.q_proj")]), "f16-acc16");
	CU_ASSERT_EQUAL(policy[maker("logits")].storage, 0);
	free(policy);
}

static void what_is_no_toggle_is_refused_by_name(void)
{
	static const char *const bad[] = { "nosuch", "layer9.*", "{a", "" }, *const precise[] = { "f32", "@*", "f99@*",
		                                                                                      "f32@nosuch", "f32@" };
	const vn_plan *p = vn_model_plan(model);
	bool          *node = calloc((size_t)p->n_nodes, sizeof *node);
	vn_policy     *policy = calloc((size_t)p->n_nodes, sizeof *policy);

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		vn_error err = { "" };
		CU_ASSERT_NOT_EQUAL(vn_toggles_match(p, bad[i], node, &err), VN_OK);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i]));
	}
	for (size_t i = 0; i < sizeof precise / sizeof *precise; i++) {
		vn_error err = { "" };
		CU_ASSERT_NOT_EQUAL(vn_toggles_precision(p, precise[i], policy, &err), VN_OK);
		CU_ASSERT_NOT_EQUAL(err.text[0], '\0');
	}
	free(policy);
	free(node);
}

static void a_list_is_cut_at_commas_outside_braces(void)
{
	static const struct {
		const char *text;
		int         n;
		const char *part[3];
	} list[] = {
		{ "", 0, { 0 } },
		{ "logits", 1, { "logits" } },
		{ "a,b,c", 3, { "a", "b", "c" } },
		{ "layer{0,1}.{q,{k,v}}_proj,logits", 2, { "layer{0,1}.{q,{k,v}}_proj", "logits" } },
		{ "a,,", 3, { "a", "", "" } },
		{ "a},b", 2, { "a}", "b" } },
	};
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		char        *text = strdup(list[i].text);
		int          n;
		const char **part = vn_toggles_split(text, &n);
		CU_ASSERT_EQUAL(n, list[i].n);
		for (int k = 0; k < n && k < list[i].n; k++)
			CU_ASSERT_STRING_EQUAL(part[k], list[i].part[k]);
		free(part);
		free(text);
	}
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_glob_speaks_of_the_nodes_that_make_what_it_matches),
		TEST(a_second_name_counts_where_no_first_one_matches),
		TEST(the_last_precision_that_matches_holds),
		TEST(what_is_no_toggle_is_refused_by_name),
		TEST(a_list_is_cut_at_commas_outside_braces),
		CU_TEST_INFO_NULL,
	};
	if (vn_model_open(VERNIER_SOURCE "/fixtures/qwen2-trained", &model, NULL))
		return 1;
	const int bad = run_suite("toggles", tests);
	vn_model_close(model);
	return bad;
}
