/* channels.h: the metrics of single channels.
 *
 * Threads  each thread needs a vn_channels of its own.
 */
#pragma once

#include "compare/metrics/window.h"

/* Memory for the sums of a tensor's channels, which grows to the widest tensor: 32 bytes per
 * channel, at most 8 MB. */
typedef struct vn_channels vn_channels;
vn_channels               *vn_channels_new(void); /* NULL: no memory */
void                       vn_channels_free(vn_channels *c);

/* This many sampled rows are enough: by chance, the error of the worst of 10,000 channels is then
 * 2.2 times its true value. */
enum { VN_CHANNEL_ROWS = 32 };
/* With fewer different rows, the error of a channel depends on chance. */
enum { VN_CHANNEL_FEWEST = 8 };

/* Returns which of `all` rows is sample i of `rows`: one from each stretch of all / rows rows;
 * every row if there are no more; the first sample is from the first stretch. The places are
 * uneven, so that an error in every second or third row affects some samples but not all, for any
 * value of `all`. */
int64_t vn_channel_row(int64_t i, int64_t rows, int64_t all);

/* Fills worst_channel_nmse and worst_channel_scale of job->m, whose other metrics are set, and
 * replaces scale by the median channel's if that is farther from 1. in: how to read a job in parts;
 * NULL: it has data. */
vn_status vn_measure_channels(const vn_pair *p, vn_channels *c, vn_window *in, vn_job *job, vn_error *err);
