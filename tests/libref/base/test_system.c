/* test_system.c: libref/base/system.h by system_linux.c; as test_system_plain by system_plain.c. */
#include "libref/base/system.h"
#include "tests/support/suite.h"

#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool closes_on_exec(int fd)
{
	return fcntl(fd, F_GETFD) & FD_CLOEXEC;
}

static void descriptors_are_not_inherited(void)
{
	int ends[2];

	CU_ASSERT_EQUAL_FATAL(vn_pipe(ends), 0);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT(closes_on_exec(ends[i]));
		close(ends[i]);
	}
	CU_ASSERT_EQUAL_FATAL(vn_socket_pair(ends), 0);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT(closes_on_exec(ends[i]));
		close(ends[i]);
	}
	const int fd = vn_memory_file("x");
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT(closes_on_exec(fd));
	close(fd);
}

static void a_peer_that_is_gone_is_an_error_and_no_signal(void)
{
	int ends[2];

	CU_ASSERT_EQUAL_FATAL(vn_socket_pair(ends), 0);
	close(ends[1]);
	CU_ASSERT_EQUAL(send(ends[0], "x", 1, VN_SEND_FLAGS), -1);
	CU_ASSERT_EQUAL(errno, EPIPE);
	close(ends[0]);
}

static void a_range_of_descriptors_is_closed_and_no_other(void)
{
	int fd[5];

	for (int i = 0; i < 5; i++)
		fd[i] = dup(0);
	vn_close_range((unsigned)fd[1], (unsigned)fd[3]);
	for (int i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(fcntl(fd[i], F_GETFD) >= 0, i == 0 || i == 4);
	vn_close_range(9, 3);
	close(fd[0]);
	close(fd[4]);
}

static void a_nameless_file_has_no_name_and_its_room(void)
{
	char        folder[] = "/tmp/test_system-XXXXXX";
	struct stat s;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	const int fd = vn_nameless_file(folder);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT(closes_on_exec(fd));
	CU_ASSERT(vn_file_reserve(fd, 300000));
	CU_ASSERT_EQUAL(fstat(fd, &s), 0);
	CU_ASSERT(s.st_size == 300000 && s.st_blocks * 512 >= 300000 && s.st_nlink == 0);
	CU_ASSERT_EQUAL(rmdir(folder), 0); /* it is empty */
	close(fd);
}

static void a_folder_is_cleared(void)
{
	char folder[] = "/tmp/test_system-XXXXXX", path[64];

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	for (int i = 0; i < 200; i++) { /* more than one piece of its list */
		snprintf(path, sizeof path, "%s/a_name_of_some_length_%d", folder, i);
		close(open(path, O_WRONLY | O_CREAT, 0600));
	}
	const int fd = open(folder, O_RDONLY | O_DIRECTORY);
	vn_folder_clear(fd);
	CU_ASSERT(fcntl(fd, F_GETFD) >= 0);
	close(fd);
	CU_ASSERT_EQUAL(rmdir(folder), 0);
}

static void a_file_is_told_from_others(void)
{
	char       a[] = "/tmp/test_system-XXXXXX", b[] = "/tmp/test_system-XXXXXX";
	const int  first = vn_make_file(a), second = vn_make_file(b);
	vn_file_id x, y, z;

	CU_ASSERT(first >= 0 && second >= 0 && closes_on_exec(first));
	CU_ASSERT(vn_file_identify(first, NULL, &x) && vn_file_identify(-1, a, &y) && vn_file_identify(second, NULL, &z));
	CU_ASSERT_EQUAL(memcmp(&x, &y, sizeof x), 0);
	CU_ASSERT_NOT_EQUAL(memcmp(&x, &z, sizeof x), 0);
	unlink(b);
	CU_ASSERT_FALSE(vn_file_identify(-1, b, &z));
	unlink(a);
	close(first);
	close(second);
}

static void a_name_that_is_taken_is_not_replaced(void)
{
	char a[] = "/tmp/test_system-XXXXXX", b[] = "/tmp/test_system-XXXXXX";

	close(vn_make_file(a));
	close(vn_make_file(b));
	CU_ASSERT_EQUAL(vn_rename_new(a, b), -1);
	CU_ASSERT(errno == EEXIST || errno == ENOSYS || errno == EINVAL);
	CU_ASSERT(access(a, F_OK) == 0 && access(b, F_OK) == 0);
	unlink(a);
	unlink(b);
}

static void what_is_written_directly_is_in_the_file(void)
{
	char      path[] = "./test_system-XXXXXX"; /* memory file systems refuse */
	const int fd = vn_make_file(path), direct = vn_open_direct(fd);
	char     *page = aligned_alloc(4096, 4096), back[4] = "";

	memset(page, 'v', 4096);
	if (direct >= 0 && pwrite(direct, page, 4096, 0) == 4096) {
		CU_ASSERT_EQUAL(pread(fd, back, 4, 4092), 4);
		CU_ASSERT_EQUAL(memcmp(back, "vvvv", 4), 0);
	}
	if (direct >= 0)
		close(direct);
	vn_start_writing(fd, 0, 4096);
	unlink(path);
	close(fd);
	free(page);
}

static void the_program_finds_itself(void)
{
	char          path[4096] = "";
	const ssize_t n = vn_program_path(path, sizeof path - 1);

	CU_ASSERT_FATAL(n > 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(path, "/test_system"));
	CU_ASSERT_EQUAL(*path, '/');
	CU_ASSERT(vn_processors() >= 1);
}

static int by_digit(const void *a, const void *b, void *context)
{
	++*(int *)context;
	return *(const char *)a - *(const char *)b;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int freed;

static void free_key(void *key)
{
	freed++;
	free(key);
}

static void lists_are_sorted_and_trees_are_freed(void)
{
	char  list[] = "3142", word[8];
	int   calls = 0;
	void *root = NULL;

	vn_sort(list, 4, 1, by_digit, &calls);
	CU_ASSERT_STRING_EQUAL(list, "1234");
	CU_ASSERT(calls > 2);
	vn_tree_free(NULL, free_key);
	CU_ASSERT_EQUAL(freed, 0);
	for (int i = 0; i < 100; i++) {
		snprintf(word, sizeof word, "%d", i * 37 % 100);
		tsearch(strdup(word), &root, by_text);
	}
	vn_tree_free(root, free_key);
	CU_ASSERT_EQUAL(freed, 100);
}

static char   got[64];
static size_t n_got;
static bool   closed;

static ssize_t take(void *cookie, const char *text, size_t n)
{
	CU_ASSERT_PTR_EQUAL(cookie, got);
	n = n < sizeof got - n_got ? n : sizeof got - n_got;
	memcpy(got + n_got, text, n);
	n_got += n;
	return (ssize_t)n;
}

static int end(void *cookie)
{
	(void)cookie;
	closed = true;
	return 0;
}

static void a_stream_is_two_functions(void)
{
	FILE *f = vn_stream_open(got, take, end);

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs("one ", f);
	fflush(f);
	CU_ASSERT(n_got == 4 && !closed);
	fputs("two", f);
	CU_ASSERT_EQUAL(fclose(f), 0);
	CU_ASSERT(closed && n_got == 7 && memcmp(got, "one two", 7) == 0);
	f = vn_stream_open(got, take, NULL);
	for (int i = 0; i < 100; i++)
		fputs("more", f);
	CU_ASSERT_NOT_EQUAL(fclose(f), 0); /* it took 57 bytes more */
}

int main(int argc, char **argv)
{
	static CU_TestInfo tests[] = {
		TEST(descriptors_are_not_inherited),
		TEST(a_peer_that_is_gone_is_an_error_and_no_signal),
		TEST(a_range_of_descriptors_is_closed_and_no_other),
		TEST(a_nameless_file_has_no_name_and_its_room),
		TEST(a_folder_is_cleared),
		TEST(a_file_is_told_from_others),
		TEST(a_name_that_is_taken_is_not_replaced),
		TEST(what_is_written_directly_is_in_the_file),
		TEST(the_program_finds_itself),
		TEST(lists_are_sorted_and_trees_are_freed),
		TEST(a_stream_is_two_functions),
		CU_TEST_INFO_NULL,
	};
	(void)argc;
	vn_program_note(argv[0]);
	return run_suite("system", tests);
}
