/* store_internal.h: what store.c, store_about.c, store_model.c and store_tensor.c share. Nobody else includes it. */
#ifndef VN_CAPTURE_STORE_INTERNAL_H
#define VN_CAPTURE_STORE_INTERNAL_H

#include "capture/file/disk.h"
#include "capture/file/place.h"
#include "capture/store/queue.h"
#include "capture/store/scribe.h"
#include "capture/store/store.h"

#include <pthread.h>
#include <semaphore.h>

struct vn_store {
	const vn_plan *plan;
	vn_place       place;
	int64_t        tensors, bytes;
	int32_t       *ids;        /* (n_ids), as in the file at byte ids_at; NULL: all were known */
	int64_t        n_ids, unknown, ids_at;

	/* The giver's side. */
	vn_queue *queue;
	vn_block *filling;         /* the block being filled */
	int64_t   left;            /* elements the open tensor still lacks */
	size_t    width;           /* bytes of one of them */
	bool      cut;             /* vn_store_cut */
	bool      open;            /* between begin and end */

	/* The storing thread's side. */
	pthread_t thread;
	bool      started;
	sem_t     begun, quiet, leave; /* the scribe is there or has failed; all is filed; the thread may end */
	struct {
		bool          open;    /* its structure is begun */
		vn_tensor_label      label;
		vn_dtype      dtype;
		int64_t       at, end; /* where the next byte goes, and the last */
		vn_stats_sum  sum;
		vn_digester  *digest;
	} tensor;
	vn_disk disk;

	/* Of either side; asking: held while one of them asks the scribe. */
	pthread_mutex_t asking;
	vn_scribe       scribe;
	int64_t         finishing; /* bytes of the tensor that it was asked to finish, and has not answered yet */

	/* The first failure of either side. */
	pthread_mutex_t lock;
	vn_status       status;
	vn_error        err;
};

void *vn_store_thread(void *store);

/* Remember the first failure; returns st. */
vn_status vn_store_failed(vn_store *s, vn_status st, const vn_error *err);
/* What was remembered. */
vn_status vn_store_status(vn_store *s, vn_error *err);
/* What was remembered; else an errand, and its answer. A failure is remembered. Ends the message in any case. */
vn_status vn_store_do(vn_store *s, vn_errand errand, vn_message *m, int64_t *value, vn_error *err);
/* VN_SCRIBE_FINISH of a tensor of so many bytes, and no wait: the answer is fetched before the next errand. */
vn_status vn_store_finish(vn_store *s, vn_message *m, int64_t bytes, vn_error *err);

/* Five texts, as VN_SCRIBE_MODEL takes them. */
void vn_store_put_words(vn_message *m, const vn_model_words *w);

#endif
