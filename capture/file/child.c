/* child.c: see child.h. */
#include "capture/file/child.h"

#include "capture/file/h5.h"
#include "capture/file/sandbox.h"
#include "libref/base/sanitizer.h"
#include "libref/base/system.h"
#include "libref/base/text.h"
#include "libref/base/trouble.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A child sends a frame for every object it visits. Three seconds of computing without a frame mean
 * a loop in a damaged structure; so do ten minutes of silence, on any disk. The child has a timer
 * for the first case. Injected code could disable it, so the parent also checks the child's CPU
 * clock once a tick, and allows two seconds more, so that a timer that works comes first. */
enum { COMPUTING_S = 3, OVERSPENT_S = COMPUTING_S + 2, SILENCE_MS = 600000, TICK_MS = 1000 };
/* Frames are a few hundred bytes. Reading them one at a time, the two processes would spend a sixth
 * of their time waking each other. */
enum { AHEAD = 1 << 16, MOMENT_MS = 100 };

/* Time that a child has to end by itself once its pipe has ended. */
enum { ENDING_MS = 5000 };
static unsigned       mark; /* vn_trouble_mark at the child's start */
static const uint32_t MOST_FRAME = (uint32_t)1 << 30;
/* Allowed beyond the parent's memory: far more than the metadata of any real file. */
static const rlim_t   MEMORY = (rlim_t)3 << 30;

/* ASan's shadow needs terabytes of addresses. */
static void limit_memory(void)
{
#ifndef VN_ASAN
	const size_t  used = vn_address_space();
	struct rlimit most = { 0 };
	const rlim_t  enough = (rlim_t)used + MEMORY;
	if (used && getrlimit(RLIMIT_AS, &most) == 0 && most.rlim_cur > enough) { /* a limit set by the user stays */
		most.rlim_cur = most.rlim_max = enough;
		setrlimit(RLIMIT_AS, &most);
	}
#else
	(void)MEMORY;
#endif
}

void vn_child_patience(int seconds)
{
	struct itimerval t = { .it_value.tv_sec = seconds };
	setitimer(ITIMER_PROF, &t, NULL);
}

static int missing; /* layers of the sandbox */

/* The child of a threaded process has only this thread. HDF5 starts without the environment,
 * before the file is opened. */
static void settle_in(const vn_child_task *t, int pipe)
{
	static const int list[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGSEGV, SIGBUS,
		                        SIGFPE, SIGABRT, SIGILL, SIGPROF, SIGSYS };
	const vn_sandbox box = {
		.pipe = pipe, .file = t->file, .shared = t->shared, .shared_bytes = t->shared_bytes, .without = t->without
	};
	sigset_t none_blocked;

	vn_end_with_parent(SIGKILL);
	for (unsigned i = 0; i < sizeof list / sizeof *list; i++)
		signal(list[i], SIG_DFL);
	sigemptyset(&none_blocked);
	sigprocmask(SIG_SETMASK, &none_blocked, NULL);
	vn_child_patience(COMPUTING_S);
	limit_memory();
	vn_sandbox_begin(&box);
	vn_h5_lock();
	vn_h5_unlock();
	missing = vn_sandbox_close(&box);
}

vn_status vn_child_start(vn_child *c, const vn_child_task *t, vn_error *err)
{
	int ends[2];

	*c = (vn_child) { .pid = -1, .pipe = -1, .path = t->path, .what = t->what ? t->what : "HDF5", .slow = t->slow };
	if (!(c->in = malloc(AHEAD)))
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory to read it", t->path);
	if (vn_pipe(ends) != 0) {
		vn_status st = vn_fail(err, VN_ERR_IO, "%s: cannot make a pipe: %s", t->path, strerror(errno));
		vn_child_end(c);
		return st;
	}
	fflush(NULL);
	c->pid = fork();
	if (c->pid == 0) {
		mark = vn_trouble_mark();
		vn_trouble_spare(false); /* callers that can do without a child rely on its answer */
		settle_in(t, ends[1]);
		if (missing)
			vn_child_send(ends[1], VN_CHILD_GAPS, &missing, sizeof missing);
		t->work(t->ctx, ends[1]);
		vn_child_leave(ends[1]);
	}
	close(ends[1]);
	c->pipe = ends[0];
	if (c->pid < 0) {
		vn_status st = vn_fail(err, VN_ERR_IO, "%s: cannot start a process to read it: %s", t->path, strerror(errno));
		vn_child_end(c);
		return st;
	}
	return VN_OK;
}

vn_status vn_child_adopt(vn_child *c, const char *path, int pipe, vn_error *err)
{
	*c = (vn_child) { .pid = -1, .pipe = pipe, .path = path, .what = "HDF5" };
	if ((c->in = malloc(AHEAD)))
		return VN_OK;
	vn_child_end(c);
	return vn_fail(err, VN_ERR_NOMEM, "%s: no memory to read it", path);
}

void vn_child_end(vn_child *c)
{
	if (c->pipe >= 0)
		close(c->pipe);
	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	VN_FREE(c->in, c->body);
	*c = (vn_child) { .pid = -1, .pipe = -1 };
}

static vn_status report_damage(const vn_child *c, const char *how, vn_error *err)
{
	return vn_fail(err, VN_ERR_FORMAT, "%s: damaged %s structure (%s)", c->path, c->what, how);
}

/* These signals are not caused by reading the file. They come from the kernel when it needs memory,
 * from a person, or from our closed end of the pipe. */
static bool from_outside(int number)
{
	return number == SIGKILL || number == SIGXCPU || number == SIGTERM || number == SIGINT || number == SIGHUP ||
	       number == SIGPIPE;
}

static vn_status report_signal(const vn_child *c, int number, vn_error *err)
{
	if (number == SIGKILL)
		return vn_fail(err, VN_ERR_NOMEM,
		               "%s: the process that reads it was killed, usually for lack of memory; the file may be good",
		               c->path);
	if (number == SIGXCPU)
		return vn_fail(
			err, VN_ERR_NOMEM,
			"%s: the process that reads it was killed at the limit of processor time (ulimit -t); the file may be good",
			c->path);
	return vn_fail(err, VN_ERR_NOMEM, "%s: the process that reads it was ended by signal %d; the file may be good",
	               c->path, number);
}

/* Waits for a child whose pipe has ended. It may still run: the file may have taken it over, or
 * read may have reported an end too early while it still writes. Closing the pipe ends a child that
 * writes; a signal ends any child. *stayed: it did not end by itself. */
static pid_t wait_for_end(vn_child *c, int *status, bool *stayed)
{
	pid_t pid = 0;

	*stayed = false;
	close(c->pipe);
	c->pipe = -1;
	if (c->pid <= 0)
		return 0;
	for (int ms = 0; ms < ENDING_MS; ms++) {
		pid = waitpid(c->pid, status, WNOHANG);
		if (pid > 0 || (pid < 0 && errno != EINTR))
			return pid;
		nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
	}
	*stayed = true;
	kill(c->pid, SIGKILL);
	while ((pid = waitpid(c->pid, status, 0)) < 0 && errno == EINTR)
		;
	return pid;
}

/* The pipe ended early. Finds out why. */
static vn_status report_end(vn_child *c, vn_error *err)
{
	int  status = 0;
	bool stayed;
	char how[96];

	snprintf(how, sizeof how, "%s fails on it", c->what);

	const pid_t pid = wait_for_end(c, &status, &stayed);
	const bool  known = pid > 0 || c->pid <= 0; /* a child that we did not start has no pid */
	c->pid = -1;
	if (stayed)
		return report_damage(c, "its reader ended its answer early and did not end itself", err);
	/* A child that read to the end has sent its answer, so this failure says nothing about the
	 * file. */
	if (!known || (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return vn_fail(err, VN_ERR_NOMEM, "%s: the process that reads it ended without an answer; the file may be good",
		               c->path);
	if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == VN_TROUBLE_STATUS)
		return vn_fail(err, VN_ERR_NOMEM,
		               "%s: the process that reads it ended, usually for lack of memory; the file may be good",
		               c->path);
	const int number = pid > 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	if (from_outside(number))
		return report_signal(c, number, err);
	if (number == SIGPROF)
		return report_damage(c, "reading it does not end", err);
	if (number == SIGSYS)
		return vn_fail(
			err, VN_ERR_FORMAT,
			"%s: reading it was stopped: the file makes its reader use a system call that reading does not need; it "
			"may be an attack",
			c->path);
	if (number)
		snprintf(how, sizeof how, "%s crashes on it: signal %d; if memory ran out, the file may be good", c->what,
		         number);
	return report_damage(c, how, err);
}

/* Where the next bytes of the frame go, and their number. */
static char *next_bytes(vn_child *c, size_t *bytes)
{
	const bool head = c->got < sizeof c->head;
	*bytes = (head ? sizeof c->head : sizeof c->head + c->head[1]) - c->got;
	return head ? (char *)c->head + c->got : c->body + (c->got - sizeof c->head);
}

static vn_status begin_body(vn_child *c, vn_error *err)
{
	if (c->head[0] > 255 || c->head[1] > MOST_FRAME)
		return report_damage(c, "its reader returned nonsense", err);
	if (!(c->body = malloc((size_t)c->head[1] + 1)))
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for %u bytes", c->path, c->head[1]);
	c->body[c->head[1]] = '\0';
	return VN_OK;
}

/* Completes the frame from bytes read ahead; *whole: it is complete. */
static vn_status build_frames(vn_child *c, bool *whole, vn_error *err)
{
	size_t    want;
	vn_status st = VN_OK;

	for (;;) {
		char *to = next_bytes(c, &want);
		if (want > c->n)
			want = c->n;
		memcpy(to, c->in + c->at, want);
		c->at += want;
		c->n -= want;
		c->got += want;
		if (!c->body && c->got == sizeof c->head && (st = begin_body(c, err)))
			return st;
		*whole = c->body && c->got == sizeof c->head + c->head[1];
		if (*whole || c->n == 0)
			return VN_OK;
	}
}

/* CPU seconds the child has used; 0: unknown. */
static double processor_s(const vn_child *c)
{
	clockid_t       id;
	struct timespec t;
	if (c->pid <= 0 || clock_getcpuclockid(c->pid, &id) != 0 || clock_gettime(id, &t) != 0)
		return 0;
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Whether a child computes too long or has stopped itself, without sending a frame. A single stop
 * may come from Ctrl-Z, because parent and child may not resume at the same moment. */
static bool runs_away(vn_child *c)
{
	siginfo_t info = { 0 };
	if (c->pid <= 0)
		return false;
	if (waitid(P_PID, (id_t)c->pid, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid == c->pid)
		c->stopped++;
	else
		c->stopped = 0;
	return c->stopped > 1 || (!c->slow && processor_s(c) - c->spent_s > OVERSPENT_S);
}

/* Reads from the pipe, which has data, after all bytes read ahead are used. */
static vn_status pull_bytes(vn_child *c, vn_error *err)
{
	size_t     want;
	char      *to = next_bytes(c, &want);
	const bool ahead = want < AHEAD;
	ssize_t    n = read(c->pipe, ahead ? c->in : to, ahead ? AHEAD : want);

	if (n < 0 && errno == EINTR)
		return VN_OK;
	if (n < 0)
		return vn_fail(err, VN_ERR_IO, "%s: cannot receive the result of the process that reads it: %s", c->path,
		               strerror(errno));
	if (n == 0)
		return report_end(c, err);
	c->spent_s = processor_s(c);
	c->stopped = 0;
	c->at = 0;
	c->n = ahead ? (size_t)n : 0;
	c->got += ahead ? 0 : (size_t)n;
	return VN_OK;
}

/* Waits until a child sends something, and reads from each that does. */
static vn_status wait_for_any(vn_child *const *c, int n, int *which, vn_error *err)
{
	struct pollfd p[VN_CHILDREN];
	vn_status     st = VN_OK;
	int           ready, silent_ms = 0;

	for (int i = 0; i < n; i++)
		p[i] = (struct pollfd) { .fd = c[i]->pipe, .events = POLLIN };
	while ((ready = poll(p, (nfds_t)n, TICK_MS)) <= 0 && silent_ms < SILENCE_MS) {
		if (ready < 0 && errno != EINTR)
			break;
		silent_ms += ready == 0 ? TICK_MS : 0;
		for (int i = 0; ready == 0 && i < n; i++)
			if (c[i]->pipe >= 0 && runs_away(c[i])) {
				*which = i;
				return report_damage(c[i], "reading it does not end", err);
			}
	}
	if (ready < 0) /* says nothing about the file */
		return vn_fail(err, VN_ERR_NOMEM, "%s: cannot wait for the process that reads it: %s", c[*which]->path,
		               strerror(errno));
	for (int i = 0; i < n && !st; i++)
		if (c[i]->pipe >= 0 && (ready <= 0 || p[i].revents)) {
			*which = i;
			st = ready <= 0 ? report_damage(c[i], "reading it does not end", err) : pull_bytes(c[i], err);
		}
	return st;
}

/* ---- what the sandbox lacks ---------------------------------------------------------------- */

static void (*tell_gaps)(const char *missing);

void vn_child_on_gaps(void (*tell)(const char *missing))
{
	tell_gaps = tell;
}

static void name_layers(int layers, char *words, size_t room)
{
	*words = '\0';
	if (layers & VN_SANDBOX_LANDLOCK)
		vn_text_add(words, room, "Landlock");
	if (layers & VN_SANDBOX_SECCOMP)
		vn_text_add(words, room, "%sseccomp", *words ? ", " : "");
}

/* Takes the frame if it is the one that says what is missing. */
static bool take_gaps(vn_child *c)
{
	int  layers = 0;
	char words[32];

	if (c->head[0] != VN_CHILD_GAPS)
		return false;
	if (c->head[1] == sizeof layers)
		memcpy(&layers, c->body, sizeof layers);
	free(c->body);
	c->body = NULL;
	c->got = 0;
	name_layers(layers, words, sizeof words);
	if (tell_gaps && *words) {
		tell_gaps(words);
		tell_gaps = NULL;
	}
	return true;
}

/* ---- receiving ------------------------------------------------------------------------------- */

vn_status vn_child_receive_any(vn_child *const *c, int n, int *which, vn_child_frame *f, vn_error *err)
{
	vn_status st = VN_OK;
	bool      whole = false;

	*f = (vn_child_frame) { 0 };
	*which = 0;
	while (!st) {
		for (int i = 0; i < n && !whole && !st; i++)
			if (c[i]->pipe >= 0) {
				*which = i;
				st = build_frames(c[i], &whole, err);
			}
		if (!st && whole && take_gaps(c[*which])) {
			whole = false;
			continue;
		}
		if (st || whole)
			break;
		st = wait_for_any(c, n, which, err);
	}
	if (st)
		return st;
	vn_child *from = c[*which];
	*f = (vn_child_frame) { (int)from->head[0], from->body, from->head[1] };
	from->body = NULL;
	from->got = 0;
	if (f->kind != VN_TROUBLE_STATUS)
		return VN_OK;
	st = vn_fail(err, VN_ERR_NOMEM, "%s: the process that reads it failed: %.700s", from->path, (char *)f->data);
	free(f->data);
	*f = (vn_child_frame) { 0 };
	return st;
}

vn_status vn_child_receive(vn_child *c, vn_child_frame *f, vn_error *err)
{
	int which;
	return vn_child_receive_any(&c, 1, &which, f, err);
}

vn_status vn_child_refused(const char *path, const void *data, size_t bytes, vn_error *err)
{
	const char *text = bytes > sizeof(int32_t) ? (const char *)data + sizeof(int32_t) : "";
	return vn_fail(err, VN_ERR_FORMAT, *text ? "%s" : "%s: damaged structure (its contents are inconsistent)",
	               *text ? text : path);
}

/* ---- in the child ---------------------------------------------------------------------- */

static void write_pipe(int pipe, const void *data, size_t bytes)
{
	const char *from = data;
	while (bytes > 0) {
		ssize_t n = write(pipe, from, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(VN_TROUBLE_STATUS);
		from += n;
		bytes -= (size_t)n;
	}
}

static struct outgoing {
	size_t  n;
	int64_t left_ms; /* when the last left */
	char    data[AHEAD];
} out;

static int64_t clock_ms(void)
{
	struct timespec t = { 0 };
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

static void let_go(int pipe)
{
	write_pipe(pipe, out.data, out.n);
	out.n = 0;
	out.left_ms = clock_ms();
	vn_child_patience(COMPUTING_S);
}

/* Replaces every finding by the trouble once the machine has refused a request. */
static void end_in_trouble(int pipe)
{
	vn_error err = { "" };
	if (!vn_trouble_since(mark, "its findings", &err))
		return;
	const uint32_t head[2] = { VN_TROUBLE_STATUS, (uint32_t)strlen(err.text) };
	write_pipe(pipe, head, sizeof head);
	write_pipe(pipe, err.text, head[1]);
	_exit(VN_TROUBLE_STATUS);
}

void vn_child_send(int pipe, int kind, const void *data, size_t bytes)
{
	uint32_t head[2] = { (uint32_t)kind, (uint32_t)bytes };

	end_in_trouble(pipe);

	if (bytes > MOST_FRAME)
		_exit(1);
	if (sizeof head + bytes > sizeof out.data - out.n)
		let_go(pipe);
	memcpy(out.data + out.n, head, sizeof head);
	out.n += sizeof head;
	if (bytes > sizeof out.data - out.n) {
		let_go(pipe);
		write_pipe(pipe, data, bytes);
	} else {
		memcpy(out.data + out.n, data, bytes);
		out.n += bytes;
	}
	if (clock_ms() - out.left_ms > MOMENT_MS)
		let_go(pipe);
}

void vn_child_refuse(int pipe, const char *format, ...)
{
	char    frame[sizeof(int32_t) + VN_ERROR_MAX];
	int32_t status = VN_ERR_FORMAT;
	va_list args;

	memcpy(frame, &status, sizeof status);
	va_start(args, format);
	const int n = vsnprintf(frame + sizeof status, VN_ERROR_MAX, format, args);
	va_end(args);
	vn_child_send(pipe, 0, frame, sizeof status + (n < VN_ERROR_MAX ? (size_t)n : VN_ERROR_MAX - 1));
	vn_child_leave(pipe);
}

void vn_child_leave(int pipe)
{
	end_in_trouble(pipe);
	let_go(pipe);
	_exit(0);
}

/* ---- what the sandbox is worth here ------------------------------------------------------ */

static void tell_missing(void *ctx, int pipe)
{
	(void)ctx;
	vn_child_send(pipe, 0, &missing, sizeof missing);
}

vn_status vn_child_sandbox_gaps(char *words, size_t room, vn_error *err)
{
	vn_child       c;
	int            layers = 0;
	vn_child_frame f = { 0 };
	vn_status st = vn_child_start(&c, &(vn_child_task) { .path = "sandbox", .file = -1, .work = tell_missing }, err);

	if (!st && !(st = vn_child_receive(&c, &f, err)) && f.bytes == sizeof layers)
		memcpy(&layers, f.data, sizeof layers);
	free(f.data);
	vn_child_end(&c);
	name_layers(layers, words, room);
	return st;
}
