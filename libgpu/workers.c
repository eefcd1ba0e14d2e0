/* workers.c: see workers.h. */
#include "libgpu/workers.h"

#include "libref/base/signals.h"
#include "libref/base/system.h"
#include "libref/base/trouble.h"

#include <signal.h>
#include <time.h>

#define TICK 100000000 /* ns */

int vn_workers_count(int n, int threads)
{
	const int wanted = threads > 0 ? threads : vn_processors();
	const int most = wanted < VN_WORKERS_MAX ? wanted : VN_WORKERS_MAX;

	return n < 1 ? 1 : n < most ? n : most;
}

static void *run_worker(void *ctx)
{
	vn_workers *w = ctx;

	pthread_mutex_lock(&w->lock);
	const int self = w->named++;
	while (!w->over && w->taken < w->n) {
		const int piece = w->taken++;
		pthread_mutex_unlock(&w->lock);
		const bool go_on = w->work(w->ctx, piece, self);
		pthread_mutex_lock(&w->lock);
		w->over = w->over || !go_on;
		w->order[w->done++] = piece;
		pthread_cond_signal(&w->news);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* The new threads block all signals, so that older threads handle them. */
void vn_workers_start(vn_workers *w, int n, int threads, bool (*work)(void *ctx, int piece, int worker), void *ctx)
{
	const int want = vn_workers_count(n, threads);
	sigset_t  all, before;

	*w = (vn_workers) {
		.work = work, .ctx = ctx, .n = n, .lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER
	};
	vn_trouble_spare(true); /* with fewer threads it takes longer */
	vn_signals_of_others(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (w->threads < want && pthread_create(&w->thread[w->threads], NULL, run_worker, w) == 0)
		w->threads++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	vn_trouble_spare(false);
}

int vn_workers_next(vn_workers *w, int seen)
{
	struct timespec until;
	int             piece;

	if (w->threads == 0)
		run_worker(w);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (until.tv_nsec + TICK) / 1000000000;
	until.tv_nsec = (until.tv_nsec + TICK) % 1000000000;
	pthread_mutex_lock(&w->lock);
	if (w->done == seen && !w->over)
		pthread_cond_timedwait(&w->news, &w->lock, &until);
	piece = w->over ? VN_WORK_OVER : w->done > seen ? w->order[seen] : VN_WORK_NOT_YET;
	pthread_mutex_unlock(&w->lock);
	return piece;
}

void vn_workers_stop(vn_workers *w)
{
	pthread_mutex_lock(&w->lock);
	w->over = true;
	pthread_mutex_unlock(&w->lock);
	for (int i = 0; i < w->threads; i++)
		pthread_join(w->thread[i], NULL);
}
