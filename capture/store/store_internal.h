/* store_internal.h: shared by store.c and store_*.c; included nowhere else. */
#pragma once

#include "capture/file/disk.h"
#include "capture/file/place.h"
#include "capture/store/queue.h"
#include "capture/store/scribe.h"
#include "capture/store/store.h"
#include "capture/store/writers.h"

#include <pthread.h>
#include <semaphore.h>

struct vn_store {
	const vn_plan *plan;
	vn_place       place;
	int64_t        tensors, bytes;
	/* (n_ids): copy of the ids, which are at byte ids_at of the file; NULL: all were known at
	 * first */
	int32_t       *ids;
	int64_t        n_ids, unknown, ids_at;
	int64_t        batch; /* vn_store_batch */

	/* The caller's side. */
	vn_queue *queue;
	vn_block *filling;                                                   /* the block being filled */
	int64_t   left;                                                      /* elements that the open tensor still needs */
	size_t    width;                                                     /* bytes per element */
	void (*copy)(void *to, const void *from, size_t bytes, int threads); /* vn_store_copier; NULL: memcpy */
	int  threads;                                                        /* for copy */
	bool cut;                                                            /* vn_store_cut */
	bool whole;                                                          /* vn_store_create_whole */
	bool open;                                                           /* between begin and end */

	/* The storing thread's side. */
	pthread_t thread;
	bool      started;
	sem_t     begun; /* the scribe has started or failed */
	struct {
		bool             open; /* its structure was begun */
		vn_scribe_tensor about;
		int64_t          at, end; /* offset of its next byte, and of its end */
		vn_stats_sum     sum;
		vn_digester     *digest;
	} tensor;
	vn_disk     disk;
	vn_writers *writers; /* NULL: not needed yet */
	bool        alone;   /* the writers could not be started */
	struct {
		vn_message m; /* of VN_SCRIBE_SMALL */
		int64_t    bytes;
	} small; /* tensors that were not sent yet */

	/* Both sides; asking: held during a request to the scribe. */
	pthread_mutex_t asking;
	vn_scribe       scribe;
	int64_t         finishing; /* bytes of the tensors whose request is not answered yet */

	/* The first failure of either side. */
	pthread_mutex_t lock;
	vn_status       status;
	vn_error        err;
};

void *vn_store_thread(void *store);

/* If st is a failure: records it if it is the first, and copies *own to *err (may be NULL). Returns
 * st. */
vn_status vn_store_note_failure(vn_store *s, vn_status st, const vn_error *own, vn_error *err);
/* Returns the recorded failure, or VN_OK. */
vn_status vn_store_status(vn_store *s, vn_error *err);
/* Sends a request and waits for the answer, unless a failure was recorded. Records a failure.
 * Finishes the message in any case. */
vn_status vn_store_do(vn_store *s, vn_scribe_request request, vn_message *m, int64_t *value, vn_error *err);
/* Sends a request that completes tensors of this many bytes, without waiting; the answer is fetched
 * before the next request. */
vn_status vn_store_finish(vn_store *s, vn_scribe_request request, vn_message *m, int64_t bytes, vn_error *err);

/* Requires s->asking. Collects the answer of vn_store_finish, if one is pending. */
vn_status vn_store_collect(vn_store *s, vn_error *err);

/* Puts what VN_SCRIBE_MODEL says before the plan into a message: texts, and n rows of a table of
 * weights in the layout of the file; NULL: none. */
void vn_store_put_model(vn_message *m, const vn_model_words *w, const vn_weight_row *rows, int n);
