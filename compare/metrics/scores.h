/* scores.h: the metrics of logits, row by row. */
#pragma once

#include "compare/metrics/window.h"

/* One row of scores: `width` of them from `at`. Of equal scores the first is the argmax. */
typedef struct vn_scores_row {
	double  kl;      /* KL(softmax r || softmax c), nats */
	double  norm[2]; /* log of the sum of exp: the loss of token t is norm - score[t] */
	int64_t argmax[2];
	/* the reference's scores of the two argmax are equal or a near tie (scores.c) */
	bool    tie;
	/* no NaN, and no infinity except minus infinity on both sides; else kl and norm are NaN, and
	 * nothing agrees */
	bool    finite;
	int     shared, of; /* number of top scores in both; of how many */
} vn_scores_row;

enum { VN_TOP = 5 };
typedef struct vn_top {
	int     n;
	double  score[VN_TOP]; /* descending; of equal scores the first in the row comes first */
	int64_t at[VN_TOP];
} vn_top;

/* A row and the results of its first sweep: the highest scores, and the reference's deviation. The
 * caller passes the blocks of the row in order, while they are in the cache; vn_scores_sweep_end
 * sums the exponentials, in one more sweep. */
typedef struct vn_scores_sweep {
	const vn_pair *p;
	int64_t        at, width;
	/* the row is swept directly in the file's bytes: all finite, in a format that kernels load */
	bool           as_is;
	bool           finite; /* except for minus infinity on both sides */
	vn_top         top[2];
	/* over the reference's weighted scores, less the first of them, so that a common offset costs
	 * no precision */
	double         n, first[2], sum, squares; /* first of both sides, for the kernels */
} vn_scores_sweep;

vn_scores_sweep vn_scores_sweep_begin(const vn_pair *p, int64_t at, int64_t width);
/* Sweeps scores [i, i + n) of the row, n <= VN_BLOCK. Does nothing after a score that is not
 * finite: vn_scores_sweep_end then sweeps the whole row. */
void            vn_scores_sweep_block(vn_scores_sweep *w, int64_t i, size_t n);
vn_scores_row   vn_scores_sweep_end(const vn_scores_sweep *w);
vn_scores_row   vn_scores_sweep_row(const vn_pair *p, int64_t at, int64_t width);

/* The metrics of logits, rows of `width` along the last axis, which any thread may add in any
 * order. vn_scores_begin returns false without memory. */
typedef struct vn_scores {
	int64_t         width, rows;
	double         *kl; /* (rows) */
	_Atomic int64_t agree, strict, shared, of;
} vn_scores;

bool vn_scores_begin(vn_scores *s, const vn_pair *p, int64_t width);
void vn_scores_add(vn_scores *s, int64_t row, const vn_scores_row *x);
void vn_scores_end(vn_scores *s, vn_measured *m);
void vn_scores_free(vn_scores *s);

/* Measures the rows of scores of a job, if the sweep over its numbers did not measure them row by
 * row. windows: (threads), for a job that is read in parts. */
vn_status vn_measure_scores(const vn_pair *p, int threads, vn_window *windows, vn_job *job, vn_error *err);
