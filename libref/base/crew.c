/* crew.c: see crew.h. */
#include "libref/base/crew.h"

#include "libref/base/progress.h"
#include "libref/base/trouble.h"
#include "libref/base/worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ENDING_MS = 5000, SIGNALS = 3 };

static const int ending[SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

/* What a piece has brought. */
typedef struct piece_outcome {
	vn_cluster_answer answer;
	bool              complete;
} piece_outcome;

typedef struct crew {
	const vn_cluster_job *job;
	vn_worker             w[VN_MOST_WORKERS];
	int                   workers;
	struct sigaction      was[SIGNALS]; /* what the signals did before */
	sigset_t              before;       /* those blocked before */
	piece_outcome        *outcome;      /* (n) */
	int                   next, told;   /* the next piece to hand out; pieces whose answers were given to `done` */
	bool                  ended;        /* by `done` */
	vn_progress           bar;
} crew;

static crew *led; /* for the signal handler */

static void restore_signals(const crew *c)
{
	for (int i = 0; i < SIGNALS; i++)
		sigaction(ending[i], &c->was[i], NULL);
}

/* ---- a worker ------------------------------------------------------------------------------ */

static bool start_worker(crew *c, bool one)
{
	vn_worker *w = &c->w[c->workers];

	if (!vn_worker_fork(w, one))
		return false;
	if (w->pid == 0) {
		vn_trouble_spare(false); /* starting a worker is optional; what it then does is not */
		restore_signals(c);
		sigprocmask(SIG_SETMASK, &c->before, NULL);
		for (int k = 0; k < c->workers; k++)
			vn_worker_close(&c->w[k]);
		vn_worker_run(w, c->job);
	}
	c->workers++;
	return true;
}

/* ---- this process -------------------------------------------------------------------------- */

/* Hands on all answers whose turn it is. */
static vn_status deliver_answers(crew *c, vn_error *err)
{
	const double begun = c->bar.started;
	vn_status    st = VN_OK;

	if (c->told == c->job->n || !c->outcome[c->told].complete)
		return VN_OK;
	vn_progress_stop(&c->bar); /* its line would be between what is printed */
	for (; !st && c->told < c->job->n && c->outcome[c->told].complete; c->told++) {
		vn_cluster_answer *a = &c->outcome[c->told].answer;
		vn_answer_print(a);
		const bool spared = vn_trouble_spare(false);
		st = c->job->done(c->job->context, c->told, a, err);
		vn_trouble_spare(spared);
		c->ended = st != VN_OK;
		vn_answer_free(a);
	}
	vn_progress_start(&c->bar, "pair", c->job->n);
	c->bar.started = begun;
	vn_progress_at(&c->bar, c->told);
	return st;
}

static void set_blocked(bool block, sigset_t *before)
{
	sigset_t set;

	sigemptyset(&set);
	for (int i = 0; i < SIGNALS; i++)
		sigaddset(&set, ending[i]);
	sigprocmask(block ? SIG_BLOCK : SIG_SETMASK, block ? &set : before, block ? before : NULL);
}

/* One that has closed its socket may still remove its temporary files; one that lives on has not
 * closed it. Returns how it ended. */
static int wait_for(vn_worker *w)
{
	int how = 0;

	for (int ms = 0; w->pid > 0; ms++) {
		sigset_t before;
		set_blocked(true, &before); /* the handler must not signal a number that is free again */
		const pid_t ended = waitpid(w->pid, &how, WNOHANG);
		if (ended > 0 || (ended < 0 && errno != EINTR))
			w->pid = -1;
		set_blocked(false, &before); /* a signal to the whole group is here by now */
		if (ms == ENDING_MS && w->pid > 0)
			kill(w->pid, SIGKILL);
		nanosleep(&(struct timespec) { .tv_nsec = ended ? 0 : 1000000 }, NULL);
	}
	return how;
}

/* Also called by the handler. */
static void end_workers(crew *c, int signal)
{
	for (int k = 0; k < c->workers; k++) {
		vn_worker *w = &c->w[k];
		if (w->talk >= 0)
			close(w->talk);
		w->talk = -1;
		if (signal && w->pid > 0) /* kill(-1) would signal every process */
			kill(w->pid, signal);
	}
	for (int k = 0; k < c->workers; k++)
		wait_for(&c->w[k]);
}

/* Ends the workers, and then this process by the same signal. It is a handler, because a write to
 * stdout may wait for its reader for ever. */
static void pass_on(int number)
{
	const int before = errno;

	end_workers(led, number);
	restore_signals(led);
	raise(number); /* comes when the handler returns */
	errno = before;
}

/* Unless this process ignores them. They are blocked until set_blocked(false, &c->before). */
static void catch_signals(crew *c)
{
	struct sigaction now = { .sa_handler = pass_on, .sa_flags = SA_RESTART };

	sigemptyset(&now.sa_mask);
	for (int i = 0; i < SIGNALS; i++)
		sigaddset(&now.sa_mask, ending[i]);
	set_blocked(true, &c->before);
	led = c;
	for (int i = 0; i < SIGNALS; i++)
		if (sigaction(ending[i], NULL, &c->was[i]) == 0 && c->was[i].sa_handler != SIG_IGN)
			sigaction(ending[i], &now, NULL);
}

/* Reports that a worker cannot be reached, or how it ended, after everything printed before. */
static vn_status tell_failure(crew *c, vn_worker *w, vn_error *err)
{
	const char       *name = c->job->name(c->job->context, w->piece);
	const int         why = errno;
	vn_cluster_answer left = { 0 };

	if (why)
		return vn_fail(err, VN_ERR_NOMEM, "%s is not finished: its answer cannot be read: %s", name, strerror(why));
	const int how = wait_for(w);
	vn_progress_stop(&c->bar);
	vn_worker_output(w, &left);
	vn_answer_print(&left);
	vn_answer_free(&left);
	return vn_worker_ended(name, how, err);
}

static vn_status take_answer(crew *c, vn_worker *w, vn_error *err)
{
	piece_outcome *o = &c->outcome[w->piece < 0 ? 0 : w->piece];

	if (w->piece < 0) { /* it has ended, but has answered every piece it was given */
		close(w->talk);
		w->talk = -1;
		wait_for(w);
		return VN_OK;
	}
	if (!vn_worker_answer(w, &o->answer))
		return tell_failure(c, w, err);
	if (c->job->again && (o->answer.status || *o->answer.text[VN_CLUSTER_TROUBLE]))
		return VN_ERR_UNSUPPORTED;
	o->complete = true;
	return deliver_answers(c, err);
}

static vn_status begin_next(crew *c, vn_worker *w, vn_error *err)
{
	if (w->piece >= 0 || w->talk < 0 || c->next == c->job->n)
		return VN_OK;
	/* If the worker has ended (errno 0), take_answer reports that, with its output. */
	return vn_worker_begin(w, c->next++) || errno == 0 ? VN_OK : tell_failure(c, w, err);
}

static vn_status lead_workers(crew *c, vn_error *err)
{
	struct pollfd on[VN_MOST_WORKERS];
	vn_status     st = VN_OK;

	vn_progress_start(&c->bar, "pair", c->job->n);
	while (!st && c->told < c->job->n) {
		for (int k = 0; k < c->workers; k++) {
			if ((st = begin_next(c, &c->w[k], err)))
				break;
			on[k] = (struct pollfd) { .fd = c->w[k].talk, .events = POLLIN };
		}
		if (st)
			break;
		if (poll(on, (nfds_t)c->workers, -1) < 0) {
			if (errno != EINTR)
				st = vn_fail(err, VN_ERR_NOMEM, "cannot receive from a process: %s", strerror(errno));
			continue;
		}
		for (int k = 0; !st && k < c->workers; k++)
			if (on[k].revents)
				st = take_answer(c, &c->w[k], err);
	}
	vn_progress_stop(&c->bar);
	return st;
}

static bool same_output(void)
{
	struct stat a, b;
	return fstat(STDOUT_FILENO, &a) == 0 && fstat(STDERR_FILENO, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Does pieces in workers. *told: how many were given to `done`. *left: the others are to be done
 * here. */
static vn_status do_there(const vn_cluster_job *job, int workers, int *told, bool *left, vn_error *err)
{
	VN_FREED crew *c = NULL;
	vn_status      st = VN_ERR_UNSUPPORTED;
	const bool     one = same_output(), spared = vn_trouble_spare(true); /* one process can do it all */

	/* What is held back each worker would print again. */
	if (fflush(stdout) == 0 && fflush(stderr) == 0 && (c = calloc(1, sizeof *c))) {
		c->job = job;
		c->outcome = calloc((size_t)job->n, sizeof *c->outcome);
		catch_signals(c);
		while (c->outcome && c->workers < workers && c->workers < VN_MOST_WORKERS && start_worker(c, one))
			;
		set_blocked(false, &c->before);
	}
	vn_trouble_spare(spared || job->again);
	*left = !c || c->workers < 2;
	if (!*left) {
		st = lead_workers(c, err);
		*left = st && job->again && !c->ended;
	}
	vn_trouble_spare(spared);
	if (c) {
		*told = c->told;
		end_workers(c, st ? SIGTERM : 0);
		restore_signals(c);
		for (int k = 0; k < c->workers; k++)
			vn_worker_close(&c->w[k]);
		for (int i = 0; c->outcome && i < job->n; i++)
			vn_answer_free(&c->outcome[i].answer);
		free(c->outcome);
	}
	return st;
}

vn_status vn_crew_share(const vn_cluster_job *job, int workers, vn_error *err)
{
	bool      left = true;
	int       told = 0;
	vn_status st = VN_OK;

	if (workers > 1)
		st = do_there(job, workers, &told, &left, err);
	if (!left)
		return st;
	for (st = VN_OK; !st && told < job->n; told++) {
		VN_ENDS(vn_answer_free) vn_cluster_answer a = { 0 };
		job->piece(job->context, told, &a);
		st = job->done(job->context, told, &a, err);
	}
	return st;
}
