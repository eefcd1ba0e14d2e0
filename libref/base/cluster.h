/* cluster.h: shares numbered pieces of work among the processes that mpirun or srun started.
 *
 * The pieces are dealt to the ranks in turn, and rank 0 collects the answers. The answer to a piece
 * must not depend on the rank that works on it; then the result is the same for any number of
 * ranks. Each rank works in a child process, which is forked before MPI starts. If the child
 * crashes, or the kernel kills it because memory ran out, its rank reports that and ends the whole
 * run with exit status 2.
 *
 * Needs a build with -DVERNIER_MPI=ON; in any other build, vn_cluster_share fails.
 */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>

/* The texts of an answer, all allocated; an empty one is NULL or "". WORDS: the caller's own.
 * TROUBLE: vn_trouble_text, if the machine refused the worker something. OUT and ERR: what it wrote
 * on stdout and on stderr. */
enum {
	VN_CLUSTER_WORDS,
	VN_CLUSTER_TROUBLE,
	VN_CLUSTER_OUT,
	VN_CLUSTER_ERR,
	VN_CLUSTER_TEXTS,
	VN_CLUSTER_SENT = VN_CLUSTER_OUT
};
typedef struct vn_cluster_answer {
	int   status; /* its meaning is the caller's */
	char *text[VN_CLUSTER_TEXTS];
} vn_cluster_answer;

typedef struct vn_cluster_job {
	const char *command; /* for messages: "compare" */
	const char *instead; /* what to do in a build without MPI, half a sentence */
	int         n;       /* pieces */
	const int  *order;   /* (n): the order in which they are dealt */
	const char *same;    /* must be equal on all ranks: a digest of what is to be done */
	bool        again;   /* for vn_crew_share: what a worker does not finish is done by this process */
	/* Does piece i; fills the status and the words. Runs in the child process, if there is one. */
	void (*piece)(void *context, int i, vn_cluster_answer *answer);
	/* Takes its answer, in this process, in the order of the pieces; may change the texts, which
	 * are freed afterwards. */
	vn_status (*done)(void *context, int i, vn_cluster_answer *answer, vn_error *err);
	const char *(*name)(void *context, int i); /* for messages */
	void *context;
} vn_cluster_job;

/* Returns the number of processes that an MPI launcher started together, this one included; 1: it
 * was started alone. */
int vn_cluster_size(void);

/* Does the pieces together with the other ranks. When all are done, rank 0 prints what each printed
 * and calls `done`; on the others *first is false. A rank whose child process dies ends all
 * processes with status 2, without returning. VN_ERR_MISMATCH: a rank sees other work.
 * VN_ERR_UNSUPPORTED: built without MPI. Call it once in a process, before threads are started. */
vn_status vn_cluster_share(const vn_cluster_job *job, bool *first, vn_error *err);
