/* pool_channels.h: judges the channels of several short steps together.
 *
 * A channel is one position of the axes other than the token axis, over all tokens. A step with
 * fewer than 8 different tokens is too short for metrics of single channels (channels.c), so a
 * decoding run would pass whatever happens to one channel. Therefore a sample of the rows of all
 * such steps is measured as one tensor, a pool, and the result is charged to the first step that is
 * wrong in that channel.
 *
 * Up to four parts of the steps, of 8 or more each, are also measured by themselves: if a channel
 * is off only in the last third of the steps, all steps together show only a third of its error. If
 * a part shows more error than the whole, that part is the pool.
 *
 * A step that is wrong as a whole would hide the others. If the result is charged to such a step,
 * the others form a second pool.
 *
 * Reads   request.options, opened.ref, opened.cand, the checkpoints
 * Fills   pools.channel_pool, n_channel_pools; channels and in_channel_pool of each checkpoint;
 *         worst_channel_* of charged checkpoints
 */
#pragma once

#include "compare/comparison/comparison.h"
#include "compare/metrics/channels.h"

/* worst_channel_nmse, worst_channel_scale: the order of the arrays below */
enum { VN_CHANNEL_METRICS = 2 };

typedef struct vn_pooled_row {
	int     point;
	int64_t row; /* index along its token axis */
} vn_pooled_row;

typedef struct vn_channel_pool {
	/* sizes before and after the token axis: there are outer * inner channels */
	int64_t        outer, inner;
	int            steps, rows; /* rows: in the sample */
	vn_pooled_row  row[VN_CHANNEL_ROWS];
	double         value[VN_CHANNEL_METRICS];
	int64_t        channel[VN_CHANNEL_METRICS];
	/* the checkpoint charged with each metric; its m then has the value */
	int            charged[VN_CHANNEL_METRICS];
	int            wider;                     /* the pool that also includes the steps that are wrong as a whole; -1 */
	bool           outside;                   /* a charged checkpoint is outside because of this pool */
	double         floor[VN_CHANNEL_METRICS]; /* NaN: not known */
	/* rows copied during a floor run: [0] of that run, [1] of the finer run it is compared with */
	unsigned char *kept[2];
	vn_dtype       kept_in[2];
	int            n_kept[2];
} vn_channel_pool;

extern const vn_metric vn_channel_metrics[VN_CHANNEL_METRICS];
/* Returns the index of m in vn_channel_metrics, or -1. */
int                    vn_channel_metric(vn_metric m);
/* Returns how many steps p is judged together with in metric m; 0: p is not charged with the pool's
 * value. */
int vn_channel_steps(const vn_checkpoints *all, const vn_pools *pools, const vn_checkpoint *p, vn_metric m);

/* Whose rows are taken: entry returns the entry of r that belongs to a checkpoint, or -1. */
typedef int vn_channel_entry(const vn_opened *o, const vn_checkpoint *p);
typedef struct vn_channel_source {
	const vn_opened  *o;
	vn_recording     *r;
	vn_channel_entry *entry;
} vn_channel_source;
/* Copies the pool's rows of a recording into *data, as (rows, channels); the caller frees *data.
 * *data is NULL if rows are missing or their formats differ. */
vn_status vn_channel_rows(const vn_checkpoints *points, const vn_channel_source *from, const vn_channel_pool *g,
                          vn_tensor *t, unsigned char **data, vn_error *err);
vn_status vn_channel_rows_of_ref(const vn_opened *o, const vn_checkpoints *all, const vn_channel_pool *g, vn_tensor *t,
                                 unsigned char **data, vn_error *err);
/* Copies one row of a tensor of the pool's shape to `to`. */
void      vn_channel_row_copy(const vn_channel_pool *g, const vn_tensor *t, int64_t row, unsigned char *to);

/* Measures worst_channel_* of short steps together, and charges the result to the first wrong
 * step. */
vn_status vn_pool_channels(const vn_opened *o, vn_checkpoints *all, vn_pools *pools, vn_error *err);
