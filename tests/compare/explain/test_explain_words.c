/* test_explain_words.c: tests compare/explain/explain_words.c. */
#include "compare/explain/explain_words.h"
#include "tests/support/explain_help.h"

#include <math.h>

static explained e;

/* An explanation of a checkpoint, with the sentence of each trial at the operation that
 * makes the checkpoint. */
static vn_findings of_point(const char *name, vn_trial *by, int n)
{
	const vn_plan *p = vn_model_plan(e.compared.c.opened.model);

	for (int i = 0; i < n; i++)
		by[i].node = p->value[vn_plan_root(p, vn_plan_find(p, name))].node;
	return (vn_findings) { .checkpoint = (int)(checkpoint_at(&e, name, 0) - e.compared.c.result.checkpoints.of),
		                   .by = by,
		                   .n = n,
		                   .n_fit = n,
		                   .n_alias = n,
		                   .unmodified = { .limit_fraction = 1e6, .residual = { .local = 1, .floor = 1e-6 } } };
}

static vn_trial answer(const char *id, const char *words, double left)
{
	vn_trial h = { .limit_fraction = left, .residual = { .local = left * 1e-6, .floor = 1e-6 } };

	snprintf(h.id, sizeof h.id, "%s", id);
	snprintf(h.words, sizeof h.words, "%s", words);
	return h;
}

static void says(const vn_findings *x, const char *want)
{
	char text[VN_EXPLAINED];
	CU_ASSERT_STRING_EQUAL(vn_explain_say_one(&e.compared.c.opened, &e.compared.c.result, x, text), want);
}

static void an_answer_has_its_id_its_words_and_its_place(void)
{
	vn_trial    h = answer("R2", "RoPE with theta 123", 0.5);
	vn_findings x = of_point("layer1.q_rope", &h, 1);

	says(&x, "R2: RoPE with theta 123");
	snprintf(h.also, sizeof h.also, " and layer1.k_rope");
	says(&x, "R2: RoPE with theta 123, here and layer1.k_rope");
	snprintf(h.heads_only, sizeof h.heads_only, "in head 2 of 6 only");
	*h.also = 0;
	says(&x, "R2: RoPE with theta 123, in head 2 of 6 only");
	*h.id = *h.heads_only = 0;
	snprintf(h.recorded_instead, sizeof h.recorded_instead, "layer0.q_proj");
	says(&x, "RoPE with theta 123 (layer0.q_proj)");
	/* made at another operation, whose value was recorded without an error */
	h = answer("R1", "pairs", 0.5);
	x = of_point("layer1.attn_context", &h, 1);
	h.node = vn_model_plan(e.compared.c.opened.model)
	             ->value[vn_plan_find(vn_model_plan(e.compared.c.opened.model), "layer1.q_proj")]
	             .node;
	says(&x, "R1: pairs, at layer1.q_proj, which is recorded as it should be");
}

static void without_an_answer_it_says_why(void)
{
	vn_findings x = of_point("layer1.q_rope", NULL, 0);

	x.n_tried = 31;
	says(&x, "none of 31 known mistakes fits");
	snprintf(x.why_not, sizeof x.why_not, "its input was not recorded");
	says(&x, "not explained: its input was not recorded");
}

static void expect_line(const vn_lines *l, int i, const char *want)
{
	CU_ASSERT_FATAL(i < l->n);
	if (strcmp(l->line[i], want) != 0)
		printf("\n    %s", l->line[i]);
	CU_ASSERT_STRING_EQUAL(l->line[i], want);
}

static void the_residual_the_runner_up_and_aliases_follow(void)
{
	vn_lines    l = { 0 };
	vn_trial    h[] = { answer("A", "one", 0.5), answer("B", "two", 0.5), answer("C", "three", 50) };
	vn_findings x = of_point("layer1.q_rope", h, 3);

	x.n_alias = 2;
	x.margin = 100;
	snprintf(x.separating_input, sizeof x.separating_input, "a longer prompt");
	vn_explain_say_more(&e.compared.c.opened, &e.compared.c.result, &x, &l);
	expect_line(&l, 0, "residual 2 floors (was 4e+06); runner-up C is 100 times worse");
	expect_line(&l, 1, "equally good on this data: B, two");
	expect_line(&l, 2, "to tell them apart: a longer prompt");
	CU_ASSERT_EQUAL(l.n, 3);
	vn_lines_free(&l);
	/* an id twice is told apart by its words; what was refuted is no runner-up, and is listed */
	snprintf(h[1].id, sizeof h[1].id, "A");
	x.n_alias = 1;
	vn_explain_say_more(&e.compared.c.opened, &e.compared.c.result, &x, &l);
	expect_line(&l, 0, "residual 2 floors (was 4e+06); runner-up \"two\" is 100 times worse");
	vn_lines_free(&l);
	h[1].refuted = true;
	snprintf(h[1].contradicted_by, sizeof h[1].contradicted_by, "step 1 is right");
	vn_explain_say_more(&e.compared.c.opened, &e.compared.c.result, &x, &l);
	expect_line(&l, 0, "residual 2 floors (was 4e+06)");
	expect_line(&l, 1, "A fits here too, but is ruled out: step 1 is right");
	vn_lines_free(&l);
}

/* In the other step the second answer was tried and does not fit, the third was not tried. */
static void an_alias_that_another_step_excludes_is_left_out(void)
{
	vn_comparison   *c = &e.compared.c;
	vn_all_findings *was = c->result.why;
	vn_lines         l = { 0 };
	vn_trial         here[] = { answer("A", "one", 0.5), answer("B", "two", 0.5), answer("C", "three", 0.5) },
			 there[] = { answer("A", "one", 0.5), answer("B", "two", 1e9) };

	for (int i = 0; i < 3; i++)
		here[i].fault[0] = i + 1;
	for (int i = 0; i < 2; i++)
		there[i].fault[0] = i + 1;
	vn_findings     x[] = { of_point("layer1.q_rope", here, 3), of_point("layer1.q_rope", there, 2) };
	vn_all_findings all = { .of = x, .n = 2 };
	x[1].n_fit = x[1].n_alias = 1;
	snprintf(x[0].separating_input, sizeof x[0].separating_input, "a longer prompt");
	c->result.why = &all;
	vn_explain_say_more(&c->opened, &c->result, &x[0], &l);
	expect_line(&l, 1, "equally good on this data: C, three");
	vn_lines_free(&l);
	x[0].n_alias = 2;
	vn_explain_say_more(&c->opened, &c->result, &x[0], &l);
	CU_ASSERT_EQUAL(l.n, 1);
	vn_lines_free(&l);
	c->result.why = was;
}

/* Several kinds of findings have no id. Neither another kind nor an answer that does not fit here
 * excludes an alias. */
static void an_alias_without_an_id_is_excluded_by_its_own_kind_only(void)
{
	vn_comparison   *c = &e.compared.c;
	vn_all_findings *was = c->result.why;
	vn_lines         l = { 0 };
	vn_trial         here[] = { answer("A", "one", 0.5), answer("", "clamped", 0.5), answer("", "zeros", 1e9) },
			 there[] = { answer("A", "one", 0.5), answer("", "zeros", 1e9) };

	here[0].fault[0] = there[0].fault[0] = 1;
	here[1].finding = VN_FINDING_CLAMPED;
	here[2].finding = there[1].finding = VN_FINDING_ZERO;
	for (int i = 0; i < 3; i++)
		here[i].applied.kind = i ? VN_BY_RESULT : here[i].applied.kind;
	there[1].applied.kind = VN_BY_RESULT;
	vn_findings     x[] = { of_point("layer1.q_rope", here, 3), of_point("layer1.q_rope", there, 2) };
	vn_all_findings all = { .of = x, .n = 2 };
	x[0].n_fit = x[0].n_alias = 2;
	x[1].n_fit = x[1].n_alias = 1;
	x[0].margin = 1e9;
	c->result.why = &all;
	vn_explain_say_more(&c->opened, &c->result, &x[0], &l);
	expect_line(&l, 1, "equally good on this data: clamped");
	vn_lines_free(&l);
	there[1].finding = VN_FINDING_CLAMPED;
	vn_explain_say_more(&c->opened, &c->result, &x[0], &l);
	CU_ASSERT_EQUAL(l.n, 1);
	vn_lines_free(&l);
	c->result.why = was;
}

static void the_nearest_is_named_if_it_leaves_less_than_half(void)
{
	vn_lines    l = { 0 };
	vn_trial    h = answer("R2", "RoPE with theta 123", 4e5);
	vn_findings x = of_point("layer1.q_rope", &h, 1);

	x.n_fit = x.n_alias = 0;
	vn_explain_say_more(&e.compared.c.opened, &e.compared.c.result, &x, &l);
	expect_line(&l, 0, "nearest: R2, RoPE with theta 123; residual 1.6e+06 floors (was 4e+06, limit 4)");
	vn_lines_free(&l);
	h = answer("R2", "RoPE with theta 123", 6e5);
	h.node = x.by->node;
	vn_explain_say_more(&e.compared.c.opened, &e.compared.c.result, &x, &l);
	CU_ASSERT_EQUAL(l.n, 0);
	vn_lines_free(&l);
}

static void what_fits_but_for_a_little_says_how_much_it_explains(void)
{
	vn_lines  lines = { 0 };
	explained faulty;

	compare_llama(&faulty, "A9@layer1.attn_context");
	stand_at(&faulty, "layer1.attn_context", 0);
	vn_trial h = { .limit_fraction = 1.2, .residual.local = 1e-5, .id = "A9", .words = "heads before tokens" };
	faulty.x.unmodified = (vn_trial) { .limit_fraction = 1e6, .residual.local = 1 };
	vn_case_keep(&faulty.x, &h);
	vn_case_conclude(&faulty.t);
	vn_explain_say_more(&faulty.compared.c.opened, &faulty.compared.c.result, &faulty.x, &lines);
	CU_ASSERT_FATAL(lines.n > 0);
	CU_ASSERT_STRING_EQUAL(
		lines.line[0],
		"nearest: A9, heads before tokens; explains 99.99 % of the error; residual 4.8 floors (was 4e+06, limit 4)");
	vn_lines_free(&lines);
	end_explained(&faulty);
}

static void origins_with_one_answer_share_a_line(void)
{
	vn_comparison   *c = &e.compared.c;
	vn_trial         h[] = { answer("R1", "one", 0.5), answer("R1", "one", 0.5), answer("R2", "two", 0.5) };
	vn_lines         l = { 0 };
	vn_all_findings *was = c->result.why;

	h[0].fault[0] = h[1].fault[0] = 1;
	h[2].fault[0] = 2;
	vn_findings     x[] = { of_point("layer0.q_rope", &h[0], 1), of_point("layer1.q_rope", &h[1], 1),
		                    of_point("layer1.k_rope", &h[2], 1) };
	vn_all_findings all = { .of = x, .n = 3 };
	c->result.why = &all;
	for (int i = 0; i < 3; i++)
		c->result.checkpoints.of[x[i].checkpoint].origin = true;
	vn_explain_say_all(&c->opened, &c->result, &l);
	expect_line(&l, 0, "layer0.q_rope and 1 more origin: R1: one");
	expect_line(&l, 1, "residual 2 floors (was 4e+06)");
	expect_line(&l, 2, "layer1.k_rope: R2: two");
	CU_ASSERT_EQUAL(l.n, 4);
	vn_lines_free(&l);
	/* set aside, since only its capture is wrong: no origin */
	c->result.checkpoints.of[x[1].checkpoint].origin = false;
	vn_explain_say_all(&c->opened, &c->result, &l);
	expect_line(&l, 0, "layer0.q_rope: R1: one");
	vn_lines_free(&l);
	for (int i = 0; i < 3; i++)
		c->result.checkpoints.of[x[i].checkpoint].origin = false;
	c->result.why = was;
}

static void columns_of_the_same_axes_in_one_order_share_a_line(void)
{
	vn_comparison   *c = &e.compared.c;
	vn_lines         l = { 0 };
	vn_all_findings *was = c->result.why;
	vn_findings      x[] = { of_point("layer0.q_rope", NULL, 0), of_point("layer1.q_rope", NULL, 0),
		                     of_point("layer1.down_proj", NULL, 0) };
	vn_all_findings  all = { .of = x, .n = 3 };

	c->result.why = &all;
	for (int i = 0; i < 3; i++) {
		c->result.checkpoints.of[x[i].checkpoint].replay.columns = VN_COLUMNS_PAIRS;
		c->result.checkpoints.of[x[i].checkpoint].origin = true;
	}
	vn_explain_say_all(&c->opened, &c->result, &l);
	CU_ASSERT_EQUAL_FATAL(l.n, 2);
	CU_ASSERT_EQUAL(strncmp(l.line[0], "layer0.q_rope and 1 more origin: its columns", 44), 0);
	CU_ASSERT_EQUAL(strncmp(l.line[1], "layer1.down_proj: its columns", 29), 0);
	for (int i = 0; i < 3; i++) {
		c->result.checkpoints.of[x[i].checkpoint].replay.columns = VN_COLUMNS_SAME;
		c->result.checkpoints.of[x[i].checkpoint].origin = false;
	}
	c->result.why = was;
	vn_lines_free(&l);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(an_answer_has_its_id_its_words_and_its_place),
		TEST(without_an_answer_it_says_why),
		TEST(the_residual_the_runner_up_and_aliases_follow),
		TEST(an_alias_that_another_step_excludes_is_left_out),
		TEST(an_alias_without_an_id_is_excluded_by_its_own_kind_only),
		TEST(the_nearest_is_named_if_it_leaves_less_than_half),
		TEST(what_fits_but_for_a_little_says_how_much_it_explains),
		TEST(origins_with_one_answer_share_a_line),
		TEST(columns_of_the_same_axes_in_one_order_share_a_line),
		CU_TEST_INFO_NULL,
	};
	return run_suite_of_correct("explain_words", tests, &e);
}
