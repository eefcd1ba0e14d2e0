/* crew.c: see crew.h. */
#include "libref/base/crew.h"

#include "libref/base/progress.h"
#include "libref/base/socket.h"
#include "libref/base/trouble.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The head of an answer, before its texts. The piece's output goes through pipes. */
typedef struct crew_head {
	int status, bytes[VN_CLUSTER_SENT];
} crew_head;

enum { ENDING_MS = 5000, SIGNALS = 3 };

static const int ending[SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

typedef struct worker {
	pid_t pid;     /* -1: it has ended */
	int   talk;    /* a socket: pieces to it, answers from it; -1: closed */
	int   said[2]; /* pipes from its stdout and stderr; said[1] is -1 where both are one file */
	int   place;   /* place of the piece that it works on; -1: none */
} worker;

/* What a piece has brought so far. */
typedef struct piece_outcome {
	vn_cluster_answer answer;
	size_t            bytes[2]; /* of VN_CLUSTER_OUT and VN_CLUSTER_ERR */
	bool              complete;
} piece_outcome;

typedef struct crew {
	const vn_cluster_job *job;
	worker                w[VN_MOST_WORKERS];
	int                   workers;
	struct sigaction      was[SIGNALS]; /* what the signals did before */
	sigset_t              before;       /* those blocked before */
	piece_outcome        *outcome;      /* (n) by place */
	int                   next, told;   /* the next place to hand out; places whose answers were given to `done` */
	vn_progress           bar;
	vn_status (*done)(void *context, int i, vn_cluster_answer *answer, vn_error *err);
} crew;

static crew *led; /* for the signal handler */

static void restore_signals(const crew *c)
{
	for (int i = 0; i < SIGNALS; i++)
		sigaction(ending[i], &c->was[i], NULL);
}

static void free_texts(vn_cluster_answer *a)
{
	for (int k = 0; k < VN_CLUSTER_TEXTS; k++) {
		free(a->text[k]);
		a->text[k] = NULL;
	}
}

static const char *name_of(const crew *c, const worker *w)
{
	return c->job->name(c->job->context, c->job->order[w->place]);
}

/* ---- a worker ------------------------------------------------------------------------------ */

static bool send_answer(int talk, const vn_cluster_answer *a)
{
	crew_head h = { .status = a->status };

	for (int k = 0; k < VN_CLUSTER_SENT; k++)
		h.bytes[k] = a->text[k] ? (int)strlen(a->text[k]) : 0;
	bool sent = vn_socket_put(talk, &h, sizeof h);
	for (int k = 0; sent && k < VN_CLUSTER_SENT; k++)
		sent = vn_socket_put(talk, a->text[k], (size_t)h.bytes[k]);
	return sent;
}

/* Never returns. */
static void run_worker(const crew *c, int talk, const int said[2])
{
	int place;

	vn_trouble_spare(false); /* starting a worker is optional; what it then does is not */
	restore_signals(c);
	sigprocmask(SIG_SETMASK, &c->before, NULL);
	if (dup2(said[0], STDOUT_FILENO) < 0 || dup2(said[1] < 0 ? said[0] : said[1], STDERR_FILENO) < 0)
		_exit(2);
	for (int k = 0; k < c->workers; k++) {
		close(c->w[k].talk);
		close(c->w[k].said[0]);
		if (c->w[k].said[1] >= 0)
			close(c->w[k].said[1]);
	}
	vn_progress_off();
	while (vn_socket_get(talk, &place, sizeof place)) {
		vn_cluster_answer a = { 0 };
		c->job->piece(c->job->context, c->job->order[place], &a);
		if (fflush(stdout) != 0 || ferror(stdout) || fflush(stderr) != 0 || !send_answer(talk, &a))
			_exit(2);
		free_texts(&a);
	}
	_exit(0);
}

static void close_both(int pair[2])
{
	for (int k = 0; k < 2; k++)
		if (pair[k] >= 0)
			close(pair[k]);
}

/* one: stdout and stderr are the same file; the order of the output to both is kept. */
static bool start_worker(crew *c, bool one)
{
	const pid_t parent = getpid();
	worker     *w = &c->w[c->workers];
	int         talk[2] = { -1, -1 }, out[2] = { -1, -1 }, err[2] = { -1, -1 };
	const bool  good = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk) == 0 && pipe2(out, O_CLOEXEC) == 0 &&
	                  (one || pipe2(err, O_CLOEXEC) == 0);

	*w = (worker) { .pid = good ? fork() : -1, .talk = talk[0], .said = { out[0], err[0] }, .place = -1 };
	if (w->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM); /* so that it removes its temporary files */
		if (getppid() != parent)
			_exit(2);
		close(talk[0]);
		close(out[0]);
		run_worker(c, talk[1], (const int[]) { out[1], err[1] });
	}
	if (w->pid < 0) {
		close_both(talk);
		close_both(out);
		close_both(err);
		return false;
	}
	close(talk[1]);
	close(out[1]);
	if (err[1] >= 0)
		close(err[1]);
	c->workers++;
	return true;
}

/* ---- this process -------------------------------------------------------------------------- */

static vn_status no_memory(const crew *c, const worker *w, vn_error *err)
{
	return vn_fail(err, VN_ERR_NOMEM, "no memory for the outcome of %s", name_of(c, w));
}

static vn_status not_readable(const crew *c, const worker *w, const char *why, vn_error *err)
{
	return vn_fail(err, VN_ERR_NOMEM, "%s: what its process prints cannot be read: %s", name_of(c, w), why);
}

/* Returns 1 if bytes can be read, 0 if not, -1 with errno if that cannot be asked. */
static int look_for_more(int fd)
{
	struct pollfd on = { .fd = fd, .events = POLLIN };
	int           n = 0;

	while (fd >= 0 && (n = poll(&on, 1, 0)) < 0 && errno == EINTR)
		;
	return n <= 0 ? n : (on.revents & POLLIN) != 0;
}

/* Takes what the worker has printed so far. */
static vn_status read_output(crew *c, worker *w, vn_error *err)
{
	static char piece[64 << 10];

	for (int k = 0; k < 2; k++) {
		int more = 0;
		while (w->place >= 0 && (more = look_for_more(w->said[k])) > 0) {
			const ssize_t n = read(w->said[k], piece, sizeof piece);
			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				return not_readable(c, w, n < 0 ? strerror(errno) : "it ends early", err);
			char  **text = &c->outcome[w->place].answer.text[VN_CLUSTER_OUT + k];
			size_t *bytes = &c->outcome[w->place].bytes[k];
			char   *all = realloc(*text, *bytes + (size_t)n + 1);
			if (!all)
				return no_memory(c, w, err);
			memcpy(all + *bytes, piece, (size_t)n);
			*bytes += (size_t)n;
			all[*bytes] = 0;
			*text = all;
		}
		if (more < 0)
			return not_readable(c, w, strerror(errno), err);
	}
	return VN_OK;
}

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
		st = c->done(c->job->context, c->job->order[c->told], a, err);
		free_texts(a);
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
static int wait_for(worker *w)
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
		worker *w = &c->w[k];
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

/* Reports how a worker ended, after everything printed before. */
static vn_status tell_end(crew *c, worker *w, vn_error *err)
{
	const int how = wait_for(w);
	const int number = WIFSIGNALED(how) ? WTERMSIG(how) : 0;
	vn_status st = read_output(c, w, err);
	vn_progress_stop(&c->bar);
	for (int k = 0; !st && k < 2; k++) {
		const char *text = c->outcome[w->place].answer.text[VN_CLUSTER_OUT + k];
		fputs(text ? text : "", k ? stderr : stdout);
		fflush(k ? stderr : stdout);
	}
	if (number)
		return vn_fail(err, VN_ERR_NOMEM, "%s is not finished: its process was killed by signal %d (%s)", name_of(c, w),
		               number, strsignal(number));
	return vn_fail(err, VN_ERR_NOMEM, "%s is not finished: its process ended with status %d", name_of(c, w),
	               WEXITSTATUS(how));
}

/* Reports that a message could not be sent or received. errno says why; 0: the worker has ended. */
static vn_status tell_failure(crew *c, worker *w, vn_error *err)
{
	const int why = errno;
	if (why)
		return vn_fail(err, VN_ERR_NOMEM, "%s is not finished: its process cannot be reached: %s", name_of(c, w),
		               strerror(why));
	return tell_end(c, w, err);
}

static vn_status take_answer(crew *c, worker *w, vn_error *err)
{
	crew_head h;

	if (w->place < 0) { /* it has ended, but has answered every piece it was given */
		close(w->talk);
		w->talk = -1;
		wait_for(w);
		return VN_OK;
	}
	if (!vn_socket_get(w->talk, &h, sizeof h))
		return tell_failure(c, w, err);
	vn_cluster_answer *a = &c->outcome[w->place].answer;
	a->status = h.status;
	for (int k = 0; k < VN_CLUSTER_SENT; k++) {
		if (!(a->text[k] = calloc((size_t)h.bytes[k] + 1, 1)))
			return no_memory(c, w, err);
		if (!vn_socket_get(w->talk, a->text[k], (size_t)h.bytes[k]))
			return tell_failure(c, w, err);
	}
	const vn_status st = read_output(c, w, err);
	if (st)
		return st;
	c->outcome[w->place].complete = true;
	w->place = -1;
	return deliver_answers(c, err);
}

static vn_status begin_next(crew *c, worker *w, vn_error *err)
{
	if (w->place >= 0 || w->talk < 0 || c->next == c->job->n)
		return VN_OK;
	w->place = c->next++;
	/* If the worker has ended (errno 0), take_answer reports that, with its output. */
	if (!vn_socket_put(w->talk, &w->place, sizeof w->place) && errno)
		return tell_failure(c, w, err);
	return VN_OK;
}

static vn_status lead_workers(crew *c, vn_error *err)
{
	struct pollfd on[3 * VN_MOST_WORKERS];
	vn_status     st = VN_OK;

	vn_progress_start(&c->bar, "pair", c->job->n);
	while (!st && c->told < c->job->n) {
		for (int k = 0; k < c->workers; k++) {
			if ((st = begin_next(c, &c->w[k], err)))
				break;
			on[3 * k] = (struct pollfd) { .fd = c->w[k].talk, .events = POLLIN };
			for (int i = 0; i < 2; i++) /* a pipe may be at its end while its worker is still there */
				on[3 * k + 1 + i] = (struct pollfd) { .fd = c->w[k].place < 0 ? -1 : c->w[k].said[i],
					                                  .events = POLLIN };
		}
		if (st)
			break;
		if (poll(on, 3 * (nfds_t)c->workers, -1) < 0) {
			if (errno != EINTR)
				st = vn_fail(err, VN_ERR_NOMEM, "cannot receive from a process: %s", strerror(errno));
			continue;
		}
		for (int k = 0; !st && k < c->workers; k++) {
			if (on[3 * k + 1].revents || on[3 * k + 2].revents)
				st = read_output(c, &c->w[k], err);
			if (!st && on[3 * k].revents)
				st = take_answer(c, &c->w[k], err);
		}
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

vn_status vn_crew_share(const vn_cluster_job *job, int workers,
                        vn_status (*done)(void *context, int i, vn_cluster_answer *answer, vn_error *err),
                        vn_error *err)
{
	const size_t n = (size_t)job->n;
	crew        *c = NULL;
	vn_status    st = VN_ERR_UNSUPPORTED;
	const bool   one = same_output();

	vn_trouble_spare(true); /* one process can do it all */
	const int unwritten = fflush(stdout) != 0 || fflush(stderr) != 0 ? errno : 0;
	if (!unwritten && (c = calloc(1, sizeof *c))) { /* what is held back each worker would print again */
		c->job = job;
		c->done = done;
		c->outcome = calloc(n, sizeof *c->outcome);
		catch_signals(c);
		while (c->outcome && c->workers < workers && c->workers < VN_MOST_WORKERS && start_worker(c, one))
			;
		set_blocked(false, &c->before);
	}
	vn_trouble_spare(false);
	if (c && c->workers > 1)
		st = lead_workers(c, err);
	else if (unwritten)
		vn_fail(err, st, "cannot write earlier output, so no process was started: %s", strerror(unwritten));
	else
		vn_fail(err, st, "fewer than two processes could be started");
	if (c) {
		end_workers(c, st ? SIGTERM : 0);
		restore_signals(c);
		for (int k = 0; k < c->workers; k++)
			close_both(c->w[k].said);
		for (size_t i = 0; c->outcome && i < n; i++)
			free_texts(&c->outcome[i].answer);
		free(c->outcome);
	}
	free(c);
	return st;
}
