/* test_team.c: work shared by several threads. */
#include "compare/metrics/team.h"
#include "tests/support/suite.h"

#include "libref/base/sanitizer.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 1000, MOST = 64 };

typedef struct shared {
	_Atomic int next;
	int         done[N], by[MOST];
} shared;

static void some(void *ctx, int thread)
{
	shared *s = ctx;
	s->by[thread]++;
	for (int i; (i = s->next++) < N;)
		s->done[i]++;
}

/* Does all work once. Returns how many threads took part. */
static int run(int threads)
{
	shared s;
	int    n = 0;
	memset(&s, 0, sizeof s);
	vn_team_run(threads, some, &s);
	for (int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(s.done[i], 1);
	CU_ASSERT_EQUAL(s.by[0], 1);
	for (int i = 0; i < MOST; i++)
		n += s.by[i];
	return n;
}

static void everything_is_done_once_by_any_number_of_threads(void)
{
	for (int threads = 1; threads <= MOST; threads += threads < 4 ? 1 : 20)
		CU_ASSERT_EQUAL(run(threads), threads);
	CU_ASSERT_EQUAL(run(0), 1);
	CU_ASSERT(vn_team_size() >= 1);
}

static void what_cannot_be_started_is_done_by_the_others(void)
{
#ifndef VN_SANITIZED /* a sanitizer needs terabytes of addresses */
	int         status;
	const pid_t child = fork();
	if (child == 0) { /* no stack of 8 MB fits any more; those of a library's threads that ended may be used again */
		setrlimit(RLIMIT_AS, &(struct rlimit) { 4 << 20, 4 << 20 });
		_exit(run(MOST) < MOST ? 0 : 1);
	}
	waitpid(child, &status, 0);
	CU_ASSERT_TRUE(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || is_emulated()));
#endif
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(what_cannot_be_started_is_done_by_the_others), /* before there are stacks to use again */
		TEST(everything_is_done_once_by_any_number_of_threads),
		CU_TEST_INFO_NULL,
	};
	return run_suite("team", tests);
}
