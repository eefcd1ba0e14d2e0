/* test_crew.c: tests libref/base/crew.c, in child processes that have two workers. */
#include "libref/base/crew.h"
#include "libref/base/trouble.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PIECES = 2, PATIENCE_MS = 3000 };

/* The memory that all processes share. */
static struct shared {
	atomic_int pid[PIECES]; /* of the worker that does the piece */
	atomic_int done;        /* pieces given to `done` */
	char       out[64], trouble[64], error[256];
} * all;

/* What happens in piece 1, and in `done`. */
typedef enum deed {
	NOTHING,
	DIES_BUSY,
	CRASHES_BUSY,
	TERMINATED_BUSY,
	OTHER_DIES_IDLE,
	STUCK,
	REFUSED,
	FAILS,
	NOT_TAKEN,  /* `done` fails */
	UNREADABLE, /* what was printed cannot be read */
	UNWRITABLE  /* what was printed before cannot be written */
} deed;

static deed  plan;
static pid_t first_process; /* which has the workers */
static bool  full;          /* nobody reads what `done` writes */
static bool  again;         /* what a worker leaves is done by the child */

ssize_t __real_pread(int fd, void *to, size_t bytes, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t bytes, off_t at)
{
	if (plan != UNREADABLE)
		return __real_pread(fd, to, bytes, at);
	errno = ENOMEM;
	return -1;
}

static void nap(void)
{
	nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
}

static void wait_until(const atomic_int *what, int least)
{
	for (int ms = 0; *what < least && ms < PATIENCE_MS; ms++)
		nap();
}

static bool is_gone(pid_t pid)
{
	for (int ms = 0; ms < PATIENCE_MS; ms++, nap())
		if (kill(pid, 0) != 0 && errno == ESRCH)
			return true;
	return false;
}

static void do_piece(void *context, int i, vn_cluster_answer *a)
{
	(void)context;
	all->pid[i] = getpid();
	a->text[VN_CLUSTER_WORDS] = strdup(i ? "one" : "zero");
	printf("%d;", i);
	if (i == 0)
		return;
	wait_until(&all->done, 1); /* the other worker is idle */
	if (getpid() == first_process)
		return;
	a->status = plan == FAILS;
	if (plan == DIES_BUSY)
		raise(SIGKILL);
	if (plan == CRASHES_BUSY)
		_exit(3);
	if (plan == TERMINATED_BUSY)
		raise(SIGTERM);
	if (plan == OTHER_DIES_IDLE) {
		kill(all->pid[0], SIGKILL);
		is_gone(all->pid[0]);
	}
	if (plan == STUCK)
		pause();
	if (plan == REFUSED)
		vn_trouble_note("no room");
}

static const char *name_piece(void *context, int i)
{
	(void)context;
	return i ? "second" : "first";
}

static vn_status take(void *context, int i, vn_cluster_answer *a, vn_error *err)
{
	static const char much[1 << 20];

	(void)context;
	(void)i;
	(void)err;
	strncat(all->out, a->text[VN_CLUSTER_WORDS], 8);
	if (a->text[VN_CLUSTER_OUT]) /* NULL: this process has done the piece */
		strncat(all->out, a->text[VN_CLUSTER_OUT], 8);
	if (a->text[VN_CLUSTER_TROUBLE])
		strncat(all->trouble, a->text[VN_CLUSTER_TROUBLE], 32);
	all->done++;
	while (full && write(STDOUT_FILENO, much, sizeof much) > 0)
		;
	return plan == NOT_TAKEN ? VN_ERR_IO : VN_OK;
}

static pid_t start(deed what)
{
	static char          buffer[BUFSIZ];
	const vn_cluster_job job = { .n = PIECES, .piece = do_piece, .done = take, .name = name_piece, .again = again };
	int                  ends[2];

	if (!all)
		all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(all, 0, sizeof *all);
	plan = what;
	if (pipe(ends) != 0)
		return -1;
	const pid_t child = fork();
	if (child == 0) {
		vn_error err = { "" };
		first_process = getpid();
		signal(SIGINT, SIG_DFL); /* nohup and shells may ignore it */
		signal(SIGHUP, SIG_DFL);
		dup2(what == UNWRITABLE ? open("/dev/full", O_WRONLY) : ends[1], STDOUT_FILENO);
		if (what == UNWRITABLE) {
			setvbuf(stdout, buffer, _IOFBF, sizeof buffer); /* CUnit sets none */
			printf("held back");
		}
		const vn_status st = vn_crew_share(&job, 2, &err);
		snprintf(all->error, sizeof all->error, "%.*s", (int)sizeof all->error - 1, err.text);
		_exit((int)st);
	}
	close(ends[1]);
	if (what < UNREADABLE) /* else the child fails before it calls `done` */
		wait_until(&all->done, 1);
	if (what == STUCK)
		wait_until(&all->pid[1], 1);
	if (!full) /* else the pipe stays open, and full */
		close(ends[0]);
	return child;
}

/* How the child ends: the number of its signal, or the negated status of vn_crew_share. */
static int end_of(pid_t child)
{
	int   status = 0;
	pid_t ended = 0;

	for (int ms = 0; (ended = waitpid(child, &status, WNOHANG)) == 0; ms++, nap())
		if (ms == PATIENCE_MS)
			kill(child, SIGKILL);
	return ended != child ? -1000 : WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

static void answers_come_in_order_with_what_was_printed(void)
{
	CU_ASSERT_EQUAL(end_of(start(NOTHING)), VN_OK);
	CU_ASSERT_STRING_EQUAL(all->out, "zero0;one1;");
	CU_ASSERT_NOT_EQUAL(all->pid[0], all->pid[1]);
}

static void what_is_refused_in_a_worker_is_noted(void)
{
	CU_ASSERT_EQUAL(end_of(start(REFUSED)), VN_OK);
	CU_ASSERT_STRING_EQUAL(all->trouble, "no room");
}

static void a_busy_worker_that_ends_is_named(void)
{
	CU_ASSERT_EQUAL(end_of(start(DIES_BUSY)), -VN_ERR_NOMEM);
	CU_ASSERT_STRING_EQUAL(all->error, "second is not finished: its process was killed by signal 9 (Killed)");
	CU_ASSERT_EQUAL(end_of(start(CRASHES_BUSY)), -VN_ERR_NOMEM);
	CU_ASSERT_STRING_EQUAL(all->error, "second is not finished: its process ended with status 3");
	CU_ASSERT_EQUAL(end_of(start(TERMINATED_BUSY)), -VN_ERR_NOMEM);
	CU_ASSERT_STRING_EQUAL(all->error, "second is not finished: its process was killed by signal 15 (Terminated)");
}

static void an_idle_worker_may_end(void)
{
	CU_ASSERT_EQUAL(end_of(start(OTHER_DIES_IDLE)), VN_OK);
	CU_ASSERT_STRING_EQUAL(all->out, "zero0;one1;");
}

static void output_that_cannot_be_read_is_an_error(void)
{
	CU_ASSERT_EQUAL(end_of(start(UNREADABLE)), -VN_ERR_NOMEM);
	CU_ASSERT_PTR_NOT_NULL(strstr(all->error, ": its answer cannot be read: Cannot allocate memory"));
}

static void without_workers_this_process_does_all(void)
{
	const pid_t child = start(UNWRITABLE); /* each worker would write what was printed before */

	CU_ASSERT_EQUAL(end_of(child), VN_OK);
	CU_ASSERT_STRING_EQUAL(all->out, "zeroone");
	CU_ASSERT(all->pid[0] == child && all->pid[1] == child);
}

static void what_a_worker_leaves_is_done_again(void)
{
	static const deed list[] = { DIES_BUSY, CRASHES_BUSY, REFUSED, FAILS };

	again = true;
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		const pid_t child = start(list[i]);
		CU_ASSERT_EQUAL(end_of(child), VN_OK);
		CU_ASSERT_STRING_EQUAL(all->out, "zero0;one");
		CU_ASSERT(all->pid[0] != child && all->pid[1] == child);
		CU_ASSERT_EQUAL(all->trouble[0], 0);
	}
	CU_ASSERT_EQUAL(end_of(start(NOT_TAKEN)), -VN_ERR_IO); /* that is no fault of a worker */
	CU_ASSERT_STRING_EQUAL(all->out, "zero0;");
	again = false;
}

static void a_signal_ends_all(void)
{
	static const int list[] = { SIGINT, SIGTERM, SIGHUP };

	for (int turn = 0; turn < 6; turn++) {
		full = turn >= 3;
		const pid_t child = start(STUCK);
		kill(child, list[turn % 3]);
		CU_ASSERT_EQUAL(end_of(child), list[turn % 3]);
		CU_ASSERT(all->pid[0] && is_gone(all->pid[0]));
		CU_ASSERT(all->pid[1] && is_gone(all->pid[1]));
	}
	full = false;
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(answers_come_in_order_with_what_was_printed),
		TEST(what_is_refused_in_a_worker_is_noted),
		TEST(a_busy_worker_that_ends_is_named),
		TEST(an_idle_worker_may_end),
		TEST(output_that_cannot_be_read_is_an_error),
		TEST(without_workers_this_process_does_all),
		TEST(what_a_worker_leaves_is_done_again),
		TEST(a_signal_ends_all),
		CU_TEST_INFO_NULL,
	};
	return run_suite("crew", tests);
}
