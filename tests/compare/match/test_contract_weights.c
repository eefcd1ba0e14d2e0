/* test_contract_weights.c: tests compare/match/contract_weights.c. */
#include "compare/match/contract.h"
#include "tests/support/llama_help.h"

enum { CHANGED = 4 };

/* A recording with the llama's table of weights, or without; the first `changed` of them (negative:
 * the last) have other numbers, and with a prefix all names but the last `kept` are others. */
static vn_recording *record_renamed(const char *name, bool table, int changed, const char *prefix, int kept)
{
	char(*names)[VN_NAME_MAX] = NULL;
	const int32_t ids[] = { 5, 6 }, positions[] = { 0, 1 };
	vn_model     *m = NULL;
	vn_store     *s = NULL;
	vn_recording *r = NULL;
	vn_facts      facts = { 0 };
	vn_error      err = { "" };
	vn_status     st;

	vn_facts_set(&facts, "engine", "test");
	vn_facts_set(&facts, "precision", "f32");
	CU_ASSERT_EQUAL_FATAL(vn_model_open(LLAMA, &m, &err), VN_OK);
	const vn_plan *p = vn_model_plan(m);
	vn_weight_row *rows = calloc((size_t)p->n_weights, sizeof *rows);
	vn_model_table(m, 1, rows);
	names = calloc((size_t)p->n_weights, sizeof *names);
	for (int i = 0; i < p->n_weights; i++) {
		snprintf(names[i], sizeof names[i], "%s%s", i < p->n_weights - kept ? prefix : "", rows[i].name);
		rows[i].name = names[i];
	}
	for (int i = 0; i < p->n_weights; i++) {
		if (changed < 0 ? i < p->n_weights + changed : i >= changed)
			continue;
		rows[i].digest.hex[0] = rows[i].digest.hex[0] == '0' ? '1' : '0';
		rows[i].stats.max += 1;
	}
	if (!(st = vn_store_create(at(name), true, p, &s, &err)) &&
	    !(st = vn_store_run(s, &facts, ids, positions, 2, &err)) &&
	    !(st = vn_store_model(s, m, table ? rows : NULL, &err)) &&
	    !(st = vn_store_step(s, &(vn_step) { 0, 0, 2, 0, 2 }, &err)))
		st = vn_store_commit(&s, &err);
	if (!st)
		st = vn_recording_open(at(name), &r, &err);
	if (st)
		printf("\n    %s\n", err.text);
	CU_ASSERT_EQUAL_FATAL(st, VN_OK);
	free(rows);
	free(names);
	vn_model_close(m);
	return r;
}

static vn_recording *record_table(const char *name, bool table, int changed)
{
	return record_renamed(name, table, changed, "", 0);
}

typedef struct contract {
	vn_weights *weights;
	vn_lines    notes, refusals;
} contract;

static void compare(contract *k, vn_recording *a, vn_recording *b, unsigned allow, const char *model)
{
	const vn_compare_options o = { .allow = allow, .threads = 1, .model = model };
	vn_comparison            c = { .opened = { .request.options = &o, .ref = a, .cand = b } };

	vn_contract_weights(&c.opened, &c.result.remarks, b, "candidate", &c.result.weights);
	*k = (contract) { c.result.weights, c.result.remarks.notes, c.result.remarks.refusals };
}

static void end(contract *k)
{
	vn_weights_free(k->weights);
	vn_lines_free(&k->notes);
	vn_lines_free(&k->refusals);
}

static void equal_tables_are_no_difference(void)
{
	vn_recording *a = record_table("a.h5", true, 0), *b = record_table("b.h5", true, 0);
	contract      k;

	compare(&k, a, b, 0, NULL);
	CU_ASSERT_TRUE(k.notes.n == 0 && k.refusals.n == 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(k.weights);
	CU_ASSERT_EQUAL(k.weights->n_found, 0);
	CU_ASSERT_EQUAL(k.weights->same, k.weights->n[0]);
	end(&k);
	vn_recording_close(a);
	vn_recording_close(b);
}

static void differing_weights_are_refused_unless_they_are_allowed(void)
{
	vn_recording *a = record_table("a.h5", true, 0), *b = record_table("b.h5", true, CHANGED);
	contract      k;
	char          want[80];

	compare(&k, a, b, 0, NULL);
	CU_ASSERT_EQUAL(k.weights->n_found, CHANGED);
	snprintf(want, sizeof want, "weights: %d of %d differ", CHANGED, k.weights->n[0]);
	CU_ASSERT_FATAL(k.refusals.n > 1); /* and a line for each group */
	CU_ASSERT_PTR_EQUAL(strstr(k.refusals.line[0], want), k.refusals.line[0]);
	CU_ASSERT_PTR_NOT_NULL(strstr(k.refusals.line[0], "--allow weights"));
	CU_ASSERT_EQUAL(k.notes.n, 0);
	end(&k);
	compare(&k, a, b, VN_ALLOW_WEIGHTS, NULL);
	CU_ASSERT_EQUAL(k.refusals.n, 0);
	CU_ASSERT_EQUAL_FATAL(k.notes.n, 1);
	snprintf(want, sizeof want, "allowed (weights): %d of %d differ in the candidate", CHANGED, k.weights->n[0]);
	CU_ASSERT_STRING_EQUAL(k.notes.line[0], want);
	end(&k);
	vn_recording_close(a);
	vn_recording_close(b);
}

static void a_side_without_a_table_is_named(void)
{
	vn_recording *a = record_table("a.h5", true, 0), *b = record_table("b.h5", false, 0);
	contract      k;

	for (int i = 0; i < 2; i++) {
		compare(&k, i ? b : a, i ? a : b, 0, NULL);
		CU_ASSERT_PTR_NULL(k.weights);
		CU_ASSERT_EQUAL(k.refusals.n, 0);
		CU_ASSERT_EQUAL_FATAL(k.notes.n, 1);
		CU_ASSERT_STRING_EQUAL(k.notes.line[0], i ? "weights: the reference records none; not checked"
		                                          : "weights: the candidate records none; not checked");
		end(&k);
	}
	vn_recording_close(a);
	vn_recording_close(b);
}

static void weights_of_other_names_are_noted_if_some_have_the_numbers(void)
{
	vn_recording *a = record_table("a.h5", true, 0), *b = record_renamed("b.h5", true, CHANGED, "blocks.", 0);
	contract      k;
	char          want[160];

	compare(&k, a, b, 0, NULL);
	CU_ASSERT_PTR_NULL(k.weights);
	CU_ASSERT_EQUAL(k.refusals.n, 0);
	CU_ASSERT_EQUAL_FATAL(k.notes.n, 1);
	snprintf(want, sizeof want, "weights: no name is on both sides; ");
	CU_ASSERT_PTR_EQUAL(strstr(k.notes.line[0], want), k.notes.line[0]);
	end(&k);
	vn_recording_close(b);
	b = record_renamed("b.h5", true, CHANGED, "blocks.", 2); /* as LitGPT's lm_head */
	compare(&k, a, b, 0, NULL);
	CU_ASSERT_EQUAL(k.refusals.n, 0);
	CU_ASSERT_EQUAL_FATAL(k.notes.n, 1);
	snprintf(want, sizeof want, "weights: 2 names are on both sides; ");
	CU_ASSERT_PTR_EQUAL(strstr(k.notes.line[0], want), k.notes.line[0]);
	end(&k);
	vn_recording_close(b);
	b = record_renamed("b.h5", true, -1, "blocks.", 2); /* and one of the two differs */
	compare(&k, a, b, 0, NULL);
	CU_ASSERT_TRUE(k.refusals.n > 0);
	end(&k);
	vn_recording_close(b);
	b = record_renamed("b.h5", true, 1000, "blocks.", 0);
	compare(&k, a, b, 0, NULL);
	CU_ASSERT_TRUE(k.refusals.n > 0);
	end(&k);
	vn_recording_close(a);
	vn_recording_close(b);
}

static void a_model_that_cannot_be_opened_changes_nothing(void)
{
	vn_recording *a = record_table("a.h5", true, 0), *b = record_table("b.h5", true, CHANGED);
	contract      with, without;

	compare(&without, a, b, 0, NULL);
	compare(&with, a, b, 0, "/nowhere");
	CU_ASSERT_EQUAL_FATAL(with.refusals.n, without.refusals.n);
	for (int i = 0; i < with.refusals.n; i++)
		CU_ASSERT_STRING_EQUAL(with.refusals.line[i], without.refusals.line[i]);
	end(&with);
	end(&without);
	vn_recording_close(a);
	vn_recording_close(b);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(equal_tables_are_no_difference),
		TEST(differing_weights_are_refused_unless_they_are_allowed),
		TEST(a_side_without_a_table_is_named),
		TEST(weights_of_other_names_are_noted_if_some_have_the_numbers),
		TEST(a_model_that_cannot_be_opened_changes_nothing),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("contract_weights", tests);
	return !remove_folder() || failed;
}
