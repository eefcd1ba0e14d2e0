/* suite.h: a test program is one suite; run_suite is its main's exit status.
 *
 *	static CU_TestInfo tests[] = { TEST(a_sentence_it_proves), CU_TEST_INFO_NULL };
 *	return run_suite("noun", tests);
 */
#pragma once

#include <CUnit/Basic.h>

#include <stdbool.h>
#include <stdlib.h>

#define TEST(function) \
	{ \
#function, function \
	}

/* qemu-user knows no limit of memory, has threads of its own, and is slow: what a test demands of
 * those does not hold there (tests/package/aarch64.sh). */
static inline bool is_emulated(void)
{
	return getenv("VERNIER_EMULATED") != NULL;
}

static inline int run_suite(const char *name, CU_TestInfo *tests)
{
	CU_SuiteInfo suites[] = { { .pName = name, .pTests = tests }, CU_SUITE_INFO_NULL };

	if (CU_initialize_registry() != CUE_SUCCESS || CU_register_suites(suites) != CUE_SUCCESS)
		return 1;
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	const unsigned failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failed != 0;
}
