/* worker.c: see worker.h. */
#include "libref/base/worker.h"

#include "libref/base/progress.h"
#include "libref/base/system.h"
#include "libref/base/trouble.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- whole messages -------------------------------------------------------------------------- */

/* Send, or receive, exactly `bytes` bytes. On failure they return false and set errno; errno 0: the
 * other process has ended. */
static bool put_bytes(int fd, const void *data, size_t bytes)
{
	for (const char *p = data; bytes;) {
		const ssize_t n = send(fd, p, bytes, VN_SEND_FLAGS);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n == 0 || errno == EPIPE ? 0 : errno;
			return false;
		}
		p += n;
		bytes -= (size_t)n;
	}
	return true;
}

static bool get_bytes(int fd, void *data, size_t bytes)
{
	for (char *p = data; bytes;) {
		const ssize_t n = recv(fd, p, bytes, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n == 0 || errno == ECONNRESET ? 0 : errno;
			return false;
		}
		p += n;
		bytes -= (size_t)n;
	}
	return true;
}

/* ---- both sides ------------------------------------------------------------------------------ */

/* The head of an answer, before its texts. */
typedef struct answer_head {
	int status, bytes[VN_CLUSTER_SENT];
} answer_head;

void vn_answer_free(vn_cluster_answer *a)
{
	for (int k = 0; k < VN_CLUSTER_TEXTS; k++) {
		free(a->text[k]);
		a->text[k] = NULL;
	}
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void vn_worker_close(vn_worker *w)
{
	close_one(&w->talk);
	close_one(&w->said[0]);
	close_one(&w->said[1]);
}

bool vn_worker_fork(vn_worker *w, bool one)
{
	const pid_t parent = getpid();
	int         talk[2];

	*w = (vn_worker) {
		.pid = -1, .talk = -1, .said = { vn_memory_file("out"), one ? -1 : vn_memory_file("err") }, .piece = -1
	};
	if (w->said[0] >= 0 && (one || w->said[1] >= 0) && vn_socket_pair(talk) == 0) {
		w->pid = fork();
		w->talk = talk[w->pid == 0];
		close(talk[w->pid != 0]);
	}
	if (w->pid < 0)
		vn_worker_close(w);
	else if (w->pid == 0 && (!vn_end_with_parent(SIGTERM) || getppid() != parent))
		_exit(2);
	return w->pid >= 0;
}

/* ---- in the worker --------------------------------------------------------------------------- */

static bool send_answer(int talk, const vn_cluster_answer *a)
{
	answer_head h = { .status = a->status };

	for (int k = 0; k < VN_CLUSTER_SENT; k++)
		h.bytes[k] = a->text[k] ? (int)strlen(a->text[k]) : 0;
	bool sent = put_bytes(talk, &h, sizeof h);
	for (int k = 0; sent && k < VN_CLUSTER_SENT; k++)
		sent = put_bytes(talk, a->text[k], (size_t)h.bytes[k]);
	return sent;
}

void vn_worker_run(const vn_worker *w, const vn_cluster_job *job)
{
	int piece;

	if (dup2(w->said[0], STDOUT_FILENO) < 0 || dup2(w->said[w->said[1] >= 0], STDERR_FILENO) < 0)
		_exit(2);
	vn_progress_off();
	while (get_bytes(w->talk, &piece, sizeof piece)) {
		VN_ENDS(vn_answer_free) vn_cluster_answer a = { 0 };
		job->piece(job->context, piece, &a);
		a.text[VN_CLUSTER_TROUBLE] = vn_trouble_text() ? strdup(vn_trouble_text()) : NULL;
		if (fflush(stdout) != 0 || ferror(stdout) || fflush(stderr) != 0 || !send_answer(w->talk, &a))
			_exit(2);
	}
	_exit(0);
}

/* ---- in this process ------------------------------------------------------------------------- */

bool vn_worker_begin(vn_worker *w, int piece)
{
	w->piece = piece;
	return put_bytes(w->talk, &piece, sizeof piece);
}

/* Takes the text of a file, and empties it. */
static char *take_text(int fd)
{
	const off_t bytes = lseek(fd, 0, SEEK_END);
	char       *text = bytes >= 0 ? calloc((size_t)bytes + 1, 1) : NULL;

	for (off_t at = 0; text && at < bytes;) {
		ssize_t n;
		VN_UNINTERRUPTED(n, pread(fd, text + at, (size_t)(bytes - at), at));
		if (n <= 0) {
			free(text);
			return NULL;
		}
		at += n;
	}
	if (text && ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0)
		return text;
	free(text);
	return NULL;
}

bool vn_worker_output(const vn_worker *w, vn_cluster_answer *a)
{
	return (a->text[VN_CLUSTER_OUT] = take_text(w->said[0])) &&
	       (w->said[1] < 0 || (a->text[VN_CLUSTER_ERR] = take_text(w->said[1])));
}

bool vn_worker_answer(vn_worker *w, vn_cluster_answer *a)
{
	answer_head h;

	if (!get_bytes(w->talk, &h, sizeof h))
		return false;
	a->status = h.status;
	for (int k = 0; k < VN_CLUSTER_SENT; k++)
		if (!(a->text[k] = calloc((size_t)h.bytes[k] + 1, 1)) || !get_bytes(w->talk, a->text[k], (size_t)h.bytes[k]))
			return false;
	if (!vn_worker_output(w, a))
		return false;
	w->piece = -1;
	return true;
}

void vn_answer_print(const vn_cluster_answer *a)
{
	const char *trouble = a->text[VN_CLUSTER_TROUBLE];

	fputs(a->text[VN_CLUSTER_OUT] ? a->text[VN_CLUSTER_OUT] : "", stdout);
	fflush(stdout); /* keeps stdout before stderr */
	fputs(a->text[VN_CLUSTER_ERR] ? a->text[VN_CLUSTER_ERR] : "", stderr);
	fflush(stderr);
	if (trouble && *trouble)
		vn_trouble_note(trouble);
}

vn_status vn_worker_ended(const char *piece, int status, vn_error *err)
{
	if (WIFSIGNALED(status))
		return vn_fail(err, VN_ERR_NOMEM, "%s is not finished: its process was killed by signal %d (%s)", piece,
		               WTERMSIG(status), strsignal(WTERMSIG(status)));
	return vn_fail(err, VN_ERR_NOMEM, "%s is not finished: its process ended with status %d", piece,
	               WEXITSTATUS(status));
}
