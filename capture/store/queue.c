/* queue.c: see queue.h. */
#include "capture/store/queue.h"

#include "capture/file/disk.h"
#include "libref/base/room.h"
#include "libref/base/trouble.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct vn_queue {
	pthread_mutex_t lock;
	pthread_cond_t  posted, freed;
	vn_block       *first, **last; /* posted, oldest first */
	vn_block       *free;          /* freed blocks, most recent first */
	size_t          have, most;    /* blocks allocated; most allowed */
	size_t          busy;          /* posted or being filed */
	bool            closed;
};

vn_queue *vn_queue_create(size_t budget)
{
	vn_queue *q = calloc(1, sizeof *q);
	if (!q)
		return NULL;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->posted, NULL);
	pthread_cond_init(&q->freed, NULL);
	q->last = &q->first;
	q->most = budget / VN_BLOCK_BYTES ? budget / VN_BLOCK_BYTES : 1;
	return q;
}

void vn_block_free(vn_block *b)
{
	if (b)
		free(b->data);
	free(b);
}

void vn_queue_destroy(vn_queue *q)
{
	if (!q)
		return;
	assert(!q->first);
	while (q->free) {
		vn_block *b = q->free;
		q->free = b->next;
		vn_block_free(b);
	}
	pthread_cond_destroy(&q->freed);
	pthread_cond_destroy(&q->posted);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

enum { LEFT_FREE = 24 << 20 }; /* bytes left free for the storing thread */

static vn_block *make_block(void)
{
	if (!vn_room_for(LEFT_FREE + VN_BLOCK_BYTES))
		return NULL;
	vn_trouble_spare(true); /* otherwise the producer waits for an existing block */
	vn_block *b = malloc(sizeof *b);
	if (b && !(b->data = aligned_alloc(VN_DISK_PAGE, VN_BLOCK_BYTES))) {
		free(b);
		b = NULL;
	}
	vn_trouble_spare(false);
	return b;
}

vn_block *vn_queue_take(vn_queue *q)
{
	pthread_mutex_lock(&q->lock);
	vn_block *b = NULL;
	while (!q->free) {
		if (q->have < q->most && (b = make_block())) {
			q->have++;
			break;
		}
		if (q->have == 0)
			break;
		pthread_cond_wait(&q->freed, &q->lock);
	}
	if (!b && (b = q->free))
		q->free = b->next;
	pthread_mutex_unlock(&q->lock);
	if (b) {
		b->next = NULL;
		b->used = 0;
		b->first = b->last = false;
	}
	return b;
}

void vn_queue_post(vn_queue *q, vn_block *b)
{
	pthread_mutex_lock(&q->lock);
	*q->last = b;
	q->last = &b->next;
	q->busy++;
	pthread_cond_signal(&q->posted);
	pthread_mutex_unlock(&q->lock);
}

vn_block *vn_queue_fetch(vn_queue *q)
{
	pthread_mutex_lock(&q->lock);
	while (!q->first && !q->closed)
		pthread_cond_wait(&q->posted, &q->lock);
	vn_block *b = q->first;
	if (b) {
		q->first = b->next;
		if (!q->first)
			q->last = &q->first;
		b->next = NULL;
		b->held = 1;
	}
	pthread_mutex_unlock(&q->lock);
	return b;
}

bool vn_queue_waits(vn_queue *q)
{
	pthread_mutex_lock(&q->lock);
	const bool waits = q->first != NULL;
	pthread_mutex_unlock(&q->lock);
	return waits;
}

void vn_queue_hold(vn_queue *q, vn_block *b)
{
	pthread_mutex_lock(&q->lock);
	b->held++;
	pthread_mutex_unlock(&q->lock);
}

void vn_queue_give_back(vn_queue *q, vn_block *b)
{
	pthread_mutex_lock(&q->lock);
	if (--b->held == 0) {
		b->next = q->free;
		q->free = b;
		q->busy--;
		pthread_cond_broadcast(&q->freed);
	}
	pthread_mutex_unlock(&q->lock);
}

void vn_queue_drain(vn_queue *q)
{
	pthread_mutex_lock(&q->lock);
	while (q->busy)
		pthread_cond_wait(&q->freed, &q->lock);
	pthread_mutex_unlock(&q->lock);
}

void vn_queue_close(vn_queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = true;
	pthread_cond_signal(&q->posted);
	pthread_mutex_unlock(&q->lock);
}
