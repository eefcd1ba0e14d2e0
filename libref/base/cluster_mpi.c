/* cluster_mpi.c: sharing work with MPI; see cluster.h. */
#include "libref/base/cluster.h"

#include "libref/base/progress.h"
#include "libref/base/socket.h"

#include <errno.h>
#include <mpi.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NONE = -1, TAG_ANSWER = 1, TAG_PIECE = 2, PAUSE_MS = 1 };

/* What precedes the texts of an answer, in a pipe and in a message. */
typedef struct mpi_head {
	int piece, status, bytes[VN_CLUSTER_TEXTS];
} mpi_head;

/* ---- the child process that works --------------------------------------------------------- */

/* Takes what was written into the file, as a text, and empties it. NULL: no memory. */
static char *take_text(int fd)
{
	const off_t bytes = lseek(fd, 0, SEEK_END);
	char       *text = bytes >= 0 ? calloc((size_t)bytes + 1, 1) : NULL;

	if (text && pread(fd, text, (size_t)bytes, 0) != bytes) {
		free(text);
		text = NULL;
	}
	if (ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* The worker's loop, which never returns. What a piece prints is kept apart from the output of
 * other pieces. */
static void run_worker(const vn_cluster_job *job, int fd)
{
	const int out = memfd_create("out", 0), said = memfd_create("err", 0);
	int       i;

	prctl(PR_SET_PDEATHSIG, SIGTERM); /* so that it removes its temporary files */
	if (out < 0 || said < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(said, STDERR_FILENO) < 0)
		_exit(2);
	while (vn_socket_get(fd, &i, sizeof i)) {
		vn_cluster_answer a = { 0 };
		mpi_head          h = { .piece = i };
		job->piece(job->context, i, &a);
		fflush(stdout);
		fflush(stderr);
		a.text[VN_CLUSTER_OUT] = take_text(STDOUT_FILENO);
		a.text[VN_CLUSTER_ERR] = take_text(STDERR_FILENO);
		h.status = a.status;
		for (int k = 0; k < VN_CLUSTER_TEXTS; k++) {
			if (!a.text[k] && !(a.text[k] = strdup("")))
				_exit(2);
			h.bytes[k] = (int)strlen(a.text[k]);
		}
		bool sent = vn_socket_put(fd, &h, sizeof h);
		for (int k = 0; k < VN_CLUSTER_TEXTS; k++) {
			sent = sent && vn_socket_put(fd, a.text[k], (size_t)h.bytes[k]);
			free(a.text[k]);
		}
		if (!sent)
			break;
	}
	_exit(0);
}

typedef struct mpi_rank {
	const vn_cluster_job *job;
	int                   own, size;
	pid_t                 worker;
	int                   fd;   /* to the worker */
	int                   busy; /* the piece that it does, or NONE */
} mpi_rank;

static const char *host_name(void)
{
	static char name[MPI_MAX_PROCESSOR_NAME];
	int         n;

	if (!*name)
		MPI_Get_processor_name(name, &n);
	return name;
}

/* Ends all ranks. */
__attribute__((noreturn, format(printf, 2, 3))) static void give_up(const mpi_rank *r, const char *format, ...)
{
	va_list args;
	char    why[400];

	va_start(args, format);
	vsnprintf(why, sizeof why, format, args);
	va_end(args);
	fprintf(stderr, "vernier %s: rank %d on %s: %s\n", r->job->command, r->own, host_name(), why);
	fflush(stderr);
	if (r->worker > 0) {
		kill(r->worker, SIGTERM);
		waitpid(r->worker, NULL, 0);
	}
	MPI_Abort(MPI_COMM_WORLD, 2);
	_exit(2);
}

__attribute__((noreturn)) static void worker_died(mpi_rank *r)
{
	int         how = 0;
	const char *name = r->busy == NONE ? "its next piece" : r->job->name(r->job->context, r->busy);

	waitpid(r->worker, &how, 0);
	r->worker = 0;
	if (WIFSIGNALED(how))
		give_up(r, "%s is not finished: its process was killed by signal %d (%s)", name, WTERMSIG(how),
		        strsignal(WTERMSIG(how)));
	give_up(r, "%s is not finished: its process ended with status %d", name, WEXITSTATUS(how));
}

static void begin_piece(mpi_rank *r, int piece)
{
	r->busy = piece;
	if (!vn_socket_put(r->fd, &piece, sizeof piece))
		worker_died(r);
}

/* Waits for the worker's answer, in the form in which it is sent to rank 0: the head, followed by
 * the texts. The caller frees it. */
static char *finish_piece(mpi_rank *r, size_t *bytes)
{
	mpi_head h;

	if (!vn_socket_get(r->fd, &h, sizeof h))
		worker_died(r);
	*bytes = sizeof h;
	for (int k = 0; k < VN_CLUSTER_TEXTS; k++)
		*bytes += (size_t)h.bytes[k];
	char *whole = malloc(*bytes);
	if (!whole)
		give_up(r, "no memory for the outcome of %s", r->job->name(r->job->context, r->busy));
	memcpy(whole, &h, sizeof h);
	if (!vn_socket_get(r->fd, whole + sizeof h, *bytes - sizeof h))
		worker_died(r);
	r->busy = NONE;
	return whole;
}

/* ---- the ranks ----------------------------------------------------------------------------- */

static void take_answer(const mpi_rank *r, const char *whole, vn_cluster_answer *answer)
{
	mpi_head    h;
	const char *p = whole + sizeof h;

	memcpy(&h, whole, sizeof h);
	answer[h.piece].status = h.status;
	for (int k = 0; k < VN_CLUSTER_TEXTS; k++) {
		if (!(answer[h.piece].text[k] = strndup(p, (size_t)h.bytes[k])))
			give_up(r, "no memory for the outcome of %s", r->job->name(r->job->context, h.piece));
		p += h.bytes[k];
	}
}

/* A rank that asks for its first piece says what it thinks is to be done. */
static void check_same(const mpi_rank *r, int of, const char *same, size_t bytes)
{
	if (bytes != strlen(r->job->same) || memcmp(same, r->job->same, bytes) != 0)
		give_up(r, "rank %d sees other files, or was started with other options", of);
}

/* Receives one message, if there is one. Returns whether there was.
 * Sends the next piece, or NONE. */
static bool serve_message(const mpi_rank *r, vn_cluster_answer *answer, int *next, int *done, int *left)
{
	MPI_Status from;
	int        there, bytes, piece;

	MPI_Iprobe(MPI_ANY_SOURCE, TAG_ANSWER, MPI_COMM_WORLD, &there, &from);
	if (!there)
		return false;
	MPI_Get_count(&from, MPI_BYTE, &bytes);
	char *message = malloc((size_t)bytes + 1);
	if (!message)
		give_up(r, "no memory for a message of rank %d", from.MPI_SOURCE);
	MPI_Recv(message, bytes, MPI_BYTE, from.MPI_SOURCE, TAG_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	memcpy(&piece, message, sizeof piece);
	if (piece == NONE) {
		check_same(r, from.MPI_SOURCE, message + sizeof piece, (size_t)bytes - sizeof piece);
	} else {
		take_answer(r, message, answer);
		++*done;
	}
	free(message);
	piece = *next < r->job->n ? r->job->order[(*next)++] : NONE;
	*left -= piece == NONE;
	MPI_Send(&piece, 1, MPI_INT, from.MPI_SOURCE, TAG_PIECE, MPI_COMM_WORLD);
	return true;
}

static void hand_out(mpi_rank *r, vn_cluster_answer *answer)
{
	int         next = 0, done = 0, left = r->size - 1;
	vn_progress bar = { 0 };

	vn_progress_start(&bar, "pair", r->job->n);
	while (done < r->job->n || left > 0) {
		if (r->busy == NONE && next < r->job->n)
			begin_piece(r, r->job->order[next++]);
		if (serve_message(r, answer, &next, &done, &left))
			continue;
		struct pollfd own = { .fd = r->busy == NONE ? -1 : r->fd, .events = POLLIN };
		if (poll(&own, 1, PAUSE_MS) > 0) {
			size_t bytes;
			char  *whole = finish_piece(r, &bytes);
			take_answer(r, whole, answer);
			free(whole);
			done++;
		}
		vn_progress_at(&bar, done);
	}
	vn_progress_stop(&bar);
}

static void ask_for_work(mpi_rank *r)
{
	const size_t length = strlen(r->job->same);
	size_t       bytes = sizeof(int) + length;
	char        *message = malloc(bytes);
	int          piece = NONE;

	if (!message)
		give_up(r, "no memory for a message");
	memcpy(message, &piece, sizeof piece);
	memcpy(message + sizeof piece, r->job->same, length);
	for (;;) {
		MPI_Send(message, (int)bytes, MPI_BYTE, 0, TAG_ANSWER, MPI_COMM_WORLD);
		free(message);
		MPI_Recv(&piece, 1, MPI_INT, 0, TAG_PIECE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (piece == NONE)
			return;
		begin_piece(r, piece);
		message = finish_piece(r, &bytes);
	}
}

vn_status vn_cluster_share(const vn_cluster_job *job, vn_cluster_answer *answer, bool *first, vn_error *err)
{
	mpi_rank r = { .job = job, .busy = NONE };
	int      pair[2];

	*first = false;
	fflush(stdout);
	fflush(stderr);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return vn_fail(err, VN_ERR_IO, "cannot make a pipe: %s", strerror(errno));
	if ((r.worker = fork()) < 0) {
		close(pair[0]);
		close(pair[1]);
		return vn_fail(err, VN_ERR_IO, "cannot start a process: %s", strerror(errno));
	}
	if (r.worker == 0) {
		close(pair[0]);
		run_worker(job, pair[1]);
	}
	close(pair[1]);
	r.fd = pair[0];
	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &r.own);
	MPI_Comm_size(MPI_COMM_WORLD, &r.size);
	*first = r.own == 0;
	if (*first)
		hand_out(&r, answer);
	else
		ask_for_work(&r);
	close(r.fd);
	waitpid(r.worker, NULL, 0);
	MPI_Finalize();
	return VN_OK;
}
