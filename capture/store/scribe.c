/* scribe.c: see scribe.h. The process and its messages; no HDF5. */
#include "capture/store/scribe.h"

#include "capture/file/sandbox.h"
#include "libref/base/system.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SILENCE_S = 600 }; /* as in child.c: enough for any disk */

typedef struct message_head {
	int64_t request;
	size_t  bytes;
} message_head;

typedef struct scribe_answer {
	vn_status status;
	int64_t   value;
	vn_error  err;
} scribe_answer;

/* ---- both ends ------------------------------------------------------------------------------ */

/* Sends two pieces, usually in one call. One of them may be empty. */
static bool send_all(int socket, const void *first, size_t first_bytes, const void *second, size_t second_bytes)
{
	struct iovec  part[2] = { { (void *)(uintptr_t)first, first_bytes }, { (void *)(uintptr_t)second, second_bytes } };
	struct msghdr m = { .msg_iov = part, .msg_iovlen = 2 };

	while (part[0].iov_len + part[1].iov_len > 0) {
		ssize_t n = sendmsg(socket, &m, VN_SEND_FLAGS);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		for (int i = 0; i < 2; i++) {
			const size_t gone = (size_t)n < part[i].iov_len ? (size_t)n : part[i].iov_len;
			if (gone > 0) /* the second part may be NULL */
				part[i].iov_base = (char *)part[i].iov_base + gone;
			part[i].iov_len -= gone;
			n -= (ssize_t)gone;
		}
	}
	return true;
}

/* Receives at least `least` bytes, and up to `most` if they are available. Returns the count;
 * 0: the peer is gone or silent for too long. idle: the scribe's file, in which a silence is used
 * (vn_scribe_file_idle), and the wait goes on; NULL: for the store. */
static size_t receive_bytes(int socket, void *data, size_t least, size_t most, vn_scribe_file *idle)
{
	char  *to = data;
	size_t got = 0;

	while (got < least) {
		const ssize_t n = recv(socket, to + got, most - got, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN && idle) {
			errno = 0; /* it is no failure, of which a later message would speak */
			vn_scribe_file_idle(idle);
			continue;
		}
		if (n <= 0)
			return 0;
		got += (size_t)n;
	}
	return got;
}

/* ---- the child ------------------------------------------------------------------------------- */

/* Signals from the terminal reach the whole group; the store handles them. */
static void settle_in(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
}

/* A message being received. The peer sends no other before this one is answered, so all available
 * bytes belong to it. */
typedef struct incoming_message {
	message_head head;
	char         body[4096 - sizeof(message_head)]; /* the start of the body; messages about tensors are shorter */
} incoming_message;

static bool receive_message(vn_scribe_file *f, int socket, vn_scribe_request *request, vn_message *m)
{
	incoming_message in;
	const size_t     got = receive_bytes(socket, &in, sizeof in.head, sizeof in, f), here = got - sizeof in.head;

	if (got == 0 || here > in.head.bytes || !(m->data = malloc(in.head.bytes + 1)))
		return false;
	memcpy(m->data, in.body, here);
	m->n = m->room = in.head.bytes;
	*request = (vn_scribe_request)in.head.request;
	return here == m->n || receive_bytes(socket, m->data + here, m->n - here, m->n - here, f) > 0;
}

/* Handles one message; returns false when the store is gone or the stream is out of step. */
static bool serve_request(vn_scribe_file *f, int socket)
{
	vn_scribe_request request;
	scribe_answer     a = { 0 };
	vn_message        m = { 0 };

	if (!receive_message(f, socket, &request, &m))
		return false;
	a.status = vn_scribe_file_do(f, request, &m, &a.value, &a.err);
	vn_message_finish(&m);
	return send_all(socket, &a, sizeof a, NULL, 0);
}

__attribute__((noreturn)) static void run_scribe(int socket, const vn_place *place, pid_t parent)
{
	vn_end_with_parent(SIGKILL);
	if (getppid() != parent)
		_exit(1);
	settle_in();
	const vn_sandbox box = { .pipe = socket, .file = place->fd, .writes = true, .talks = true };
	vn_sandbox_begin(&box);
	vn_scribe_file *f = vn_scribe_file_create(place->fd, place->partial); /* HDF5 comes up */
	vn_sandbox_close(&box);
	while (f && serve_request(f, socket))
		;
	_exit(f ? 0 : 1);
}

/* ---- the store's side ------------------------------------------------------------------------ */

vn_status vn_scribe_start(vn_scribe *s, const vn_place *place, vn_error *err)
{
	int ends[2];

	*s = (vn_scribe) { .pid = -1, .socket = -1, .path = place->partial };
	if (vn_socket_pair(ends) != 0)
		return vn_fail(err, VN_ERR_IO, "%s: cannot make a socket: %s", s->path, strerror(errno));
	setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval) { .tv_sec = SILENCE_S }, sizeof(struct timeval));
	setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval) { .tv_usec = VN_SCRIBE_SILENCE_MS * 1000 },
	           sizeof(struct timeval));
	const pid_t parent = getpid();
	s->pid = fork();
	if (s->pid == 0) {
		close(ends[0]);
		run_scribe(ends[1], place, parent);
	}
	close(ends[1]);
	s->socket = ends[0];
	if (s->pid < 0) {
		const vn_status st = vn_fail(err, VN_ERR_IO, "%s: cannot start a process to write it: %s", s->path,
		                             strerror(errno));
		vn_scribe_end(s);
		return st;
	}
	return VN_OK;
}

/* Ends the stream for the scribe even if a process that was forked from this one meanwhile still
 * has a copy of the socket: it would not see an end before that process ends, too. */
static void hang_up(vn_scribe *s)
{
	if (s->socket >= 0) {
		shutdown(s->socket, SHUT_RDWR);
		close(s->socket);
	}
	s->socket = -1;
}

void vn_scribe_end(vn_scribe *s)
{
	hang_up(s);
	if (s->pid > 0)
		while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
			;
	*s = (vn_scribe) { .pid = -1, .socket = -1 };
}

/* The scribe does not answer. Finds out why. */
static vn_status report_silence(vn_scribe *s, vn_error *err)
{
	int   status = 0;
	pid_t pid;

	hang_up(s);
	s->asked = false;
	while ((pid = waitpid(s->pid, &status, 0)) < 0 && errno == EINTR)
		;
	s->pid = -1;
	if (pid > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return vn_fail(err, VN_ERR_IO, "%s: the process that writes it was killed, usually for lack of memory",
		               s->path);
	if (pid > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		return vn_fail(
			err, VN_ERR_IO,
			"%s: writing it was stopped: the process that writes it used a system call that writing does not need",
			s->path);
	if (pid > 0 && WIFSIGNALED(status))
		return vn_fail(err, VN_ERR_IO, "%s: HDF5 crashed while writing it (signal %d), usually for lack of memory",
		               s->path, WTERMSIG(status));
	return vn_fail(err, VN_ERR_IO, "%s: HDF5 ended while writing it, usually for lack of memory", s->path);
}

vn_status vn_scribe_answer(vn_scribe *s, int64_t *value, vn_error *err)
{
	scribe_answer a;

	if (value)
		*value = 0;
	if (!s->asked)
		return VN_OK;
	s->asked = false;
	errno = 0;
	if (!receive_bytes(s->socket, &a, sizeof a, sizeof a, NULL)) {
		if (errno == EAGAIN)
			kill(s->pid, SIGKILL); /* silent for too long */
		return report_silence(s, err);
	}
	if (value)
		*value = a.value;
	if (a.status && err)
		*err = a.err;
	return a.status;
}

vn_status vn_scribe_ask(vn_scribe *s, vn_scribe_request request, vn_message *m, vn_error *err)
{
	const message_head h = { request, m->n };
	vn_status          st = VN_OK;

	assert(!s->asked);
	if (m->bad)
		st = vn_fail(err, VN_ERR_NOMEM, "%s: no memory", s->path);
	else if (s->socket < 0)
		st = vn_fail(err, VN_ERR_IO, "%s: the process that writes it has ended", s->path);
	else if (!send_all(s->socket, &h, sizeof h, m->data, m->n))
		st = report_silence(s, err);
	s->asked = !st;
	vn_message_finish(m);
	return st;
}

vn_status vn_scribe_do(vn_scribe *s, vn_scribe_request request, vn_message *m, int64_t *value, vn_error *err)
{
	const vn_status st = vn_scribe_ask(s, request, m, err);
	return st ? st : vn_scribe_answer(s, value, err);
}
