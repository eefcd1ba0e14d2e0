/* test_invariants.c: models.md 7.3 on the reference engine. */
#include "libref/exec/ref.h"
#include "tests/support/invariants.h"
#include "tests/support/suite.h"

static any open_engine(const vn_plan *p, const vn_tensor *weights, vn_policy policy)
{
	vn_ref *r = NULL;

	CU_ASSERT_EQUAL_FATAL(vn_ref_create(p, weights, &(vn_ref_options) { .policy = policy, .threads = 2 }, &r, NULL),
	                      VN_OK);
	return (any) { r, &vn_ref_ops };
}

static bool is_subject_tried(int line)
{
	(void)line;
	return true;
}

int main(void)
{
	CU_TestInfo tests[] = { INVARIANTS, ROPE_INVARIANTS, CU_TEST_INFO_NULL };

	if (!open_models())
		return 2;
	const int failed = run_suite("invariants", tests);
	close_models();
	return failed;
}
