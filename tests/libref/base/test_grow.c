/* test_grow.c: tests libref/base/grow.c. */
#include "libref/base/grow.h"
#include "tests/support/suite.h"

#include <stdint.h>
#include <stdlib.h>

/* The address sanitizer returns NULL for too many bytes, as malloc does. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void numbers_stay_while_a_list_grows(void)
{
	int *list = NULL, moves = 0;

	for (size_t n = 0; n < 1000; n++) {
		int *more = vn_grown(list, n, sizeof *more);
		CU_ASSERT_PTR_NOT_NULL_FATAL(more);
		if (n && (n & (n - 1)))
			moves += more != list; /* allocated at powers of two alone */
		list = more;
		list[n] = (int)n;
	}
	CU_ASSERT_EQUAL(moves, 0);
	for (size_t n = 0; n < 1000; n++)
		CU_ASSERT_EQUAL(list[n], (int)n);
	free(list);
}

static void an_emptied_list_keeps_its_room(void)
{
	char *list = vn_grown(NULL, 0, 1);

	CU_ASSERT_PTR_NOT_NULL_FATAL(list);
	CU_ASSERT_PTR_EQUAL(vn_grown(list, 0, 1), list);
	CU_ASSERT_PTR_EQUAL(vn_grown(list, 63, 1), list);
	free(list);
}

static void more_bytes_than_there_are_addresses_are_refused(void)
{
	char *list = vn_grown(NULL, 0, 1);

	CU_ASSERT_PTR_NULL(vn_grown(NULL, 0, SIZE_MAX / 32));
	CU_ASSERT_PTR_NULL(vn_grown(list, (size_t)1 << 40, (size_t)1 << 30));
	list[0] = 1; /* still ours */
	free(list);
}

static void a_list_that_cannot_grow_in_place_stays(void)
{
	int *numbers = NULL;
	char(*large)[SIZE_MAX / 256] = NULL;

	for (int n = 0; n < 300; n++) {
		CU_ASSERT_FATAL(VN_GROW(numbers, n));
		numbers[n] = n;
	}
	for (int n = 0; n < 300; n++)
		CU_ASSERT_EQUAL(numbers[n], n);
	CU_ASSERT_FALSE(VN_GROW(large, 0));
	CU_ASSERT_PTR_NULL(large);
	free(numbers);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(numbers_stay_while_a_list_grows),
		TEST(an_emptied_list_keeps_its_room),
		TEST(more_bytes_than_there_are_addresses_are_refused),
		TEST(a_list_that_cannot_grow_in_place_stays),
		CU_TEST_INFO_NULL,
	};
	return run_suite("grow", tests);
}
