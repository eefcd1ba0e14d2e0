/* measure.h: what the files of the pass share; everyone else reads metrics.h.
 *
 * A tensor is seen as (outer, rows, inner): rows is the token axis, inner what
 * is behind it, outer what is before it (the heads of attention scores).
 */
#ifndef VN_COMPARE_MEASURE_H
#define VN_COMPARE_MEASURE_H

#include "compare/metrics/kernel.h"
#include "compare/metrics/metrics.h"

#define VN_SLICE 65536 /* elements of a row that are swept twice while they are in the cache */

typedef struct vn_pair {
	const unsigned char *data[2]; /* [0] reference, [1] candidate */
	int64_t  origin;              /* the number of the element that data begin with */
	vn_dtype dtype[2], grid;
	int64_t  n, outer, rows, inner;
	bool     tokens;              /* rows are tokens */
	bool     bits;                /* count what differs */
	bool     mapped;              /* data are shared mappings */
	bool     masks;               /* minus infinity on both sides is a mask */
} vn_pair;

static inline const unsigned char *vn_pair_at(const vn_pair *p, int side, int64_t at)
{
	return p->data[side] + (size_t)(at - p->origin) * vn_dtype_size(p->dtype[side]);
}

/* Sums over positions finite on both sides. float64 squared does not fit into a double, and of two tensors
 * one may be as large as the other is small: r, c and d = c-r are taken in units of 2^scale, each its own, so
 * that rr is in units of 4^scale[0] and rc of 2^(scale[0] + scale[1]). Without float64 the scales are 0. */
typedef struct vn_squares {
	double rr, cc, rc, dd; /* r.r, c.c, r.c, d.d */
	double ad;             /* sum |d| */
	int    scale[3];       /* of r, c, d */
} vn_squares;

void vn_squares_add(vn_squares *to, const vn_squares *s);

/* What one run of elements adds to the whole. */
typedef struct vn_sums {
	vn_squares sq;
	double  rel;
	double  max_d, max_rel, max_r, max_c, max_ulp;
	int64_t max_block;            /* where the block of max_d starts; -1: none */
	int64_t finite, bad, bad_at;  /* positions used, counted in nonfinite, first of those or -1 */
	int64_t masked;
	int64_t differing, differs_at; /* when the pair wants them; first or -1 */
	int64_t nan[2], inf[2];
} vn_sums;

/* Adds b to a. */
void vn_sums_join(vn_sums *a, const vn_sums *b);
/* All that sums of a whole tensor come to. count: distances in ULP by their buckets. m->at is left to vn_find_max: the first position
 * of the block `at` where the difference is largest. */
void vn_sums_finish(const vn_sums *s, const vn_pair *p, const uint64_t count[VN_ULP_BUCKETS], vn_measured *m);
void vn_find_max(const vn_metric_kernel *k, const vn_pair *p, int64_t at, vn_measured *m);

/* One slice, n <= VN_SLICE elements from `at`: fills *s, adds ULP distances to
 * spread (its other fields are scratch). */
void vn_slice_narrow(const vn_metric_kernel *k, const vn_pair *p, int64_t at, size_t n, vn_sums *s, vn_spread *spread);
/* The same in double, when either side is f64 or i32. */
void vn_slice_wide(const vn_metric_kernel *k, const vn_pair *p, int64_t at, size_t n, vn_sums *s, vn_spread *spread);

/* Adds to differing and differs_at. */
void vn_slice_differing(const vn_pair *p, int64_t at, size_t n, vn_sums *s);

/* n <= VN_BLOCK numbers of one side as double. */
void vn_block_double(const vn_metric_kernel *k, const vn_pair *p, int side, int64_t at, size_t n, double *x);

/* One row of scores: `width` of them from `at`. Of equal scores the first counts. */
typedef struct vn_score_row {
	double  kl;        /* KL(softmax r || softmax c), nats */
	double  norm[2];   /* log of the sum of exp: the loss of token t is norm - score[t] */
	int64_t argmax[2];
	bool    tie;       /* of the reference's scores, those two are equal or a tie (scores.c) */
	bool    finite;    /* no NaN, no infinity but a shared minus; else kl and norm are NaN, and nothing agrees */
	int     shared, of; /* how many of the top are in both */
} vn_score_row;

vn_score_row vn_score_one(const vn_metric_kernel *k, const vn_pair *p, int64_t at, int64_t width);
/* Both zero: 1; one of them: 0. */
double vn_cosine(const vn_squares *s);
double vn_nmse(const vn_squares *s);
/* Of n positions: the distance from 1 of the factor a = r.c / r.r, less 6 times its standard error sqrt((nmse - (a-1)^2) / n)
 * (of a rest of nmse 2^-20 or more),
 * that is, the part of it that errors independent of r do not make. */
double vn_scale(const vn_squares *s, double n);

/* off: a distance of a factor from 1, of n positions whose nmse is this: what is left of it. */
double vn_beyond(double off, double nmse, double n);

/* The metrics of single tokens, n > 0 rows. size: (n), scratch. */
typedef struct vn_size {
	double fraction; /* r.r = fraction 2^exponent, as frexp has it */
	int    exponent;
} vn_size;
void vn_measure_tokens(const vn_squares *row, int64_t n, vn_size *size, vn_measured *m);

/* The metrics of logits, rows of `width` along the last axis, added in any order by any thread. begin: false without memory. */
typedef struct vn_scores {
	int64_t width, rows;
	double *kl; /* (rows) */
	_Atomic int64_t agree, strict, shared, of;
} vn_scores;

bool vn_scores_begin(vn_scores *s, const vn_pair *p, int64_t width);
void vn_scores_add(vn_scores *s, const vn_metric_kernel *k, const vn_pair *p, int64_t row);
void vn_scores_end(vn_scores *s, vn_measured *m);
void vn_scores_free(vn_scores *s);

/* All of them, of a job whose rows are not measured one by one anyway. windows: (threads), for a job that is read in parts. */
struct vn_window;
vn_status vn_measure_scores(const vn_metric_kernel *k, const vn_pair *p, int threads, struct vn_window *windows, vn_job *job, vn_error *err);

#endif
