/* test_run_plan.c: tests capture/recording/run_plan.c. */
#include "capture/recording/run_plan.h"
#include "tests/support/suite.h"

#include <string.h>

#define NODE(path, step, out, in) \
	"{\"op\": \"a\", \"path\": \"" path "\", \"step\": " step ", \"out\": [" out "], \"in\": [" in "]}"
#define EMBED NODE("embed", "0", "\"embed\"", "{\"input\": \"in.ids\"}")
#define CACHE NODE("", "0", "\"cat.0\"", "{\"from\": \"embed\"}, {\"param\": \"w\"}")

static vn_run_plan *read_plan(char **line, int n)
{
	vn_run_plan *plan;
	vn_error     err;

	CU_ASSERT_EQUAL_FATAL(vn_run_plan_read(line, n, &plan, &err), VN_OK);
	return plan;
}

static void nodes_read_what_is_made_before_them(void)
{
	char        *line[] = { EMBED, CACHE };
	vn_run_plan *p = read_plan(line, 2);
	const int    cat = vn_run_plan_maker(p, 0, "cat.0");

	CU_ASSERT_EQUAL(cat, 1);
	CU_ASSERT_EQUAL_FATAL(p->node[cat].n_in, 1); /* a parameter has no maker */
	CU_ASSERT_STRING_EQUAL(p->value[p->in[p->node[cat].first_in]].name, "embed");
	CU_ASSERT_EQUAL(p->node[0].n_in, 0);
	CU_ASSERT_EQUAL(vn_run_plan_value(p, 1, "embed"), -1);
	CU_ASSERT_EQUAL(vn_run_plan_maker(p, 0, "nothing"), -1);
	vn_run_plan_free(p);
}

static void a_line_repeats_a_step(void)
{
	char        *line[] = { EMBED, CACHE, "{\"step\": 1, \"same_as\": 0}", "{\"step\": 2, \"same_as\": 1}" };
	vn_run_plan *p = read_plan(line, 4);

	CU_ASSERT_EQUAL(p->n, 6);
	const int cat = vn_run_plan_maker(p, 2, "cat.0");
	CU_ASSERT_EQUAL_FATAL(cat, 5);
	CU_ASSERT_EQUAL(p->node[cat].step, 2);
	CU_ASSERT_EQUAL(p->value[p->in[p->node[cat].first_in]].node, 4); /* that of its own step */
	vn_run_plan_free(p);
}

static void a_result_of_a_step_before_is_found(void)
{
	char        *line[] = { EMBED, NODE("", "3", "\"a\"", "{\"from\": \"embed\", \"back\": 3}") };
	vn_run_plan *p = read_plan(line, 2);

	CU_ASSERT_EQUAL(p->value[p->in[p->node[1].first_in]].step, 0);
	vn_run_plan_free(p);
}

static void what_contradicts_itself_is_refused(void)
{
	static char *const bad[][2] = {
		{ "{", NULL },
		{ "[]", NULL },
		{ "{\"op\": 3, \"path\": \"\", \"step\": 0, \"out\": []}", NULL },
		{ "{\"op\": \"a\", \"path\": \"\", \"step\": -1, \"out\": []}", NULL },
		{ "{\"op\": \"a\", \"path\": \"\", \"step\": 0, \"out\": \"a\"}", NULL },
		{ "{\"op\": \"a\", \"path\": \"\", \"step\": 0, \"out\": [7]}", NULL },
		{ EMBED, EMBED },
		{ EMBED, NODE("", "0", "\"a\"", "{\"from\": \"b\"}") },
		{ EMBED, NODE("", "0", "\"a\"", "{\"from\": \"embed\", \"back\": 1}") },
		{ EMBED, "{\"step\": 1, \"same_as\": 1}" },
		{ EMBED, "{\"step\": 0, \"same_as\": 0}" },
		{ "{\"step\": 1, \"same_as\": 0}", NULL },
		{ "{\"op\": \"a\", \"path\": \"\", \"step\": 1, \"out\": [\"a\"]}", EMBED },
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		vn_run_plan *p;
		vn_error     err = { "" };
		CU_ASSERT_EQUAL(vn_run_plan_read(bad[i], bad[i][1] ? 2 : 1, &p, &err), VN_ERR_FORMAT);
		CU_ASSERT_PTR_NULL(p);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/plan/nodes: node "));
	}
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(nodes_read_what_is_made_before_them),
		TEST(a_line_repeats_a_step),
		TEST(a_result_of_a_step_before_is_found),
		TEST(what_contradicts_itself_is_refused),
		CU_TEST_INFO_NULL,
	};
	return run_suite("run_plan", tests);
}
