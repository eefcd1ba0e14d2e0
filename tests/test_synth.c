/* test_synth.c: what a synthetic model refuses to be. Writing one takes hundreds
 * of megabytes (the smallest shape is a published one): the benchmarks do that. */
#include "libref/model/synth.h"
#include "tests/toy_model.h"

#include <CUnit/Basic.h>

static char dir[256];

static void an_unknown_shape_is_refused_with_the_known_ones(void)
{
	vn_error e = { "" };

	CU_ASSERT_EQUAL(vn_synth_write("gpt9", toy_path(dir, "m"), &(vn_synth_options){ .layers = 1 }, &e), VN_ERR_USAGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "'gpt9'"));
	for (int i = 0; vn_synth_shape(i); i++)
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, vn_synth_shape(i)));
	CU_ASSERT_PTR_NULL(vn_synth_shape(-1));
	CU_ASSERT_NOT_EQUAL(access(toy_path(dir, "m"), F_OK), 0);
}

static void a_directory_that_exists_is_left_alone_without_force(void)
{
	vn_error e = { "" };

	CU_ASSERT_EQUAL(vn_synth_write("qwen2-0.5b", dir, &(vn_synth_options){ .layers = 1 }, &e), VN_ERR_USAGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "exists"));
	CU_ASSERT_EQUAL(access(dir, F_OK), 0);
}

static void layers_that_cannot_be_are_refused_and_leave_nothing(void)
{
	vn_error e = { "" };

	CU_ASSERT_EQUAL(vn_synth_write("qwen2-0.5b", toy_path(dir, "m"), &(vn_synth_options){ .layers = -1 }, &e), VN_ERR_FORMAT);
	CU_ASSERT_NOT_EQUAL(access(toy_path(dir, "m"), F_OK), 0);
	CU_ASSERT_NOT_EQUAL(access(toy_path(dir, "m.partial"), F_OK), 0);
}

static void a_place_that_is_not_there_is_an_io_error(void)
{
	vn_error e = { "" };

	CU_ASSERT_EQUAL(vn_synth_write("qwen2-0.5b", toy_path(dir, "no/where"), &(vn_synth_options){ .layers = 1 }, &e), VN_ERR_IO);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "no/where"));
}

int main(void)
{
	unsigned failures = 1;

	toy_directory(dir);
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;

	CU_pSuite s = CU_add_suite("synth", NULL, NULL);
	if (s && CU_ADD_TEST(s, an_unknown_shape_is_refused_with_the_known_ones) &&
	    CU_ADD_TEST(s, a_directory_that_exists_is_left_alone_without_force) &&
	    CU_ADD_TEST(s, layers_that_cannot_be_are_refused_and_leave_nothing) &&
	    CU_ADD_TEST(s, a_place_that_is_not_there_is_an_io_error)) {
		CU_basic_set_mode(CU_BRM_VERBOSE);
		CU_basic_run_tests();
		failures = CU_get_number_of_failures();
	}
	CU_cleanup_registry();
	toy_remove(dir);
	return failures != 0;
}
