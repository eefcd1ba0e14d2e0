/* test_map.c: files mapped for reading, and paths that are no files. The clock of the file system
 * can be made to tick every 4 ms, as before Linux 6.13 and on network file systems. */
#include "libref/base/map.h"
#include "tests/support/suite.h"
#include "tests/support/toy_model.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[256];

static bool coarse, of_another, longer; /* what fstat says of time, owner and size */

static int rounded(int said, struct stat *s)
{
	enum { TICK = 4000000 };

	if (of_another && said == 0)
		s->st_uid++;
	if (longer && said == 0)
		s->st_size++;

	if (coarse && said == 0) {
		s->st_ctim.tv_nsec -= s->st_ctim.tv_nsec % TICK;
		s->st_mtim.tv_nsec -= s->st_mtim.tv_nsec % TICK;
	}
	return said;
}

int __real_fstat(int fd, struct stat *s);
int __wrap_fstat(int fd, struct stat *s);
int __wrap_fstat(int fd, struct stat *s)
{
	return rounded(__real_fstat(fd, s), s);
}

int __real_stat(const char *path, struct stat *s);
int __wrap_stat(const char *path, struct stat *s);
int __wrap_stat(const char *path, struct stat *s)
{
	return rounded(__real_stat(path, s), s);
}

static void a_file_is_mapped_whole(void)
{
	vn_map   m;
	vn_error e = { "untouched" };

	toy_write(dir, "f", "12345", 5);
	CU_ASSERT_EQUAL_FATAL(vn_map_open(toy_path(dir, "f"), &m, &e), VN_OK);
	CU_ASSERT_EQUAL(m.bytes, 5);
	CU_ASSERT_EQUAL(memcmp(m.data, "12345", 5), 0);
	CU_ASSERT_STRING_EQUAL(e.text, "untouched");
	vn_map_close(&m);
	CU_ASSERT_PTR_NULL(m.data);
	CU_ASSERT_EQUAL(m.bytes, 0);
	vn_map_close(&m);
}

static void an_empty_file_has_no_bytes_and_is_no_failure(void)
{
	vn_map m = { (const unsigned char *)"x", 9 };
	char  *text;
	size_t n = 9;

	toy_write(dir, "empty", "", 0);
	CU_ASSERT_EQUAL(vn_map_open(toy_path(dir, "empty"), &m, NULL), VN_OK);
	CU_ASSERT_PTR_NULL(m.data);
	CU_ASSERT_EQUAL(m.bytes, 0);
	vn_map_close(&m);
	CU_ASSERT_EQUAL_FATAL(vn_read_text(toy_path(dir, "empty"), 10, &text, &n, NULL), VN_OK);
	CU_ASSERT_EQUAL(n, 0);
	CU_ASSERT_STRING_EQUAL(text, "");
	free(text);
}

static void a_file_that_is_not_there_is_not_found_by_name(void)
{
	vn_map   m;
	vn_error e;

	CU_ASSERT_EQUAL(vn_map_open(toy_path(dir, "absent"), &m, &e), VN_ERR_NOTFOUND);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "absent: No such file"));
	CU_ASSERT_PTR_NULL(m.data);
}

static void refused(const char *path)
{
	vn_map   m;
	vn_error e;
	char    *text;
	size_t   n;

	CU_ASSERT_EQUAL(vn_map_open(path, &m, &e), VN_ERR_IO);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, path));
	CU_ASSERT_PTR_NULL(m.data);
	CU_ASSERT_EQUAL(vn_read_text(path, 10, &text, &n, &e), VN_ERR_IO);
	CU_ASSERT_PTR_NULL(text);
}

static void a_directory_is_refused(void)
{
	refused(dir);
}

static void a_device_is_refused(void)
{
	refused("/dev/null");
	refused("/dev/zero");
}

/* Nobody writes to it: opening must not wait for somebody who does. */
static void a_pipe_is_refused_at_once(void)
{
	char path[300];

	snprintf(path, sizeof path, "%s/pipe", dir);
	CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
	alarm(20);
	refused(path);
	alarm(0);
}

static void a_file_one_may_not_read_is_an_io_error(void)
{
	vn_map m;

	toy_write(dir, "secret", "x", 1);
	chmod(toy_path(dir, "secret"), 0);
	if (access(toy_path(dir, "secret"), R_OK) == 0) { /* the super-user may read everything */
		CU_PASS("every file is readable here");
		return;
	}
	CU_ASSERT_EQUAL(vn_map_open(toy_path(dir, "secret"), &m, NULL), VN_ERR_IO);
}

/* Reads the file in a process of its own. Returns its exit status, -1 if a signal ended it, and its
 * message. */
static int read_while_it_shrinks(bool explained, char *said, size_t room)
{
	int    ends[2], status;
	vn_map m;

	toy_write(dir, "cut", "12345", 5);
	CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
	const pid_t child = fork();
	if (child == 0) {
		if (vn_map_open(toy_path(dir, "cut"), &m, NULL) || truncate(toy_path(dir, "cut"), 0) != 0)
			_exit(3);
		dup2(ends[1], 2);
		signal(SIGBUS, SIG_DFL);
		if (explained)
			vn_mapped_explain();
		_exit(*(const volatile unsigned char *)m.data);
	}
	close(ends[1]);
	const ssize_t n = read(ends[0], said, room - 1);
	said[n > 0 ? n : 0] = '\0';
	close(ends[0]);
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_file_that_shrinks_while_it_is_read_is_named(void)
{
	char said[1000], want[400];

	CU_ASSERT_EQUAL(read_while_it_shrinks(false, said, sizeof said), -1);
	CU_ASSERT_EQUAL(read_while_it_shrinks(true, said, sizeof said), 2);
	snprintf(want, sizeof want, "vernier: %s: reading failed: ", toy_path(dir, "cut"));
	CU_ASSERT_EQUAL(strncmp(said, want, strlen(want)), 0);
	CU_ASSERT_PTR_EQUAL(strchr(said, '\n'), said + strlen(said) - 1);
}

/* A process that saves a text again and again: as another file that takes its place, as editors do,
 * or in place. */
static pid_t save_again(bool in_place)
{
	enum { MANY = 1 << 20 };
	const pid_t parent = getpid(), child = fork();
	char        path[300], *text;

	CU_ASSERT_FATAL(child >= 0);
	if (child > 0)
		return child;
	text = malloc(MANY);
	snprintf(path, sizeof path, "%s", toy_path(dir, "saved"));
	for (int n = 0; getppid() == parent; n++) {
		toy_write(dir, in_place ? "saved" : "new", memset(text, 'a' + n % 26, MANY), MANY);
		if (!in_place && rename(toy_path(dir, "new"), path) != 0)
			break;
	}
	_exit(0);
}

static bool is_one_letter(const char *text)
{
	return strspn(text, (char[]) { *text, '\0' }) == strlen(text);
}

static void a_text_that_another_replaces_is_read_whole(void)
{
	vn_error e = { "" };
	char    *text;
	size_t   n = 0;

	toy_write(dir, "saved", "aa", 2);
	const pid_t child = save_again(false);
	for (int i = 0; i < 300; i++) {
		CU_ASSERT_EQUAL_FATAL(vn_read_text(toy_path(dir, "saved"), 1 << 21, &text, &n, &e), VN_OK);
		CU_ASSERT(strlen(text) == n && is_one_letter(text));
		free(text);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	CU_ASSERT_EQUAL(vn_maps_unchanged(&e), VN_OK);
}

static void a_text_that_is_written_to_is_refused(void)
{
	vn_error  e = { "" };
	char     *text;
	size_t    n = 0;
	vn_status st = VN_OK;

	toy_write(dir, "saved", "aa", 2);
	const pid_t child = save_again(true);
	for (int i = 0; i < 100000 && !st; i++) {
		st = vn_read_text(toy_path(dir, "saved"), 1 << 21, &text, &n, &e);
		free(text);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	CU_ASSERT_EQUAL(st, VN_ERR_IO);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "saved: another program changed the file while it was read"));
	CU_ASSERT_EQUAL(vn_maps_unchanged(&e), VN_OK);
}

/* The last test: it is remembered. */
static void a_file_that_changes_while_it_is_mapped_is_named(void)
{
	vn_error e = { "" };
	vn_map   m;

	toy_write(dir, "changes", "before", 6);
	CU_ASSERT_EQUAL_FATAL(vn_map_open(toy_path(dir, "changes"), &m, &e), VN_OK);
	CU_ASSERT_EQUAL(vn_maps_unchanged(&e), VN_OK);
	const int fd = open(toy_path(dir, "changes"), O_WRONLY);
	CU_ASSERT_EQUAL(pwrite(fd, "after ", 6, 0), 6);
	close(fd);
	vn_map_close(&m);
	CU_ASSERT_EQUAL(vn_maps_unchanged(&e), VN_ERR_IO);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "changes: another program changed the file"));
}

static void a_text_ends_with_a_nul_and_may_hold_some(void)
{
	char  *text;
	size_t n;

	toy_write(dir, "t", "ab\0cd", 5);
	CU_ASSERT_EQUAL_FATAL(vn_read_text(toy_path(dir, "t"), 5, &text, &n, NULL), VN_OK);
	CU_ASSERT_EQUAL(n, 5);
	CU_ASSERT_EQUAL(memcmp(text, "ab\0cd\0", 6), 0);
	free(text);
}

static void a_text_is_ours_by_the_file_that_was_opened(void)
{
	char  *text, link[300];
	size_t n;
	bool   mine = false;

	toy_write(dir, "own", "mine", 4);
	CU_ASSERT_EQUAL_FATAL(vn_read_own_text(toy_path(dir, "own"), 10, &mine, &text, &n, NULL), VN_OK);
	CU_ASSERT_TRUE(mine);
	CU_ASSERT_STRING_EQUAL(text, "mine");
	free(text);
	snprintf(link, sizeof link, "%s/link", dir);
	CU_ASSERT_EQUAL_FATAL(symlink("own", link), 0);
	CU_ASSERT_EQUAL_FATAL(vn_read_own_text(link, 10, &mine, &text, &n, NULL), VN_OK);
	CU_ASSERT_TRUE(mine);
	free(text);
	CU_ASSERT_EQUAL_FATAL((unlink(link), symlink("nowhere", link)), 0);
	CU_ASSERT_EQUAL(vn_read_own_text(link, 10, &mine, &text, &n, NULL), VN_ERR_IO);
	CU_ASSERT_EQUAL(vn_read_own_text(toy_path(dir, "gone"), 10, &mine, &text, &n, NULL), VN_ERR_NOTFOUND);
	CU_ASSERT_FALSE(mine);
	of_another = true; /* lstat has said another thing, before the file took this name */
	CU_ASSERT_EQUAL(vn_read_own_text(toy_path(dir, "own"), 10, &mine, &text, &n, NULL), VN_OK);
	of_another = false;
	CU_ASSERT_FALSE(mine);
	CU_ASSERT_PTR_NULL(text);
}

static void a_text_that_ends_early_is_no_text(void)
{
	char    *text = NULL;
	size_t   n;
	vn_error e;

	toy_write(dir, "text", "{}", 2);
	longer = true;
	CU_ASSERT_EQUAL(vn_read_text(toy_path(dir, "text"), 10, &text, &n, &e), VN_ERR_IO);
	longer = false;
	CU_ASSERT_PTR_NULL(text);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "after 2 of its 3 bytes"));
}

static void a_text_over_the_limit_is_refused_with_both_sizes(void)
{
	vn_error e;
	char    *text;
	size_t   n;

	toy_write(dir, "t", "abcdef", 6);
	CU_ASSERT_EQUAL(vn_read_text(toy_path(dir, "t"), 5, &text, &n, &e), VN_ERR_FORMAT);
	CU_ASSERT_PTR_NULL(text);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "6 bytes"));
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "at most 5 "));
}

/* In a process of its own, because a change is never forgotten. */
static bool sees_a_second_write(void)
{
	const pid_t pid = fork();
	int         how = 0;

	if (pid == 0) {
		vn_map m;
		coarse = true;
		toy_write(dir, "f", "first", 5);
		const bool opened = !vn_map_open(toy_path(dir, "f"), &m, NULL);
		const int  fd = open(toy_path(dir, "f"), O_WRONLY);
		const bool written = pwrite(fd, "again", 5, 0) == 5;
		_exit(opened && written ? vn_maps_unchanged(NULL) == VN_ERR_IO : 2);
	}
	CU_ASSERT_EQUAL(waitpid(pid, &how, 0), pid);
	CU_ASSERT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) < 2);
	return WEXITSTATUS(how) == 1;
}

static void a_file_that_is_written_twice_in_a_moment_has_changed(void)
{
	for (int i = 0; i < 50; i++)
		CU_ASSERT_TRUE(sees_a_second_write());
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_file_is_mapped_whole),
		TEST(an_empty_file_has_no_bytes_and_is_no_failure),
		TEST(a_file_that_is_not_there_is_not_found_by_name),
		TEST(a_directory_is_refused),
		TEST(a_device_is_refused),
		TEST(a_pipe_is_refused_at_once),
		TEST(a_file_one_may_not_read_is_an_io_error),
		TEST(a_file_that_shrinks_while_it_is_read_is_named),
		TEST(a_text_ends_with_a_nul_and_may_hold_some),
		TEST(a_text_is_ours_by_the_file_that_was_opened),
		TEST(a_text_that_ends_early_is_no_text),
		TEST(a_text_over_the_limit_is_refused_with_both_sizes),
		TEST(a_text_that_another_replaces_is_read_whole),
		TEST(a_text_that_is_written_to_is_refused),
		TEST(a_file_that_is_written_twice_in_a_moment_has_changed),
		TEST(a_file_that_changes_while_it_is_mapped_is_named),
		CU_TEST_INFO_NULL,
	};

	toy_directory(dir);
	const int failures = run_suite("map", tests);
	toy_remove(dir);
	return failures;
}
