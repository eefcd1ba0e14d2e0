/* test_explain.c: tests compare/explain/explain.c: which origins are explained, and the order of
 * answers. */
#include "compare/explain/explain.h"
#include "tests/support/explain_help.h"

#include <math.h>

static const char *first_id(const vn_findings *x)
{
	static char id[VN_ID];
	CU_ASSERT_FATAL(x->n_fit > 0);
	return vn_trial_id(&x->by[0], id);
}

/* A whole comparison that also explains. */
static void explain_llama(explained *e, const char *fault)
{
	const vn_compare_options options = {
		.model = LLAMA, .replay = VN_REPLAY_SAME, .explain = &vn_catalogue_explainer, .threads = 1
	};
	compare_llama_as(e, fault, options);
}

/* gate_act is a factor inside the operation that makes mlp_act. */
static void what_is_inside_an_operation_has_the_answer_of_that_operation(void)
{
	enum { WIDTH = 128, CALL = 4 };
	static float gate[CALL * WIDTH], up[CALL * WIDTH], act[2][CALL * WIDTH], product[2][CALL * WIDTH];
	given        of[2][4];
	explained    e;

	for (int side = 0; side < 2; side++) {
		for (int i = 0; i < CALL * WIDTH; i++) {
			gate[i] = 4 * given_number(i, 0);
			up[i] = given_number(i, 1);
			act[side][i] = side ? fmaxf(gate[i], 0) : gate[i] / (1 + expf(-gate[i])); /* relu for silu */
			product[side][i] = act[side][i] * up[i];
		}
		of[side][0] = (given) { "layer1.gate_proj", gate };
		of[side][1] = (given) { "layer1.up_proj", up };
		of[side][2] = (given) { "layer1.gate_act", act[side] };
		of[side][3] = (given) { "layer1.mlp_act", product[side] };
	}
	compare_two(&e, CALL, 0, of[0], of[1], 4);
	vn_comparison   *c = &e.compared.c;
	vn_all_findings *x;
	CU_ASSERT_EQUAL(vn_explain(&c->opened, &c->result, &x, &e.err), VN_OK);
	int found[2] = { -1, -1 };
	for (int i = 0; i < x->n; i++)
		for (int k = 0; k < 2; k++)
			if (strcmp(c->result.checkpoints.of[x->of[i].checkpoint].name, of[0][2 + k].name) == 0)
				found[k] = i;
	CU_ASSERT_FATAL(found[0] >= 0 && found[1] >= 0);
	const vn_findings *inner = &x->of[found[0]], *outer = &x->of[found[1]];
	CU_ASSERT_FATAL(inner->n_fit > 0 && outer->n_fit > 0);
	CU_ASSERT_EQUAL(inner->by[0].node, outer->by[0].node);
	CU_ASSERT_EQUAL(
		outer->by[0].node,
		vn_model_plan(c->opened.model)->value[vn_plan_find(vn_model_plan(c->opened.model), "layer1.mlp_act")].node);
	vn_findings_free(x);
	finish(&e.compared);
}

/* Positions of queries that count from 1 are R3.plus at a query's rotation, or R3b.q, which fits
 * fewer places. If keys are wrong, too, R3.plus explains more origins. */
static void of_equal_answers_the_one_that_says_more_comes_first(void)
{
	static const struct {
		const char *fault, *first;
	} of[] = { { "R3.plus@*q_rope", "R3b.q" }, { "R3.plus@*_rope", "R3.plus" } };

	for (int k = 0; k < 2; k++) {
		explained e;
		int       queries = 0;
		explain_llama(&e, of[k].fault);
		const vn_comparison *c = &e.compared.c;
		for (int i = 0; i < c->result.why->n; i++) {
			const vn_findings   *x = &c->result.why->of[i];
			const vn_checkpoint *p = &c->result.checkpoints.of[x->checkpoint];
			if (p->step || !strstr(p->name, "q_rope"))
				continue;
			queries++;
			CU_ASSERT_TRUE(x->n_alias >= 2);
			CU_ASSERT_STRING_EQUAL(first_id(x), of[k].first);
		}
		CU_ASSERT_EQUAL(queries, 2);
		finish(&e.compared);
	}
}

static void an_origin_is_explained_in_every_step_by_id_and_in_words(void)
{
	explained e;

	explain_llama(&e, "R2.1e4@layer1.q_rope");
	const vn_all_findings *why = e.compared.c.result.why;
	CU_ASSERT_EQUAL_FATAL(why->n, 3);
	for (int i = 0; i < why->n; i++) {
		const vn_trial *best = &why->of[i].by[0];
		CU_ASSERT_EQUAL(why->of[i].n_alias, 1);
		CU_ASSERT_STRING_EQUAL(best->id, "R2.1e4");
		CU_ASSERT_STRING_EQUAL(best->words, "RoPE with theta 10000");
		CU_ASSERT_EQUAL(best->speaks_against, VN_NOTHING_AGAINST);
	}
	finish(&e.compared);
}

/* Numbers without a pattern in all checkpoints: after 24 origins in vain the rest is
 * counted, not explained. */
static void after_many_origins_without_an_answer_the_rest_is_left_out(void)
{
	enum { DECODE = 7, STEPS = DECODE + 1, POINTS = 4, LEFT = STEPS * POINTS - 24 };
	static float             x[2][POINTS][(4 + DECODE) * 48];
	static const char *const name[POINTS] = { "layer0.attn_norm", "layer0.q_proj", "layer0.k_proj", "layer0.v_proj" };
	given                    of[2][POINTS];
	explained                e;
	vn_all_findings         *found;

	for (int side = 0; side < 2; side++)
		for (int k = 0; k < POINTS; k++) {
			for (int i = 0; i < (4 + DECODE) * 48; i++)
				x[side][k][i] = given_number(i, 2 * k + side);
			of[side][k] = (given) { name[k], x[side][k] };
		}
	compare_two(&e, 4, DECODE, of[0], of[1], POINTS);
	CU_ASSERT_EQUAL(e.compared.c.result.localised.n_origins, STEPS * POINTS);
	CU_ASSERT_EQUAL(vn_explain(&e.compared.c.opened, &e.compared.c.result, &found, &e.err), VN_OK);
	CU_ASSERT_EQUAL(found->n, 24);
	CU_ASSERT_EQUAL(found->left_out, LEFT);
	for (int i = 0; i < found->n; i++)
		CU_ASSERT_EQUAL(found->of[i].n_fit, 0);
	vn_findings_free(found);
	finish(&e.compared);
}

static void without_a_replay_there_is_nothing_to_explain(void)
{
	explained        e;
	vn_all_findings *x;

	compare_llama(&e, "R1@layer1.q_rope");
	vn_comparison *c = &e.compared.c;
	c->result.replayed = false;
	CU_ASSERT_EQUAL(vn_explain(&c->opened, &c->result, &x, &e.err), VN_OK);
	CU_ASSERT_EQUAL(x->n, 0);
	CU_ASSERT_PTR_NULL(x->of);
	vn_findings_free(x);
	c->result.replayed = true;
	CU_ASSERT_EQUAL(vn_explain(&c->opened, &c->result, &x, &e.err), VN_OK);
	CU_ASSERT_EQUAL(x->n, c->result.localised.n_origins);
	CU_ASSERT_STRING_EQUAL(first_id(&x->of[0]), "R1");
	vn_findings_free(x);
	finish(&e.compared);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(what_is_inside_an_operation_has_the_answer_of_that_operation),
		TEST(of_equal_answers_the_one_that_says_more_comes_first),
		TEST(an_origin_is_explained_in_every_step_by_id_and_in_words),
		TEST(after_many_origins_without_an_answer_the_rest_is_left_out),
		TEST(without_a_replay_there_is_nothing_to_explain),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("explain", tests);
	return !remove_folder() || failed;
}
