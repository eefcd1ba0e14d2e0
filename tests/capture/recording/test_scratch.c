/* test_scratch.c: memory for a large tensor, plain or in a file. */
#include "capture/recording/scratch.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

static void what_is_written_is_there(size_t bytes)
{
	vn_scratch     s;
	unsigned char *x = malloc(bytes);

	for (size_t i = 0; i < bytes; i++)
		x[i] = (unsigned char)(i * 31 + i / 4096);
	CU_ASSERT_FATAL(vn_scratch_make(&s, bytes));
	const unsigned char *at = s.data;
	CU_ASSERT_EQUAL(at[0] | at[bytes - 1], 0);
	vn_scratch_write(&s, 0, x, 5000); /* pieces that end in the midst of a page */
	vn_scratch_write(&s, 5000, x + 5000, bytes - 5001);
	CU_ASSERT_EQUAL(memcmp(at, x, bytes - 1), 0);
	CU_ASSERT_EQUAL(at[bytes - 1], 0);
	vn_scratch_forget(&s);
	CU_ASSERT_EQUAL(memcmp(at, x, bytes - 1), 0);
	CU_ASSERT_EQUAL(s.file != 0, bytes >= VN_SCRATCH_FILE);
	vn_scratch_end(&s);
	CU_ASSERT_PTR_NULL(s.data);
	free(x);
}

static void a_small_one_is_memory(void)
{
	what_is_written_is_there(10000);
}

static void a_large_one_is_a_file(void)
{
	what_is_written_is_there(VN_SCRATCH_FILE + 12345);
}

/* A small file may claim to hold so much. */
static void it_does_not_take_all_of_the_disk(void)
{
	struct statvfs disk;
	vn_scratch     s;

	CU_ASSERT_EQUAL_FATAL(setenv("TMPDIR", "/var/tmp", 1), 0);
	CU_ASSERT_EQUAL_FATAL(statvfs("/var/tmp", &disk), 0);
	const size_t most = (size_t)disk.f_bavail * (size_t)disk.f_frsize;
	if (vn_scratch_make(&s, most / 10 * 9))
		CU_ASSERT_EQUAL(s.file, 0);
	vn_scratch_end(&s);
	CU_ASSERT_FALSE(vn_scratch_make(&s, (size_t)1 << 46));
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_small_one_is_memory),
		TEST(a_large_one_is_a_file),
		TEST(it_does_not_take_all_of_the_disk),
		CU_TEST_INFO_NULL,
	};
	return run_suite("scratch", tests);
}
