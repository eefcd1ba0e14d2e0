/* channels.h: the metrics of single channels.
 *
 * Threads  a vn_channels each.
 */
#ifndef VN_COMPARE_CHANNELS_H
#define VN_COMPARE_CHANNELS_H

#include "compare/metrics/window.h"

/* Memory for the sums of a tensor's channels, which grows to the widest: 32 bytes a channel, 8 MB at most. */
typedef struct vn_channels vn_channels;
vn_channels *vn_channels_new(void); /* NULL: no memory */
void         vn_channels_free(vn_channels *c);

/* Rows of them are enough: of the worst of 10,000 channels the luck is then 2.2, of all 1. */
enum { VN_CHANNEL_ROWS = 32 };
/* Of fewer different ones a channel's error is luck. */
enum { VN_CHANNEL_FEWEST = 8 };

/* Which of all rows is the i-th of the `rows` that are looked at: one of each stretch of all / rows, all where there are no more,
 * the first among them. At uneven places: what is wrong in every second or third row is wrong in some of them, and not in all,
 * whatever all is (of 33 to 1024 a half and a third of the share that it has). */
int64_t vn_channel_row(int64_t i, int64_t rows, int64_t all);

/* How many channels a tensor has: all places but the token's. 0: it has no tokens, its places are keys (scores), or it is wider
 * than any vocabulary. */
int64_t vn_channels_of(const vn_pair *p, const char *axes, int rank);

/* To job->m, which has everything else: worst_channel_nmse, worst_channel_scale, and scale where the middle one of all channels is
 * farther from 1. in: NULL, or how a job that is read in parts is read. */
vn_status vn_measure_channels(const vn_metric_kernel *k, const vn_pair *p, vn_channels *c, vn_window *in, vn_job *job, vn_error *err);

#endif
