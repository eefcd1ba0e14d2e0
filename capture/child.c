/* child.c: see child.h. */
#include "capture/child.h"

#include "capture/h5.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child sends something for every object it meets. Three seconds of computing
 * in between are a loop in a damaged structure; so are ten minutes of silence,
 * however slow the disk. */
enum { COMPUTING_S = 3, SILENCE_MS = 600000 };
static const uint32_t MOST_FRAME = (uint32_t)1 << 30;
/* Beyond what the parent had: far more than the metadata of any real file. */
static const rlim_t MEMORY = (rlim_t)3 << 30;

#if defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN 1
#endif
#endif

/* ASan's shadow needs terabytes of addresses. */
static void limit_memory(void)
{
#ifndef ASAN
	unsigned long pages = 0;
	FILE         *f = fopen("/proc/self/statm", "re");
	if (f && fscanf(f, "%lu", &pages) == 1) {
		struct rlimit most = { 0 };
		most.rlim_cur = most.rlim_max = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + MEMORY;
		setrlimit(RLIMIT_AS, &most);
	}
	if (f)
		fclose(f);
#else
	(void)MEMORY;
#endif
}

void vn_child_patience(int seconds)
{
	struct itimerval t = { .it_value.tv_sec = seconds };
	setitimer(ITIMER_PROF, &t, NULL);
}

static void settle_in(void)
{
	static const int list[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL, SIGPROF };
	sigset_t none_blocked;
	struct rlimit none = { 0, 0 };
	int           null = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned i = 0; i < sizeof list / sizeof *list; i++)
		signal(list[i], SIG_DFL);
	sigemptyset(&none_blocked);
	sigprocmask(SIG_SETMASK, &none_blocked, NULL);
	vn_child_patience(COMPUTING_S);
	setrlimit(RLIMIT_CORE, &none);
	limit_memory();
	if (null >= 0) { /* nothing that the C library has to say on the way down */
		dup2(null, 1);
		dup2(null, 2);
	}
}

vn_status vn_child_start(vn_child *c, const char *path, void (*work)(void *ctx, int pipe), void *ctx, vn_error *err)
{
	int ends[2];

	*c = (vn_child){ .pid = -1, .pipe = -1, .path = path };
	if (pipe2(ends, O_CLOEXEC) != 0)
		return vn_fail(err, VN_ERR_IO, "%s: cannot make a pipe: %s", path, strerror(errno));
	fflush(NULL);
	vn_h5_lock(); /* so that the child finds the library at rest */
	c->pid = fork();
	vn_h5_unlock();
	if (c->pid == 0) {
		close(ends[0]);
		settle_in();
		work(ctx, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	c->pipe = ends[0];
	if (c->pid < 0) {
		vn_status st = vn_fail(err, VN_ERR_IO, "%s: cannot start a process to read it: %s", path, strerror(errno));
		vn_child_end(c);
		return st;
	}
	return VN_OK;
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
	*c = (vn_child){ .pid = -1, .pipe = -1 };
}

static vn_status damaged(const vn_child *c, const char *how, vn_error *err)
{
	return vn_fail(err, VN_ERR_FORMAT, "%s: damaged HDF5 structure (%s)", c->path, how);
}

/* The pipe ended early: why? */
static vn_status gone(vn_child *c, vn_error *err)
{
	int   status = 0;
	pid_t pid;
	char  how[64] = "HDF5 fails on it";

	while ((pid = waitpid(c->pid, &status, 0)) < 0 && errno == EINTR)
		;
	c->pid = -1;
	if (pid > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
		return damaged(c, "reading it does not end", err);
	if (pid > 0 && WIFSIGNALED(status))
		snprintf(how, sizeof how, "HDF5 crashes on it: signal %d", WTERMSIG(status));
	return damaged(c, how, err);
}

static vn_status get(vn_child *c, void *data, size_t bytes, vn_error *err)
{
	char *to = data;

	while (bytes > 0) {
		struct pollfd p = { .fd = c->pipe, .events = POLLIN };
		int           ready = poll(&p, 1, SILENCE_MS);
		if (ready < 0 && errno == EINTR)
			continue;
		if (ready == 0)
			return damaged(c, "reading it does not end", err);
		ssize_t n = ready > 0 ? read(c->pipe, to, bytes) : -1;
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return gone(c, err);
		to += n;
		bytes -= (size_t)n;
	}
	return VN_OK;
}

vn_status vn_child_receive(vn_child *c, int *kind, void **data, size_t *bytes, vn_error *err)
{
	uint32_t  head[2];
	vn_status st;

	*data = NULL;
	if ((st = get(c, head, sizeof head, err)))
		return st;
	if (head[0] > 255 || head[1] > MOST_FRAME)
		return damaged(c, "reading it goes astray", err);
	char *p = malloc((size_t)head[1] + 1);
	if (!p)
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for %u bytes", c->path, head[1]);
	if ((st = get(c, p, head[1], err))) {
		free(p);
		return st;
	}
	p[head[1]] = '\0';
	*kind = (int)head[0];
	*data = p;
	*bytes = head[1];
	return VN_OK;
}

static void put(int pipe, const void *data, size_t bytes)
{
	const char *from = data;
	while (bytes > 0) {
		ssize_t n = write(pipe, from, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(1);
		from += n;
		bytes -= (size_t)n;
	}
}

void vn_child_send(int pipe, int kind, const void *data, size_t bytes)
{
	uint32_t head[2] = { (uint32_t)kind, (uint32_t)bytes };

	if (bytes > MOST_FRAME)
		_exit(1);
	put(pipe, head, sizeof head);
	put(pipe, data, bytes);
	vn_child_patience(COMPUTING_S);
}
