/* test_progress.c: the progress line that a terminal shows during long work. */
#include "libref/base/progress.h"
#include "tests/support/suite.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int terminal, own;

static void begin(void)
{
	terminal = posix_openpt(O_RDWR | O_NOCTTY);
	CU_ASSERT_FATAL(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
	const int inside = open(ptsname(terminal), O_RDWR | O_NOCTTY);
	CU_ASSERT_FATAL(inside >= 0);
	own = dup(STDERR_FILENO);
	dup2(inside, STDERR_FILENO);
	close(inside);
}

static void end(void)
{
	dup2(own, STDERR_FILENO);
	close(own);
	close(terminal);
}

/* The line after so much was done, a while after the one before. */
static const char *line_at(vn_progress *p, int64_t done)
{
	static char   text[4096];
	struct pollfd ready = { .fd = terminal, .events = POLLIN };
	ssize_t       n = 0, k;

	usleep(120000); /* a line is shown at most ten times a second */
	vn_progress_at(p, done);
	while (n < (ssize_t)sizeof text - 1 && poll(&ready, 1, 50) > 0 &&
	       (k = read(terminal, text + n, sizeof text - 1 - (size_t)n)) > 0)
		n += k;
	text[n] = 0;
	return strrchr(text, '\r') ? strrchr(text, '\r') : text;
}

static void equal_steps_have_a_rate_and_the_time_left(void)
{
	vn_progress p;
	begin();
	vn_progress_start(&p, "tensor", 1000);
	const char *line = line_at(&p, 4);
	CU_ASSERT_PTR_NOT_NULL(strstr(line, "tensor 4 of 1000, "));
	CU_ASSERT_PTR_NOT_NULL(strstr(line, "/s, "));
	CU_ASSERT_PTR_NOT_NULL(strstr(line, " s left"));
	vn_progress_stop(&p);
	end();
}

static void bytes_are_shown_in_the_unit_of_their_total(void)
{
	static const struct {
		int64_t     total, done;
		const char *line, *rate;
	} of[] = { { 14500000000, 3249000000, "loading 3.2 of 14.5 GB, ", " GB/s, " },
		       { 12340000, 560000, "loading 0.6 of 12.3 MB, ", " MB/s, " } };
	for (int i = 0; i < 2; i++) {
		vn_progress p;
		begin();
		vn_progress_begin(&p, &(vn_progress) { .what = "loading", .total = of[i].total, .bytes = true });
		const char *line = line_at(&p, of[i].done);
		CU_ASSERT_PTR_NOT_NULL(strstr(line, of[i].line));
		CU_ASSERT_PTR_NOT_NULL(strstr(line, of[i].rate));
		CU_ASSERT_PTR_NOT_NULL(strstr(line, " s left"));
		vn_progress_stop(&p);
		end();
	}
}

/* The first nodes of a plan are a thousandth of the work and compile its shaders: an estimate from
 * them was hours. */
static void no_time_left_is_foretold_from_next_to_nothing(void)
{
	static const double share[] = { 0, 1e-5, 1e-3, 0.5, 1 };
	vn_progress         p;

	begin();
	vn_progress_begin(&p, &(vn_progress) { .what = "node", .total = 4, .share = share });
	for (int done = 1; done <= 2; done++) {
		const char *line = line_at(&p, done);
		CU_ASSERT_PTR_NOT_NULL(strstr(line, " of 4, 0 s"));
		CU_ASSERT_PTR_NULL(strstr(line, "left"));
	}
	CU_ASSERT_PTR_NOT_NULL(strstr(line_at(&p, 3), "node 3 of 4, 1 s left"));
	vn_progress_stop(&p);
	end();
}

static void work_within_other_work_is_not_shown(void)
{
	vn_progress outer, inner;

	begin();
	vn_progress_start(&outer, "step", 64);
	vn_progress_start(&inner, "node", 44);
	CU_ASSERT_TRUE(outer.on);
	CU_ASSERT_FALSE(inner.on);
	vn_progress_at(&inner, 7);
	vn_progress_stop(&inner);
	const char *line = line_at(&outer, 3);
	CU_ASSERT_PTR_NOT_NULL(strstr(line, "step 3 of 64, "));
	CU_ASSERT_PTR_NULL(strstr(line, "node"));
	vn_progress_stop(&outer);
	vn_progress_start(&inner, "node", 44);
	CU_ASSERT_TRUE(inner.on);
	vn_progress_stop(&inner);
	end();
}

int main(void)
{
	static CU_TestInfo tests[] = { TEST(equal_steps_have_a_rate_and_the_time_left),
		                           TEST(bytes_are_shown_in_the_unit_of_their_total),
		                           TEST(no_time_left_is_foretold_from_next_to_nothing),
		                           TEST(work_within_other_work_is_not_shown), CU_TEST_INFO_NULL };
	return run_suite("progress", tests);
}
