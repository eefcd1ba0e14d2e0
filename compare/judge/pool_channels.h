/* pool_channels.h: judges the channels of several short steps together.
 *
 * A channel is one place before and behind the token axis, over all tokens. A step with fewer than 8
 * different tokens is too short for metrics of single channels (channels.c), so a decode would pass
 * whatever happens to one channel. Therefore a sample of the rows of all such steps is measured as one
 * tensor, a pool, and the result is charged to the first step that is off in that channel.
 *
 * So are up to four parts of the steps, each of 8 or more, by themselves: of a channel that is off in the last third alone, all steps
 * together show a third. Where a part shows more, it is the pool.
 *
 * A step that is wrong as a whole would hide the others. When the result is charged to such a step,
 * the others form a pool of their own as well.
 *
 * Reads   request.options, opened.ref, opened.cand, result.point
 * Fills   result.channel_pool, n_channel_pools; channels of each checkpoint, and worst_channel_* of those that are charged
 */
#ifndef VN_COMPARE_POOL_CHANNELS_H
#define VN_COMPARE_POOL_CHANNELS_H

#include "compare/comparison/comparison.h"
#include "compare/metrics/channels.h"

enum { VN_CHANNEL_METRICS = 2 }; /* worst_channel_nmse, worst_channel_scale: in this order below */

typedef struct vn_pooled_row {
	int     point;
	int64_t row;   /* of its token axis */
} vn_pooled_row;

typedef struct vn_channel_pool {
	int64_t outer, inner;  /* places before and behind the token axis: outer * inner channels */
	int     steps, rows;   /* rows: looked at */
	vn_pooled_row row[VN_CHANNEL_ROWS];
	double  value[VN_CHANNEL_METRICS];
	int64_t channel[VN_CHANNEL_METRICS];
	int     charged[VN_CHANNEL_METRICS]; /* checkpoints; where this is their pool (vn_checkpoint), their m has the value */
	int     wider;         /* pool that has these steps and those that are wrong as a whole; -1 */
	bool    outside;       /* a checkpoint is broken by what is charged to it */
	double  floor[VN_CHANNEL_METRICS];   /* NaN: not known */
	unsigned char *kept[2];              /* while a floor runs: its rows, and those of the run that it is held against */
	vn_dtype kept_in[2];
	int      n_kept[2];
} vn_channel_pool;

extern const vn_metric vn_channel_metrics[VN_CHANNEL_METRICS];
/* The index of m in vn_channel_metrics; -1: m is another metric. */
int  vn_channel_metric(vn_metric m);
/* The number of pooled steps that p is judged with in this metric; 0: p is judged by its own number. */
int  vn_channel_steps(const vn_comparison *c, const vn_checkpoint *p, vn_metric m);
/* Is this metric of p judged at another step? */
bool vn_channel_elsewhere(const vn_comparison *c, const vn_checkpoint *p, vn_metric m);

/* The entry of a recording that stands for a checkpoint; -1: none. */
typedef int vn_channel_entry(vn_comparison *c, const vn_checkpoint *p);
/* The pool's rows of a recording, as (rows, channels): the caller's to free. data NULL: some are not there, or of several formats. */
vn_status vn_channel_rows(vn_comparison *c, const vn_channel_pool *g, vn_recording *r, vn_channel_entry *entry, vn_tensor *t, unsigned char **data,
                          vn_error *err);
vn_status vn_channel_rows_of_ref(vn_comparison *c, const vn_channel_pool *g, vn_tensor *t, unsigned char **data, vn_error *err);
/* One row of a tensor of the pool's form. */
void      vn_channel_row_copy(const vn_channel_pool *g, const vn_tensor *t, int64_t row, unsigned char *to);

/* Measures worst_channel_* of short steps together, and charges the result to the first step that is off. */
vn_status vn_pool_channels(vn_comparison *c, vn_error *err);

#endif
