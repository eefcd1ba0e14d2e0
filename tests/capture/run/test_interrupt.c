/* test_interrupt.c: tests capture/run/interrupt.c, in child processes. */
#include "capture/run/interrupt.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* The signal that ends a child which gets these signals one after another; 0 if it lives on and
 * remembers the first. */
static int ends_by(int first, int second, bool hangup_ignored)
{
	int         status = 0;
	const pid_t child = fork();

	if (child == 0) {
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		signal(SIGHUP, hangup_ignored ? SIG_IGN : SIG_DFL);
		vn_interrupt_catch();
		raise(first);
		if (second)
			raise(second);
		_exit(vn_interrupted() ? 0 : 1);
	}
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) ? -1 : 0;
}

static void one_signal_is_noted(void)
{
	CU_ASSERT_EQUAL(ends_by(SIGINT, 0, false), 0);
	CU_ASSERT_EQUAL(ends_by(SIGTERM, 0, false), 0);
	CU_ASSERT_EQUAL(ends_by(SIGHUP, 0, false), 0);
}

static void a_second_one_of_any_kind_ends_the_program(void)
{
	CU_ASSERT_EQUAL(ends_by(SIGINT, SIGINT, false), SIGINT);
	CU_ASSERT_EQUAL(ends_by(SIGINT, SIGTERM, false), SIGTERM);
	CU_ASSERT_EQUAL(ends_by(SIGTERM, SIGINT, false), SIGINT);
	CU_ASSERT_EQUAL(ends_by(SIGHUP, SIGTERM, false), SIGTERM);
}

static void a_hangup_that_was_ignored_stays_ignored(void)
{
	CU_ASSERT_EQUAL(ends_by(SIGINT, SIGHUP, true), 0);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(one_signal_is_noted),
		TEST(a_second_one_of_any_kind_ends_the_program),
		TEST(a_hangup_that_was_ignored_stays_ignored),
		CU_TEST_INFO_NULL,
	};
	return run_suite("interrupt", tests);
}
