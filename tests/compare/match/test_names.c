/* test_names.c: tests compare/match/names.c, values of a plan by their names. */
#include "compare/match/names.h"
#include "libref/model/model.h"
#include "tests/support/suite.h"

#include <string.h>

static void every_value_is_found_by_its_name(void)
{
	vn_model *m = NULL;
	vn_names  n;
	int       named = 0;

	CU_ASSERT_EQUAL_FATAL(vn_model_open(VERNIER_SOURCE "/fixtures/llama-trained", &m, NULL), VN_OK);
	const vn_plan *p = vn_model_plan(m);
	vn_names_init(&n, p);
	for (int i = 0; i < p->n_values; i++) {
		if (!*p->value[i].name)
			continue;
		named++;
		const int found = vn_names_find(&n, p->value[i].name);
		CU_ASSERT_FATAL(found >= 0);
		CU_ASSERT_STRING_EQUAL(p->value[found].name, p->value[i].name);
		CU_ASSERT_EQUAL(vn_names_root(&n, p->value[i].name), vn_plan_root(p, found));
	}
	CU_ASSERT(named > 30);
	vn_names_finish(&n);
	vn_model_close(m);
}

static void other_names_are_not_found(void)
{
	vn_model *m = NULL;
	vn_names  n;

	CU_ASSERT_EQUAL_FATAL(vn_model_open(VERNIER_SOURCE "/fixtures/llama-trained", &m, NULL), VN_OK);
	vn_names_init(&n, vn_model_plan(m));
	CU_ASSERT_EQUAL(vn_names_find(&n, "layer1.q_rop"), -1);
	CU_ASSERT_EQUAL(vn_names_find(&n, "layer1.q_ropes"), -1);
	CU_ASSERT_EQUAL(vn_names_root(&n, "zzz"), -1);
	vn_names_finish(&n);
	vn_names_init(&n, NULL);
	CU_ASSERT_EQUAL(vn_names_find(&n, "layer1.q_rope"), -1); /* no plan has no names */
	vn_names_finish(&n);
	vn_model_close(m);
}

int main(void)
{
	static CU_TestInfo tests[] = { TEST(every_value_is_found_by_its_name), TEST(other_names_are_not_found),
		                           CU_TEST_INFO_NULL };
	return run_suite("names", tests);
}
