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

/* How many channels a tensor has: all places but the token's. 0: it has no tokens, its places are keys (scores), or it is wider
 * than any vocabulary. */
int64_t vn_channels_of(const vn_pair *p, const char *axes, int rank);

/* To job->m, which has everything else: worst_channel_nmse, worst_channel_scale, and scale where the middle one of all channels is
 * farther from 1. in: NULL, or how a job that is read in parts is read. */
vn_status vn_measure_channels(const vn_kernel *k, const vn_pair *p, vn_channels *c, vn_window *in, vn_job *job, vn_error *err);

#endif
