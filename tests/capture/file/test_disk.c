/* test_disk.c: written data can be read back, whether it was written directly or not. */
#include "capture/file/disk.h"
#include "tests/support/suite.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = VN_DISK_PAGE, ROOM = 64 * PAGE };

static char           path[] = "/var/tmp/test_disk.XXXXXX"; /* a disk rather than memory, on most machines */
static unsigned char *data;                                 /* (ROOM), at a page */

static int fresh(void)
{
	int fd = open(path, O_RDWR | O_TRUNC);
	CU_ASSERT_FATAL(fd >= 0);
	return fd;
}

static void expect(int fd, int64_t at, const unsigned char *what, size_t bytes)
{
	unsigned char *back = malloc(bytes);
	CU_ASSERT_FATAL(back != NULL);
	CU_ASSERT_EQUAL(pread(fd, back, bytes, at), (ssize_t)bytes);
	CU_ASSERT_EQUAL(memcmp(back, what, bytes), 0);
	free(back);
}

static void check(bool direct)
{
	/* in memory, in the file, bytes: at pages or not, whole pages or not */
	static const struct {
		size_t  from;
		int64_t at;
		size_t  bytes;
	} part[] = {
		{ 0, 0, 8 * PAGE },          { 0, 8 * PAGE, 3 * PAGE + 17 }, { PAGE, 12 * PAGE, 40 },
		{ 64, 16 * PAGE, 2 * PAGE }, { 0, 20 * PAGE + 64, PAGE },    { PAGE, 40 * PAGE, 20 * PAGE + 1 },
		{ 0, 30 * PAGE, 0 },
	};
	int     fd = fresh();
	vn_disk d;

	vn_disk_open(&d, fd, path);
	if (!direct)
		vn_disk_close(&d);
	for (size_t i = 0; i < sizeof part / sizeof *part; i++)
		CU_ASSERT_EQUAL(vn_disk_write(&d, "x", data + part[i].from, part[i].bytes, part[i].at, NULL), VN_OK);
	for (size_t i = 0; i < sizeof part / sizeof *part; i++)
		if (part[i].bytes)
			expect(fd, part[i].at, data + part[i].from, part[i].bytes);
	vn_disk_close(&d);
	close(fd);
}

static void every_part_is_where_it_was_put(void)
{
	check(true);
	check(false);
}

static void a_file_that_cannot_be_written_says_so(void)
{
	vn_error err = { "" };
	vn_disk  d;
	int      fd = open("/dev/full", O_WRONLY);

	CU_ASSERT_FATAL(fd >= 0);
	vn_disk_open(&d, fd, "big.h5.partial");
	CU_ASSERT_EQUAL(vn_disk_write(&d, "logits", data, 2 * PAGE, 0, &err), VN_ERR_IO);
	CU_ASSERT_STRING_EQUAL(err.text, "big.h5.partial: cannot write logits: No space left on device");
	vn_disk_close(&d);
	close(fd);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(every_part_is_where_it_was_put),
		TEST(a_file_that_cannot_be_written_says_so),
		CU_TEST_INFO_NULL,
	};
	int fd = mkstemp(path);

	if (fd < 0 || !(data = aligned_alloc(PAGE, ROOM)))
		return 1;
	close(fd);
	for (size_t i = 0; i < ROOM; i++)
		data[i] = (unsigned char)(i * 2654435761u >> 13);
	const int failed = run_suite("disk", tests);
	unlink(path);
	free(data);
	return failed;
}
