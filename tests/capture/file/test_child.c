/* test_child.c: the message about a file whose reader (child.h) ends early. */
#include "capture/file/child.h"
#include "capture/file/sandbox.h"
#include "tests/support/suite.h"

#include "libref/base/sanitizer.h"
#include "libref/base/trouble.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static void raise_it(void *ctx, int pipe)
{
	(void)pipe;
	raise(*(const int *)ctx);
}

static void exit_with(void *ctx, int pipe)
{
	(void)pipe;
	_exit(*(const int *)ctx);
}

/* The status, and the line. */
static vn_status line_after(void (*work)(void *ctx, int pipe), int number, const char *what, vn_error *err)
{
	vn_child       child;
	vn_child_frame f = { 0 };

	*err = (vn_error) { "" };
	CU_ASSERT_EQUAL_FATAL(
		vn_child_start(&child,
	                   &(vn_child_task) { .path = "some.h5", .what = what, .file = -1, .work = work, .ctx = &number },
	                   err),
		VN_OK);
	const vn_status st = vn_child_receive(&child, &f, err);
	free(f.data);
	vn_child_end(&child);
	CU_ASSERT_PTR_NOT_NULL(strstr(err->text, "some.h5: "));
	CU_ASSERT_PTR_NULL(strchr(err->text, '\n'));
	return st;
}

static void a_reader_that_is_killed_says_nothing_of_the_file(void)
{
	static const int number[] = { SIGKILL, SIGXCPU, SIGTERM, SIGINT, SIGHUP };
	vn_error         err;

	for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
		CU_ASSERT_EQUAL(line_after(raise_it, number[i], NULL, &err), VN_ERR_NOMEM);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "the file may be good"));
		CU_ASSERT_PTR_NULL(strstr(err.text, "damaged"));
		CU_ASSERT_EQUAL(strstr(err.text, "memory") != NULL, number[i] == SIGKILL);
	}
}

static void pause_it(void *ctx, int pipe)
{
	(void)ctx;
	(void)pipe;
	pause();
}

/* poll takes no more descriptors than the limit. */
static void waiting_that_fails_says_nothing_of_the_file(void)
{
	struct rlimit  before, none;
	vn_child       child;
	vn_child_frame f = { 0 };
	vn_error       err = { "" };

	CU_ASSERT_EQUAL_FATAL(
		vn_child_start(&child, &(vn_child_task) { .path = "some.h5", .file = -1, .work = pause_it }, &err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &none), 0);
	CU_ASSERT_EQUAL(vn_child_receive(&child, &f, &err), VN_ERR_NOMEM);
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &before), 0);
	CU_ASSERT_PTR_NULL(strstr(err.text, "damaged"));
	free(f.data);
	vn_child_end(&child);
}

static void a_reader_that_crashes_says_that_the_file_is_damaged(void)
{
	static const int number[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL };
	vn_error         err;

	for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
		CU_ASSERT_EQUAL(line_after(raise_it, number[i], NULL, &err), VN_ERR_FORMAT);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "damaged HDF5 structure (HDF5 crashes on it"));
		CU_ASSERT_EQUAL(line_after(raise_it, number[i], "zip", &err), VN_ERR_FORMAT);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "damaged zip structure (zip crashes on it"));
	}
	CU_ASSERT_EQUAL(line_after(raise_it, SIGPROF, NULL, &err), VN_ERR_FORMAT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "reading it does not end"));
	CU_ASSERT_EQUAL(line_after(exit_with, 1, NULL, &err), VN_ERR_FORMAT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "damaged"));
}

/* Acts as code that took the child over and turned its timer off. */
static void compute_without_end(void *ctx, int pipe)
{
	volatile int going = *(const int *)ctx + 1;

	(void)pipe;
	vn_child_patience(0);
	while (going)
		;
}

static void stop_itself(void *ctx, int pipe)
{
	(void)ctx;
	(void)pipe;
	raise(SIGSTOP);
}

static void a_reader_that_switches_its_timer_off_is_ended_all_the_same(void)
{
	vn_error err;
	CU_ASSERT_EQUAL(line_after(compute_without_end, 0, NULL, &err), VN_ERR_FORMAT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "reading it does not end"));
	CU_ASSERT_EQUAL(line_after(stop_itself, 0, NULL, &err), VN_ERR_FORMAT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "reading it does not end"));
}

static void jump_astray(void *ctx, int pipe)
{
	static volatile uintptr_t nowhere = 8; /* as far as a compiler knows, a place */

	(void)ctx;
	(void)pipe;
	*(volatile char *)nowhere = 1;
}

/* raise() would return from the handler (h5.c) to what is no crash. */
static void a_wild_pointer_says_that_the_file_is_damaged(void)
{
	vn_error err;
	CU_ASSERT_EQUAL(line_after(jump_astray, 0, NULL, &err), VN_ERR_FORMAT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "signal 11"));
}

static void a_reader_without_memory_says_nothing_of_the_file(void)
{
	vn_error err;
	CU_ASSERT_EQUAL(line_after(exit_with, VN_TROUBLE_STATUS, NULL, &err), VN_ERR_NOMEM);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "memory"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "the file may be good"));
}

/* The pipe ends early although the child ended without an error. */
static void a_reader_that_ends_well_without_an_answer_says_nothing_of_the_file(void)
{
	vn_error err;
	CU_ASSERT_EQUAL(line_after(exit_with, 0, NULL, &err), VN_ERR_NOMEM);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "without an answer; the file may be good"));
}

static void end_its_pipe(void *ctx, int pipe)
{
	(void)ctx;
	close(pipe);
	raise(SIGSTOP);
}

/* seccomp forbids closing the pipe; this test is without it. */
static void a_reader_that_ends_its_pipe_and_stays_is_ended(void)
{
	const vn_child_task task = { .path = "some.h5", .file = -1, .work = end_its_pipe, .without = VN_SANDBOX_SECCOMP };
	const time_t        begin = time(NULL);
	vn_child            child;
	vn_error            err = { "" };
	vn_child_frame      f = { 0 };

	CU_ASSERT_EQUAL_FATAL(vn_child_start(&child, &task, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_child_receive(&child, &f, &err), VN_ERR_FORMAT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "did not end itself"));
	CU_ASSERT(time(NULL) - begin < 60);
	free(f.data);
	vn_child_end(&child);
}

#ifndef VN_SANITIZED /* whose run time ends a process without memory */
/* Acts like HDF5 when malloc returns NULL: it continues and crashes. */
static void fall_without_memory(void *ctx, int pipe)
{
	void *volatile got;

	for (size_t n = (size_t)1 << 30; n > 0; n /= 2)
		do
			got = malloc(n);
		while (got);
	jump_astray(ctx, pipe);
}

static void a_crash_without_memory_says_nothing_of_the_file(void)
{
	vn_error err;
	CU_ASSERT_EQUAL(line_after(fall_without_memory, 0, NULL, &err), VN_ERR_NOMEM);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "the file may be good"));
}
#else
static void a_crash_without_memory_says_nothing_of_the_file(void)
{
}
#endif

int main(void)
{
	static CU_TestInfo tests[] = { TEST(a_reader_that_is_killed_says_nothing_of_the_file),
		                           TEST(waiting_that_fails_says_nothing_of_the_file),
		                           TEST(a_reader_that_crashes_says_that_the_file_is_damaged),
		                           TEST(a_reader_that_switches_its_timer_off_is_ended_all_the_same),
		                           TEST(a_wild_pointer_says_that_the_file_is_damaged),
		                           TEST(a_reader_without_memory_says_nothing_of_the_file),
		                           TEST(a_reader_that_ends_well_without_an_answer_says_nothing_of_the_file),
		                           TEST(a_reader_that_ends_its_pipe_and_stays_is_ended),
		                           TEST(a_crash_without_memory_says_nothing_of_the_file),
		                           CU_TEST_INFO_NULL };
	return run_suite("child", tests);
}
