/* draw_channels.h: the error of each channel (number of a row) at the end of a span, beside what
 * the draws of its floor (draws.h) allow it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The squared error of each channel (number of a row) at the end of a span, over the rows that are
 * read. */
typedef struct vn_channel_errors {
	double *now;           /* (n) of the tensor that is being read */
	double *sum, *squares; /* (n) over the draws, of now and of its square */
	int64_t n;             /* 0: not known */
	size_t  room;
} vn_channel_errors;

/* The squared error of each channel over the steps that pool_channels.h judges together. */
typedef struct vn_pooled_channels {
	double *channel[2]; /* (channels): of the candidate; the mean of the draws; NULL: of no step */
	/* the error of the draws in all channels; its square over its degrees of freedom */
	double  all, squares;
} vn_pooled_channels;

/* Makes room for n channels, without errors so far. The caller frees c->now. */
void   vn_channels_begin(vn_channel_errors *c, int64_t n);
/* Adds the draw that was read. */
void   vn_channels_add(vn_channel_errors *c);
/* Returns the degrees of freedom of a channel, from the scatter of its error over the draws. 1 if
 * nothing scatters. */
double vn_channels_freedom(const vn_channel_errors *c, int draws);
/* Returns the error of the worst channel over what chance allows; infinite if no draw has an error
 * there, or if something is not known. */
double vn_channels_judge(const double *cand, const double *draws, int64_t n, double freedom);
/* Adds a step to its pool, and judges the channels of all its steps so far. draws: (c->n) their
 * mean. freedom: of a channel; in common: the steps have the same errors, so they know no more. */
double vn_channels_pool(vn_pooled_channels *pool, const vn_channel_errors *c, const double *draws, double freedom,
                        bool in_common);
