/* compare_each.c: several comparisons, some at a time.
 *
 * They are opened and measured together in this process, which reads a shared reference once. The
 * chapters after measuring use one processor for much of their time, so they run in a process for
 * each comparison, several at once. A process that ends without a result costs time only: its
 * comparison is ended here.
 */
#include "compare/compare_line.h"

#include "compare/many/many_send.h"
#include "compare/metrics/team.h"

#include "libref/base/progress.h"
#include "libref/base/trouble.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AT_ONCE = VN_COMPARE_TOGETHER }; /* bounds memory: each holds the data of one comparison */

/* One comparison that is being made. */
typedef struct running {
	const vn_compare_line *line;
	vn_comparison          c;
	char                   chosen[128], again[VN_SHELL_LINE];
	vn_status              st; /* so far */
	vn_error               why;
	pid_t                  pid; /* -1: there is no process */
	FILE                  *found;
} running;

/* ---- together ------------------------------------------------------------------------ */

/* Opens the files of all comparisons at once, if each has one candidate file. If that fails,
 * nothing is opened: each comparison then opens its own files and reports what is wrong with
 * them. */
static void open_files(const vn_compare_line *k, int n, vn_recording *opened[AT_ONCE][2])
{
	const char *path[2 * AT_ONCE];
	vn_error    why;

	for (int i = 0; i < n; i++) {
		if (k[i].absent || k[i].n_ranks > 1)
			return;
		path[2 * i] = k[i].ref;
		path[2 * i + 1] = k[i].cand;
	}
	vn_trouble_spare(true);
	if (vn_recording_open_all(path, 2 * n, *opened, &why))
		memset(opened, 0, AT_ONCE * sizeof *opened);
	vn_trouble_spare(false);
}

/* Opens and matches one comparison. */
static void begin_pair(running *r, const vn_compare_line *k, vn_recording *opened[2])
{
	*r = (running) { .line = k, .pid = -1 };
	r->c.request.options = &r->line->how.o;
	vn_compare_again(k, r->again);
	/* no option can bring back an absent file */
	r->c.request.again = *r->again && !k->absent ? r->again : NULL;
	r->st = vn_compare_check_itself(k, &r->c, &r->why);
	if (r->st) {
		vn_recording_close(opened[0]);
		vn_recording_close(opened[1]);
	} else if (!k->absent && !(r->st = vn_compare_open(k, &r->c, opened, r->chosen, sizeof r->chosen, &r->why))) {
		r->st = vn_compare_begin(&r->c, &r->why);
	}
}

/* Measures all that have not failed. */
static void measure_pairs(running *r, int n)
{
	vn_comparison *c[AT_ONCE] = { NULL };
	running       *of[AT_ONCE];
	vn_status      st[AT_ONCE];
	vn_error       why[AT_ONCE];
	int            some = 0;

	for (int i = 0; i < n; i++)
		if (!r[i].st && !r[i].line->absent) {
			of[some] = &r[i];
			c[some++] = &r[i].c;
		}
	vn_compare_measure(c, some, st, why);
	for (int i = 0; i < some; i++) {
		of[i]->st = st[i];
		of[i]->why = why[i];
	}
}

static void unmap_weights(const vn_comparison *c)
{
	vn_recording *const all[] = { c->opened.ref, c->opened.cand, c->opened.floor };
	for (int i = 0; i < 3; i++)
		if (all[i])
			vn_recording_unmap(all[i]);
}

/* ---- each by itself ------------------------------------------------------------------- */

vn_status vn_compare_add(vn_many *m, const char *path, vn_comparison *c, const char *chosen, vn_status ended,
                         const vn_error *why, vn_error *err)
{
	vn_document doc;
	vn_status   st;

	if (ended)
		return vn_many_add_trouble(m, path, ended, why, &c->result.refusals, err);
	if (!(st = vn_document_of(c, m->keep ? vn_report_by_name("json")->tells : 0, chosen, &doc, err)))
		st = vn_many_add(m, path, &doc, err);
	vn_document_finish(&doc);
	return st;
}

static vn_status judge_pair(running *r, vn_many *m, vn_error *err)
{
	if (!r->st)
		r->st = r->line->absent ? vn_compare_judge(r->line, &r->c, r->chosen, sizeof r->chosen, &r->why)
		                        : vn_compare_end(&r->c, &r->why);
	return vn_compare_add(m, r->line->cand, &r->c, r->chosen, r->st, &r->why, err);
}

/* The exit status of a process: 0 if what it found is complete. */
static int judge_there(running *r, const vn_many *m, FILE *found)
{
	const unsigned mark = vn_trouble_mark();
	vn_many        one;
	vn_error       err;

	if (vn_many_begin(&one, m->ref, m->keep, &err))
		return 1;
	return judge_pair(r, &one, &err) || vn_trouble_since(mark, r->line->cand, &err) || !vn_many_send(&one, found);
}

static void start_pairs(running *r, const vn_many *m, int threads)
{
	const pid_t parent = getpid();

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
	vn_compare_line mine = *r->line;
	mine.how.o.threads = threads;
	r->line = &mine;
	r->c.request.options = &mine.how.o;
	_exit(judge_there(r, m, r->found));
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

static void end_pair(running *r)
{
	if (r->pid > 0) {
		kill(r->pid, SIGKILL);
		ended_well(r);
	}
	if (r->found)
		fclose(r->found);
	vn_comparison_close(&r->c);
}

/* Makes at most AT_ONCE comparisons. */
static vn_status compare_some(const vn_compare_line *k, int n, int threads, vn_many *m, vn_progress *bar, vn_error *err)
{
	/* fork does not copy the threads started here: from now on, this process does all */
	static bool   busy;
	vn_recording *opened[AT_ONCE][2] = { { NULL } };
	running      *r = calloc(AT_ONCE, sizeof *r);
	const int     at_once = n < threads ? n : threads;
	bool          here = busy || at_once < 2;
	int           started = 0, begun = 0;
	vn_status     st = VN_OK;

	if (!r)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d comparisons", n);
	if (n > 1)
		open_files(k, n, opened);
	for (; begun < n; begun++)
		begin_pair(&r[begun], &k[begun], opened[begun]);
	measure_pairs(r, n);
	for (int i = 0; i < n && !here; i++)
		unmap_weights(&r[i].c);
	for (int i = 0; i < n && !st; i++) {
		for (; !here && started < n && started < i + at_once; started++)
			start_pairs(&r[started], m, threads / at_once);
		if (i < started && ended_well(&r[i])) {
			r[i].pid = -1;
			st = vn_many_receive(m, k[i].cand, r[i].found, err);
		} else {
			here = busy = true;
			r[i].pid = -1;
			st = judge_pair(&r[i], m, err);
		}
		vn_progress_at(bar, m->n);
	}
	for (int i = 0; i < begun; i++)
		end_pair(&r[i]);
	free(r);
	return st;
}

vn_status vn_compare_each(const vn_compare_line *line, int n, vn_many *m, vn_error *err)
{
	const int   all = line->how.o.threads ? line->how.o.threads : vn_team_size();
	vn_status   st = VN_OK;
	vn_progress bar = { 0 };

	vn_progress_start(&bar, "comparison", n);
	for (int i = 0; i < n && !st; i += AT_ONCE)
		st = compare_some(&line[i], n - i < AT_ONCE ? n - i : AT_ONCE, all, m, &bar, err);
	vn_progress_stop(&bar);
	return st;
}
