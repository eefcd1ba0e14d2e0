/* measure.h: shared by the files of the measuring pass; other code includes metrics.h.
 *
 * A tensor is treated as (outer, rows, inner): rows is the token axis, outer and inner are the axes
 * before and after it (outer: the heads of attention scores).
 */
#ifndef VN_COMPARE_MEASURE_H
#define VN_COMPARE_MEASURE_H

#include "compare/metrics/kernel.h"
#include "compare/metrics/metrics.h"

#define VN_SLICE 65536 /* elements of a row that are read twice while they are in the cache */

typedef struct vn_pair {
	const unsigned char *data[2]; /* [0] reference, [1] candidate */
	int64_t              origin;  /* index of the element at the start of data */
	vn_dtype             dtype[2], grid;
	int64_t              n, outer, rows, inner;
	bool                 tokens; /* rows are tokens */
	bool                 bits;   /* count what differs */
	bool                 brief;  /* no relative errors, no ulps, no channels */
	bool                 mapped; /* data is in shared mappings */
	bool                 masks;  /* minus infinity on both sides is a mask */
} vn_pair;

static inline const unsigned char *vn_pair_at(const vn_pair *p, int side, int64_t at)
{
	return p->data[side] + (size_t)(at - p->origin) * vn_dtype_size(p->dtype[side]);
}

/* Sums over positions that are finite on both sides. A squared float64 may overflow a double, and
 * one tensor may be as large as the other is small. So r, c and d = c-r are each in units of
 * 2^scale: rr is in units of 4^scale[0], rc in units of 2^(scale[0] + scale[1]). Without float64
 * the scales are 0. */
typedef struct vn_squares {
	double rr, cc, rc, dd; /* r.r, c.c, r.c, d.d */
	double ad;             /* sum |d| */
	int    scale[3];       /* of r, c, d */
} vn_squares;

void vn_squares_add(vn_squares *to, const vn_squares *s);

/* The sums of one run of elements. */
typedef struct vn_sums {
	vn_squares sq;
	double     rel;
	double     max_d, max_rel, max_r, max_c, max_ulp;
	int64_t    max_block; /* start of the block that contains max_d; -1: none */
	/* positions used, positions counted in nonfinite, the first of those or -1 */
	int64_t    finite, bad, bad_at;
	int64_t    masked;
	int64_t    differing, differs_at; /* if the pair wants them; the first one or -1 */
	int64_t    nan[2], inf[2];
} vn_sums;

/* Adds b to a. */
void vn_sums_join(vn_sums *a, const vn_sums *b);
/* Computes the metrics from the sums of a whole tensor. count: ULP distances by bucket. m->at is
 * set by vn_find_max: the first position of the largest difference in the block at `at`. */
void vn_sums_finish(const vn_sums *s, const vn_pair *p, const uint64_t count[VN_ULP_BUCKETS], vn_measured *m);
void vn_find_max(const vn_metric_kernel *k, const vn_pair *p, int64_t at, vn_measured *m);

/* Measures one slice, n <= VN_SLICE elements from `at`: fills *s, and adds ULP distances to spread
 * (its other fields are scratch). ahead: what to fetch meanwhile, or NULL. scores: the row of
 * scores that contains the slice, which is swept as well; or NULL. */
struct vn_ahead;
struct vn_score_sweep;
void vn_slice_narrow(const vn_metric_kernel *k, const vn_pair *p, int64_t at, size_t n, vn_sums *s, vn_spread *spread,
                     struct vn_ahead *ahead, struct vn_score_sweep *scores);
/* The same in double, if either side is f64 or i32. */
void vn_slice_wide(const vn_metric_kernel *k, const vn_pair *p, int64_t at, size_t n, vn_sums *s, vn_spread *spread);

/* Adds to differing and differs_at. */
void vn_slice_differing(const vn_pair *p, int64_t at, size_t n, vn_sums *s);

/* Loads n <= VN_BLOCK numbers of one side as double. */
void vn_block_double(const vn_metric_kernel *k, const vn_pair *p, int side, int64_t at, size_t n, double *x);

/* One row of scores: `width` of them from `at`. Of equal scores the first is the argmax. */
typedef struct vn_score_row {
	double  kl;      /* KL(softmax r || softmax c), nats */
	double  norm[2]; /* log of the sum of exp: the loss of token t is norm - score[t] */
	int64_t argmax[2];
	/* the reference's scores of the two argmax are equal or a near tie (scores.c) */
	bool    tie;
	/* no NaN, and no infinity except minus infinity on both sides; else kl and norm are NaN, and
	 * nothing agrees */
	bool    finite;
	int     shared, of; /* number of top scores in both; of how many */
} vn_score_row;

enum { VN_TOP = 5 };
typedef struct vn_top {
	int     n;
	double  score[VN_TOP]; /* descending; of equal scores the first in the row comes first */
	int64_t at[VN_TOP];
} vn_top;

/* A row and the results of its first sweep: the highest scores, and the reference's deviation. The
 * caller passes the blocks of the row in order, while they are in the cache; vn_score_end sums the
 * exponentials, in one more sweep. */
typedef struct vn_score_sweep {
	const vn_metric_kernel *k;
	const vn_pair          *p;
	int64_t                 at, width;
	/* the row is swept directly in the file's bytes: all finite, in a format that kernels load */
	bool                    as_is;
	bool                    finite; /* except for minus infinity on both sides */
	vn_top                  top[2];
	/* over the reference's weighted scores, less the first of them, so that a common offset costs
	 * no precision */
	double                  n, first[2], sum, squares; /* first of both sides, for the kernels */
} vn_score_sweep;

vn_score_sweep vn_score_begin(const vn_metric_kernel *k, const vn_pair *p, int64_t at, int64_t width);
/* Sweeps scores [i, i + n) of the row, n <= VN_BLOCK. Does nothing after a score that is not
 * finite: vn_score_end then sweeps the whole row. */
void           vn_score_block(vn_score_sweep *w, int64_t i, size_t n);
vn_score_row   vn_score_end(const vn_score_sweep *w);
vn_score_row   vn_score_one(const vn_metric_kernel *k, const vn_pair *p, int64_t at, int64_t width);
/* Returns the cosine; 1 if both sides are zero, 0 if one is. */
double         vn_cosine(const vn_squares *s);
double         vn_nmse(const vn_squares *s);
/* Returns the distance from 1 of the factor a = r.c / r.r, less 6 standard errors sqrt((nmse -
 * (a-1)^2) / n) (with the nmse at least 2^-20): the part that errors independent of r do not
 * explain. n: positions. */
double         vn_scale(const vn_squares *s, double n);

/* Returns the part of `off`, a factor's distance from 1, beyond 6 standard errors for n positions
 * with this nmse. */
double vn_beyond(double off, double nmse, double n);

/* Computes the metrics of single tokens from n > 0 rows. size: (n), scratch. */
typedef struct vn_size {
	double fraction; /* r.r = fraction 2^exponent, as for frexp */
	int    exponent;
} vn_size;
void vn_measure_tokens(const vn_squares *row, int64_t n, vn_size *size, vn_measured *m);

/* The metrics of logits, rows of `width` along the last axis, which any thread may add in any
 * order. vn_scores_begin returns false without memory. */
typedef struct vn_scores {
	int64_t         width, rows;
	double         *kl; /* (rows) */
	_Atomic int64_t agree, strict, shared, of;
} vn_scores;

bool vn_scores_begin(vn_scores *s, const vn_pair *p, int64_t width);
void vn_scores_add(vn_scores *s, int64_t row, const vn_score_row *x);
void vn_scores_end(vn_scores *s, vn_measured *m);
void vn_scores_free(vn_scores *s);

/* Measures the rows of scores of a job, if the sweep over its numbers did not measure them row by
 * row. windows: (threads), for a job that is read in parts. */
struct vn_window;
vn_status vn_measure_scores(const vn_metric_kernel *k, const vn_pair *p, int threads, struct vn_window *windows,
                            vn_job *job, vn_error *err);

#endif
