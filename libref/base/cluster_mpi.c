/* cluster_mpi.c: sharing work with MPI; see cluster.h. */
#include "libref/base/cluster.h"

#include "libref/base/alloc.h"
#include "libref/base/progress.h"
#include "libref/base/worker.h"

#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TAG_SAME, TAG_ANSWER, PAUSE_NS = 1000000 };

/* What precedes the texts of an answer in a message. */
typedef struct mpi_head {
	int status, bytes[VN_CLUSTER_TEXTS];
} mpi_head;

typedef struct mpi_rank {
	const vn_cluster_job *job;
	int                   own, size;
	vn_worker             worker;
	vn_cluster_answer    *answer; /* (n) those of this rank */
	int                  *whose;  /* (n) the rank of a piece */
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

/* Does a piece in the worker. */
static void do_piece(mpi_rank *r, int i)
{
	const char *name = r->job->name(r->job->context, i);
	int         how = 0;
	vn_error    why;

	if (vn_worker_begin(&r->worker, i) && vn_worker_answer(&r->worker, &r->answer[i]))
		return;
	if (errno)
		give_up(r, "no memory for the outcome of %s", name);
	waitpid(r->worker.pid, &how, 0);
	r->worker.pid = -1;
	vn_worker_ended(name, how, &why);
	give_up(r, "%s", why.text);
}

/* The pieces are dealt in their order: every rank knows which are its own. */
static void do_own(mpi_rank *r)
{
	VN_ENDS(vn_progress_stop) vn_progress bar = { 0 };

	if (r->own == 0)
		vn_progress_start(&bar, "pair", (r->job->n + r->size - 1) / r->size);
	for (int k = 0; k < r->job->n; k++) {
		const int i = r->job->order[k];
		r->whose[i] = k % r->size;
		if (r->whose[i] == r->own) {
			do_piece(r, i);
			vn_progress_at(&bar, k / r->size + 1);
		}
	}
}

/* ---- messages to rank 0 ---------------------------------------------------------------------- */

/* Returns a message, to be freed. MPI_Recv would use a processor while it waits. */
static char *receive(int from, int tag, int *bytes)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	MPI_Status            is;
	int                   there = 0;

	while (MPI_Iprobe(from, tag, MPI_COMM_WORLD, &there, &is), !there)
		nanosleep(&pause, NULL);
	MPI_Get_count(&is, MPI_BYTE, bytes);
	char *message = vn_alloc((size_t)*bytes + 1, 1);
	MPI_Recv(message, *bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return message;
}

/* Each rank says what it thinks is to be done. */
static void check_same(const mpi_rank *r)
{
	const char *same = r->job->same;
	const int   n = (int)strlen(same);

	if (r->own)
		MPI_Send(same, n, MPI_BYTE, 0, TAG_SAME, MPI_COMM_WORLD);
	for (int of = 1; r->own == 0 && of < r->size; of++) {
		int            bytes;
		VN_FREED char *other = receive(of, TAG_SAME, &bytes);
		if (bytes != n || memcmp(other, same, (size_t)n) != 0)
			give_up(r, "rank %d sees other files, or was started with other options", of);
	}
}

static void send_answer(const vn_cluster_answer *a)
{
	mpi_head h = { .status = a->status };
	size_t   bytes = sizeof h;

	for (int k = 0; k < VN_CLUSTER_TEXTS; k++)
		bytes += (size_t)(h.bytes[k] = a->text[k] ? (int)strlen(a->text[k]) : 0);
	char *whole = vn_alloc(bytes, 1), *to = whole + sizeof h;
	memcpy(whole, &h, sizeof h);
	for (int k = 0; k < VN_CLUSTER_TEXTS; to += h.bytes[k++])
		memcpy(to, a->text[k] ? a->text[k] : "", (size_t)h.bytes[k]);
	MPI_Send(whole, (int)bytes, MPI_BYTE, 0, TAG_ANSWER, MPI_COMM_WORLD);
	free(whole);
}

/* A rank sends its answers in the order of the pieces. */
static void receive_answer(int from, vn_cluster_answer *a)
{
	mpi_head h;
	int      bytes;
	char    *whole = receive(from, TAG_ANSWER, &bytes), *p = whole + sizeof h;

	memcpy(&h, whole, sizeof h);
	a->status = h.status;
	for (int k = 0; k < VN_CLUSTER_TEXTS; p += h.bytes[k++])
		a->text[k] = vn_alloc_check(strndup(p, (size_t)h.bytes[k]));
	free(whole);
}

/* Rank 0 prints the answers and hands them on, in the order of the pieces. */
static vn_status hand_on(mpi_rank *r, vn_error *err)
{
	vn_status st = VN_OK;

	for (int i = 0; i < r->job->n; i++) {
		vn_cluster_answer *a = &r->answer[i];
		if (r->own && r->whose[i] == r->own)
			send_answer(a);
		if (r->own == 0 && r->whose[i])
			receive_answer(r->whose[i], a);
		if (r->own == 0 && !st) {
			vn_answer_print(a);
			st = r->job->done(r->job->context, i, a, err);
		}
		vn_answer_free(a);
	}
	return st;
}

vn_status vn_cluster_share(const vn_cluster_job *job, bool *first, vn_error *err)
{
	const size_t n = (size_t)job->n;
	mpi_rank     r = { .job = job,
		               .answer = vn_alloc_zero(n, sizeof *r.answer),
		               .whose = vn_alloc_zero(n, sizeof *r.whose) };
	vn_status    st;

	fflush(stdout);
	fflush(stderr);
	*first = false;
	if (!vn_worker_fork(&r.worker, false)) {
		st = vn_fail(err, VN_ERR_IO, "cannot start a process: %s", strerror(errno));
	} else {
		if (r.worker.pid == 0)
			vn_worker_run(&r.worker, job);
		MPI_Init(NULL, NULL);
		MPI_Comm_rank(MPI_COMM_WORLD, &r.own);
		MPI_Comm_size(MPI_COMM_WORLD, &r.size);
		*first = r.own == 0;
		check_same(&r);
		do_own(&r);
		vn_worker_close(&r.worker);
		waitpid(r.worker.pid, NULL, 0);
		st = hand_on(&r, err);
		MPI_Finalize();
	}
	VN_FREE(r.answer, r.whose);
	return st;
}
