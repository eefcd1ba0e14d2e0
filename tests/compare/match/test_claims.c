/* test_claims.c: tests compare/match/claims.c. */
#include "compare/match/contract.h"
#include "tests/support/match_help.h"

#define LLAMA VERNIER_SOURCE "/fixtures/llama-trained"

enum { T = 2, D = 48, MOST = 8 };

static vn_model       *model;
static vn_tensor_label label[MOST];
static int             labels;

/* One more tensor, with the label that the plan gives it. */
static vn_tensor_label *add_tensor(const char *name)
{
	const vn_plan *p = vn_model_plan(model);
	const int      v = vn_plan_find(p, name);

	CU_ASSERT_FATAL(v >= 0 && labels < MOST);
	label[labels] = vn_label_of_value(p, v);
	return &label[labels++];
}

static void begin_labels(void)
{
	labels = 0;
}

/* Records the tensors with the llama's plan, and checks their claims. */
static void check(unsigned allow, vn_lines *notes, vn_lines *refusals)
{
	static float   x[T * D];
	const int32_t  ids[T] = { 5, 6 }, positions[T] = { 0, 1 };
	const vn_shape shape = { 2, { T, D } };
	vn_error       err = { "" };
	vn_facts       facts = { 0 };
	vn_store      *s = NULL;
	vn_status      st;

	vn_facts_set(&facts, "engine", "test");
	vn_facts_set(&facts, "precision", "f32");
	if (!(st = vn_store_create(at("claims.h5"), true, vn_model_plan(model), &s, &err)) &&
	    !(st = vn_store_run(s, &facts, ids, positions, T, &err)) && !(st = vn_store_model(s, model, NULL, &err)))
		st = vn_store_step(s, &(vn_step) { 0, 0, T, 0, T }, &err);
	for (int i = 0; !st && i < labels; i++)
		if (!(st = vn_store_begin(s, &label[i], VN_F32, &shape, &err)) &&
		    !(st = vn_store_write(s, x, (size_t)(T * D), &err)))
			st = vn_store_end(s, &err);
	st = st ? st : vn_store_commit(&s, &err);
	if (st)
		printf("\n    %s\n", err.text);
	CU_ASSERT_EQUAL_FATAL(st, VN_OK);
	const vn_compare_options o = { .allow = allow };
	vn_comparison            c = { .opened.request.options = &o, .opened.cand = opened("claims.h5") };
	vn_contract_claims(&c.opened, &c.result.remarks, c.opened.cand, "candidate");
	vn_recording_close(c.opened.cand);
	*notes = c.result.remarks.notes;
	*refusals = c.result.remarks.refusals;
}

static void refused_is(const char *want)
{
	vn_lines notes = { 0 }, refusals = { 0 };

	check(0, &notes, &refusals);
	CU_ASSERT_EQUAL(notes.n, 0);
	if (*want)
		one_line(&refusals, want);
	else
		CU_ASSERT_EQUAL(refusals.n, 0);
	vn_lines_free(&notes);
	vn_lines_free(&refusals);
}

static void what_the_plan_says_is_no_contradiction(void)
{
	begin_labels();
	add_tensor("layer0.attn_norm");
	add_tensor("layer0.mlp_norm");
	add_tensor("layer1.attn_norm");
	refused_is("");
	/* what is not stated does not contradict */
	begin_labels();
	vn_tensor_label *l = add_tensor("layer0.mlp_norm");
	*l->point = *l->op = 0;
	l->order = -1;
	refused_is("");
}

static void another_point_layer_or_operation_is_refused(void)
{
	begin_labels();
	snprintf(add_tensor("layer0.attn_norm")->point, 32, "mlp_norm");
	refused_is("names: layer0.attn_norm of the candidate: its point is mlp_norm, the plan has attn_norm "
	           "(--allow claims)");
	begin_labels();
	add_tensor("layer0.attn_norm")->layer = 1;
	refused_is("names: layer0.attn_norm of the candidate: its layer is 1, the plan has 0 (--allow claims)");
	begin_labels();
	snprintf(add_tensor("layer0.attn_norm")->op, 32, "linear");
	refused_is("names: layer0.attn_norm of the candidate: its op is linear, the plan has rms_norm (--allow claims)");
}

/* attn_norm stands before mlp_norm in a layer. */
static void an_order_against_the_plan_is_refused(void)
{
	begin_labels();
	add_tensor("layer0.mlp_norm")->order = 3;
	add_tensor("layer0.attn_norm")->order = 7;
	refused_is("names: layer0.attn_norm of the candidate: its order is 7, but the plan computes it before "
	           "layer0.mlp_norm (--allow claims)");
}

static void an_allowed_contradiction_is_a_note(void)
{
	vn_lines notes = { 0 }, refusals = { 0 };

	begin_labels();
	add_tensor("layer0.attn_norm")->layer = 1;
	check(VN_ALLOW_CLAIMS, &notes, &refusals);
	CU_ASSERT_EQUAL(refusals.n, 0);
	one_line(&notes, "allowed (claims): names: layer0.attn_norm of the candidate: its layer is 1, the plan has 0");
	vn_lines_free(&notes);
	vn_lines_free(&refusals);
}

static void four_are_named_and_the_rest_is_counted(void)
{
	static const char *const name[] = { "layer0.attn_norm", "layer0.mlp_norm", "layer0.output",
		                                "layer1.attn_norm", "layer1.mlp_norm", "layer1.output" };
	vn_lines                 notes = { 0 }, refusals = { 0 };

	begin_labels();
	for (int i = 0; i < 6; i++)
		add_tensor(name[i])->layer = 7;
	check(0, &notes, &refusals);
	CU_ASSERT_EQUAL_FATAL(refusals.n, 5);
	CU_ASSERT_STRING_EQUAL(refusals.line[3],
	                       "names: layer1.attn_norm of the candidate: its layer is 7, the plan has 1 (--allow claims)");
	CU_ASSERT_STRING_EQUAL(refusals.line[4],
	                       "names: 2 more tensors of the candidate contradict the plan (--allow claims)");
	vn_lines_free(&notes);
	vn_lines_free(&refusals);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(what_the_plan_says_is_no_contradiction), TEST(another_point_layer_or_operation_is_refused),
		TEST(an_order_against_the_plan_is_refused),   TEST(an_allowed_contradiction_is_a_note),
		TEST(four_are_named_and_the_rest_is_counted), CU_TEST_INFO_NULL,
	};
	vn_error err = { "" };
	if (!make_folder() || vn_model_open(LLAMA, &model, &err))
		return 1;
	const int failed = run_suite("claims", tests);
	vn_model_close(model);
	return !remove_folder() || failed;
}
