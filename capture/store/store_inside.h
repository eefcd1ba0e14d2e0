/* store_inside.h: what store.c, store_about.c, store_model.c and store_tensor.c share. Nobody else includes it. */
#ifndef VN_CAPTURE_STORE_INSIDE_H
#define VN_CAPTURE_STORE_INSIDE_H

#include "capture/file/disk.h"
#include "capture/file/driver.h"
#include "capture/file/h5.h"
#include "capture/file/place.h"
#include "capture/store/queue.h"
#include "capture/store/store.h"

#include <pthread.h>

struct vn_store {
	const vn_plan *plan;
	vn_place       place;
	vn_driver     *driver;
	hid_t          file, step; /* step: its group */
	hid_t          groups;     /* creation properties of groups */
	bool           whole;      /* nothing of it shows before the end */
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
	struct {
		hid_t         dset;    /* without a name until it is whole */
		vn_tensor_label      label;
		vn_dtype      dtype;
		int64_t       at, end; /* where the next byte goes, and the last */
		vn_stats_sum  sum;
		vn_digester  *digest;
	} tensor;
	vn_disk disk;
	hid_t  parent;             /* group of the last tensor with a layer, and its name */
	char   parent_name[VN_NAME_MAX];
	double published;          /* when */

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

/* What was remembered; else the HDF5 lock, and memory for what is done with it. */
vn_status vn_store_enter(vn_store *s, vn_error *err);

/* With the HDF5 lock held: the group a name belongs in (made when needed, not
 * to be closed) and its last part. */
hid_t vn_store_parent(vn_store *s, const char *name, const char **last);
/* A one-dimensional dataset of n elements; of n strings. */
bool  vn_store_list(hid_t group, const char *name, hid_t disk, hid_t memory, int64_t n, const void *data, const char *digest);
bool  vn_store_lines(hid_t group, const char *name, char *const *line, int64_t n);
/* /model, to be closed, with these words in it. */
hid_t vn_store_put_words(vn_store *s, const vn_model_words *w);
/* "HDF5 cannot write WHAT". */
vn_status vn_store_broken(const vn_store *s, const char *what, vn_error *err);
/* With the HDF5 lock held, after work on `what`: remembers the first failure. What
 * was good goes to disk, at once or when it is due. */
vn_status vn_store_settle(vn_store *s, bool good, const char *what, bool at_once, vn_error *err);
/* With the HDF5 lock held: all that was done so far to disk; the same unless it
 * has been done a moment ago. */
vn_status vn_store_publish_when_due(vn_store *s, vn_error *err);
vn_status vn_store_publish(vn_store *s, vn_error *err);

#endif
