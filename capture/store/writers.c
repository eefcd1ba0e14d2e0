/* writers.c: see writers.h. */
#include "capture/store/writers.h"

#include "capture/file/disk.h"
#include "libref/base/trouble.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 4, MOST = 2 * THREADS, STACK = 256 * 1024 };

typedef struct write_job {
	vn_block   *block;
	int64_t     at;
	const char *object;
} write_job;

struct vn_writers {
	int             fd;
	const char     *path;
	vn_queue       *queue;
	pthread_t       thread[THREADS];
	int             n_threads;
	pthread_mutex_t lock; /* of the rest */
	pthread_cond_t  posted, written;
	write_job       job[MOST]; /* posted and not taken: n of them from `first` on, in a circle */
	int             first, n, busy;
	bool            over;
	vn_status       status; /* the first failure */
	vn_error        err;
};

static void *write_jobs(void *writers)
{
	vn_writers *w = writers;
	vn_disk     disk;

	vn_disk_open(&disk, w->fd, w->path);
	pthread_mutex_lock(&w->lock);
	for (;;) {
		while (!w->n && !w->over)
			pthread_cond_wait(&w->posted, &w->lock);
		if (!w->n)
			break;
		const write_job j = w->job[w->first];
		w->first = (w->first + 1) % MOST;
		w->n--;
		w->busy++;
		pthread_mutex_unlock(&w->lock);
		vn_error        err;
		const vn_status st = vn_disk_write(&disk, j.object, j.block->data, j.block->used, j.at, &err);
		vn_queue_give_back(w->queue, j.block);
		pthread_mutex_lock(&w->lock);
		if (st && !w->status) {
			w->status = st;
			w->err = err;
		}
		w->busy--;
		pthread_cond_broadcast(&w->written);
	}
	pthread_mutex_unlock(&w->lock);
	vn_disk_close(&disk);
	return NULL;
}

static void free_writers(vn_writers *w)
{
	pthread_cond_destroy(&w->written);
	pthread_cond_destroy(&w->posted);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

vn_writers *vn_writers_create(int fd, const char *path, vn_queue *q)
{
	pthread_attr_t small;

	vn_trouble_spare(true); /* without them the storing thread writes */
	vn_writers *w = calloc(1, sizeof *w);
	if (w) {
		w->fd = fd;
		w->path = path;
		w->queue = q;
		pthread_mutex_init(&w->lock, NULL);
		pthread_cond_init(&w->posted, NULL);
		pthread_cond_init(&w->written, NULL);
		pthread_attr_init(&small);
		pthread_attr_setstacksize(&small, STACK);
		while (w->n_threads < THREADS && pthread_create(&w->thread[w->n_threads], &small, write_jobs, w) == 0)
			w->n_threads++;
		pthread_attr_destroy(&small);
	}
	if (w && w->n_threads == 0) {
		free_writers(w);
		w = NULL;
	}
	vn_trouble_spare(false);
	return w;
}

void vn_writers_destroy(vn_writers *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->over = true;
	pthread_cond_broadcast(&w->posted);
	pthread_mutex_unlock(&w->lock);
	for (int i = 0; i < w->n_threads; i++)
		pthread_join(w->thread[i], NULL);
	free_writers(w);
}

void vn_writers_post(vn_writers *w, vn_block *b, int64_t at, const char *object)
{
	vn_queue_hold(w->queue, b);
	pthread_mutex_lock(&w->lock);
	while (w->n == MOST)
		pthread_cond_wait(&w->written, &w->lock);
	w->job[(w->first + w->n++) % MOST] = (write_job) { b, at, object };
	pthread_cond_signal(&w->posted);
	pthread_mutex_unlock(&w->lock);
}

vn_status vn_writers_wait(vn_writers *w, vn_error *err)
{
	pthread_mutex_lock(&w->lock);
	while (w->n || w->busy)
		pthread_cond_wait(&w->written, &w->lock);
	const vn_status st = w->status;
	if (st && err)
		*err = w->err;
	w->status = VN_OK;
	pthread_mutex_unlock(&w->lock);
	return st;
}
