/* cluster_mpi.c: sharing work with MPI; see cluster.h. */
#include "libref/base/cluster.h"

#include "libref/base/progress.h"
#include "libref/base/worker.h"

#include <errno.h>
#include <mpi.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NONE = -1, TAG_ANSWER = 1, TAG_PIECE = 2, PAUSE_MS = 1 };

/* What precedes the texts of an answer in a message. piece NONE: the first message, whose first
 * text is job->same. */
typedef struct mpi_head {
	int piece, status, bytes[VN_CLUSTER_TEXTS];
} mpi_head;

typedef struct mpi_rank {
	const vn_cluster_job *job;
	int                   own, size;
	vn_worker             worker;
	vn_cluster_answer    *answer; /* (n) on rank 0 */
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
	if (r->worker.pid > 0) {
		kill(r->worker.pid, SIGTERM);
		waitpid(r->worker.pid, NULL, 0);
	}
	MPI_Abort(MPI_COMM_WORLD, 2);
	_exit(2);
}

__attribute__((noreturn)) static void worker_died(mpi_rank *r)
{
	int      how = 0;
	vn_error why;

	waitpid(r->worker.pid, &how, 0);
	r->worker.pid = -1;
	vn_worker_ended(r->job->name(r->job->context, r->worker.piece), how, &why);
	give_up(r, "%s", why.text);
}

static void begin_piece(mpi_rank *r, int piece)
{
	if (!vn_worker_begin(&r->worker, piece))
		worker_died(r);
}

/* Waits for the worker's answer. */
static vn_cluster_answer finish_piece(mpi_rank *r)
{
	vn_cluster_answer a = { 0 };

	if (!vn_worker_answer(&r->worker, &a) && errno)
		give_up(r, "no memory for the outcome of %s", r->job->name(r->job->context, r->worker.piece));
	if (r->worker.piece != NONE)
		worker_died(r);
	return a;
}

/* ---- the ranks ----------------------------------------------------------------------------- */

static void take_answer(const mpi_rank *r, const char *whole)
{
	mpi_head    h;
	const char *p = whole + sizeof h;

	memcpy(&h, whole, sizeof h);
	r->answer[h.piece].status = h.status;
	for (int k = 0; k < VN_CLUSTER_TEXTS; k++) {
		if (!(r->answer[h.piece].text[k] = strndup(p, (size_t)h.bytes[k])))
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
static bool serve_message(const mpi_rank *r, int *next, int *done, int *left)
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
		check_same(r, from.MPI_SOURCE, message + sizeof(mpi_head), (size_t)bytes - sizeof(mpi_head));
	} else {
		take_answer(r, message);
		++*done;
	}
	free(message);
	piece = *next < r->job->n ? r->job->order[(*next)++] : NONE;
	*left -= piece == NONE;
	MPI_Send(&piece, 1, MPI_INT, from.MPI_SOURCE, TAG_PIECE, MPI_COMM_WORLD);
	return true;
}

static void hand_out(mpi_rank *r)
{
	int         next = 0, done = 0, left = r->size - 1;
	vn_progress bar = { 0 };

	vn_progress_start(&bar, "pair", r->job->n);
	while (done < r->job->n || left > 0) {
		if (r->worker.piece == NONE && next < r->job->n)
			begin_piece(r, r->job->order[next++]);
		if (serve_message(r, &next, &done, &left))
			continue;
		const int     own = r->worker.piece;
		struct pollfd on = { .fd = own == NONE ? -1 : r->worker.talk, .events = POLLIN };
		if (poll(&on, 1, PAUSE_MS) > 0) {
			r->answer[own] = finish_piece(r);
			done++;
		}
		vn_progress_at(&bar, done);
	}
	vn_progress_stop(&bar);
}

/* A message to rank 0: the head, then the texts. The caller frees it. */
static char *message_of(const mpi_rank *r, int piece, const vn_cluster_answer *a, size_t *bytes)
{
	mpi_head h = { .piece = piece, .status = a->status };

	*bytes = sizeof h;
	for (int k = 0; k < VN_CLUSTER_TEXTS; k++)
		*bytes += (size_t)(h.bytes[k] = a->text[k] ? (int)strlen(a->text[k]) : 0);
	char *whole = malloc(*bytes), *to = whole;
	if (!whole)
		give_up(r, "no memory for a message");
	memcpy(to, &h, sizeof h);
	to += sizeof h;
	for (int k = 0; k < VN_CLUSTER_TEXTS; to += h.bytes[k++])
		memcpy(to, a->text[k] ? a->text[k] : "", (size_t)h.bytes[k]);
	return whole;
}

static void ask_for_work(mpi_rank *r)
{
	/* the first message */
	vn_cluster_answer a = { .text = { strdup(r->job->same) } };
	int               piece = NONE;

	for (;;) {
		size_t bytes;
		char  *message = message_of(r, piece, &a, &bytes);
		vn_answer_free(&a);
		MPI_Send(message, (int)bytes, MPI_BYTE, 0, TAG_ANSWER, MPI_COMM_WORLD);
		free(message);
		MPI_Recv(&piece, 1, MPI_INT, 0, TAG_PIECE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (piece == NONE)
			return;
		begin_piece(r, piece);
		a = finish_piece(r);
	}
}

/* Prints the answers and hands them on, in the order of the pieces. */
static vn_status deliver_answers(const mpi_rank *r, vn_error *err)
{
	vn_status st = VN_OK;

	for (int i = 0; i < r->job->n; i++) {
		if (!st) {
			vn_answer_print(&r->answer[i]);
			st = r->job->done(r->job->context, i, &r->answer[i], err);
		}
		vn_answer_free(&r->answer[i]);
	}
	return st;
}

vn_status vn_cluster_share(const vn_cluster_job *job, bool *first, vn_error *err)
{
	mpi_rank  r = { .job = job };
	vn_status st = VN_OK;

	*first = false;
	fflush(stdout);
	fflush(stderr);
	if (!(r.answer = calloc((size_t)job->n + 1, sizeof *r.answer)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d pieces of work", job->n);
	if (!vn_worker_fork(&r.worker, false)) {
		free(r.answer);
		return vn_fail(err, VN_ERR_IO, "cannot start a process: %s", strerror(errno));
	}
	if (r.worker.pid == 0)
		vn_worker_run(&r.worker, job);
	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &r.own);
	MPI_Comm_size(MPI_COMM_WORLD, &r.size);
	*first = r.own == 0;
	if (*first)
		hand_out(&r);
	else
		ask_for_work(&r);
	vn_worker_close(&r.worker);
	waitpid(r.worker.pid, NULL, 0);
	MPI_Finalize();
	if (*first)
		st = deliver_answers(&r, err);
	free(r.answer);
	return st;
}
