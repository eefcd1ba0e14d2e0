/* worker.h: a process, forked from this one, that does pieces of a job one after another.
 *
 * What it prints during a piece goes into files in memory, which this process reads with the
 * answer, or after the worker has died.
 */
#pragma once

#include "libref/base/cluster.h"

#include <sys/types.h>

typedef struct vn_worker {
	pid_t pid;     /* -1: it has ended */
	int   talk;    /* a socket: pieces to it, answers from it; -1: closed */
	int   said[2]; /* its stdout and stderr; said[1] is -1 where both are one file */
	int   piece;   /* the piece that it works on; -1: none */
} vn_worker;

/* Forks a worker. one: its stdout and stderr are one file, which keeps their order. pid is 0 in the
 * worker, which calls vn_worker_run when it is ready. Returns false if there is none. A worker
 * whose parent is gone gets SIGTERM, so that it removes its temporary files. */
bool                           vn_worker_fork(vn_worker *w, bool one);
__attribute__((noreturn)) void vn_worker_run(const vn_worker *w, const vn_cluster_job *job);

/* Give it a piece; wait for its answer, with OUT and ERR. The caller frees the texts, also after a
 * failure. They return false with errno; 0: the worker has ended. */
bool vn_worker_begin(vn_worker *w, int piece);
bool vn_worker_answer(vn_worker *w, vn_cluster_answer *a);
/* Takes what it has printed so far. Returns false with errno. */
bool vn_worker_output(const vn_worker *w, vn_cluster_answer *a);
/* Prints OUT and ERR of an answer, and notes its TROUBLE. */
void vn_answer_print(const vn_cluster_answer *a);

/* Says how it ended, of which `status` is what waitpid gives. Returns VN_ERR_NOMEM. */
vn_status vn_worker_ended(const char *piece, int status, vn_error *err);
void      vn_worker_close(vn_worker *w); /* its files, here */
void      vn_answer_free(vn_cluster_answer *a);
