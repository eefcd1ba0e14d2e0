/* workers.h: threads that take numbered pieces of work in order. Inside libgpu only.
 *
 * Threads  start, next and stop from one thread; work is called from several.
 * Errors   none: if no thread can be started, the calling thread works in vn_workers_next.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

enum {
	VN_WORK_MAX = 4096,   /* pieces */
	VN_WORKERS_MAX = 16,  /* 8 copy to an H200 about as fast */
	VN_WORK_NOT_YET = -1, /* of vn_workers_next */
	VN_WORK_OVER = -2,
};

typedef struct vn_workers {
	/* Does one piece; worker: 0 to vn_workers_count - 1. Returns false if no more is to be
	 * taken. */
	bool (*work)(void *ctx, int piece, int worker);
	void           *ctx;
	int             n;
	pthread_t       thread[VN_WORKERS_MAX];
	int             threads;
	pthread_mutex_t lock; /* of the rest */
	pthread_cond_t  news;
	int             named, taken, done;
	int             order[VN_WORK_MAX]; /* (done): pieces, as they were done */
	bool            over;
} vn_workers;

/* Returns how many workers n pieces can use. threads: the most to use; 0: one per processor. */
int  vn_workers_count(int n, int threads);
/* Starts workers for n pieces (at most VN_WORK_MAX): `threads` of them, or fewer if the system
 * refuses. w and ctx must live until stop. */
void vn_workers_start(vn_workers *w, int n, int threads, bool (*work)(void *ctx, int piece, int worker), void *ctx);
/* Returns the piece that was done as number `seen` (from 0). Waits for it up to a tenth of a
 * second. VN_WORK_OVER: a piece has ended the work. */
int  vn_workers_next(vn_workers *w, int seen);
/* Lets the workers end, after the pieces in hand. */
void vn_workers_stop(vn_workers *w);
