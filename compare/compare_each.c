/* compare_each.c: several comparisons, some at a time, each in a process of its own.
 *
 * Much of a comparison uses one processor. So several of them at once take less time than one after
 * the other, and what they read of a common reference comes from the disk about once. A process that
 * ends without a result costs time only: its comparison is made here.
 */
#include "compare/compare_line.h"

#include "compare/many/many_send.h"
#include "compare/metrics/team.h"

#include "libref/base/progress.h"
#include "libref/base/trouble.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AT_ONCE = 4 }; /* the bound of memory: each holds what one comparison does */

/* One comparison that is being made. */
typedef struct running {
	pid_t pid; /* -1: there is no process */
	FILE *found;
} running;

static vn_status judge(const vn_compare_line *k, vn_many *m, vn_error *err)
{
	vn_comparison c = { .request.options = &k->how.o };
	vn_error      why = { "" };
	char          chosen[128] = "", again[VN_SHELL_LINE];

	vn_compare_again(k, again);
	c.request.again = *again && !k->absent ? again : NULL; /* no other options bring back a file that is absent */
	vn_status judged = vn_compare_check_itself(k, &c, &why);
	if (!judged)
		judged = vn_compare_judge(k, &c, chosen, sizeof chosen, &why);
	const vn_status st = vn_many_add(m, k->cand, &c, chosen, judged, &why, err);
	vn_comparison_close(&c);
	return st;
}

/* The exit status of a process: 0 if what it found is complete. */
static int judge_there(const vn_compare_line *k, const vn_many *m, FILE *found)
{
	const unsigned mark = vn_trouble_mark();
	vn_many        one;
	vn_error       err;

	if (vn_many_begin(&one, m->ref, m->keep, &err))
		return 1;
	one.n_pages = m->n_pages; /* at least so many come before it */
	return judge(k, &one, &err) || vn_trouble_since(mark, k->cand, &err) || !vn_many_send(&one, found);
}

static void start(running *r, const vn_compare_line *k, const vn_many *m, int threads)
{
	const pid_t parent = getpid();

	r->pid = -1;
	if (!(r->found = tmpfile()))
		return;
	fflush(NULL);
	r->pid = fork();
	if (r->pid != 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	vn_progress_off();
	vn_compare_line mine = *k;
	mine.how.o.threads = threads;
	_exit(judge_there(&mine, m, r->found));
}

/* Did the process end with a result? */
static bool ended_well(running *r)
{
	int status = -1;

	while (r->pid > 0 && waitpid(r->pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return r->pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void end(running *r, bool kill_it)
{
	if (kill_it && r->pid > 0) {
		kill(r->pid, SIGKILL);
		ended_well(r);
	}
	if (r->found)
		fclose(r->found);
	*r = (running) { .pid = -1 };
}

vn_status vn_compare_each(const vn_compare_line *line, int n, vn_many *m, vn_error *err)
{
	const int   all = line->how.o.threads ? line->how.o.threads : vn_team_size();
	const int   most = all < AT_ONCE ? all : AT_ONCE, at_once = n < most ? n : most;
	running     r[VN_MANY_MOST] = { 0 };
	/* threads were started in this process, which fork does not copy: from now on, all is done here */
	static bool threads;
	bool        here = threads || at_once < 2;
	int         started = 0;
	vn_status   st = VN_OK;
	vn_progress bar = { 0 };

	vn_progress_start(&bar, "comparison", n);

	for (int i = 0; i < n && !st; i++) {
		for (; !here && started < n && started < i + at_once; started++)
			start(&r[started], &line[started], m, all / at_once);
		if (i < started && ended_well(&r[i])) {
			r[i].pid = -1;
			st = vn_many_receive(m, line[i].cand, r[i].found, err);
		} else {
			here = threads = true;
			r[i].pid = -1;
			st = judge(&line[i], m, err);
		}
		end(&r[i], false);
		vn_progress_at(&bar, i + 1);
	}
	vn_progress_stop(&bar);
	for (int i = 0; i < started; i++)
		end(&r[i], true);
	return st;
}
