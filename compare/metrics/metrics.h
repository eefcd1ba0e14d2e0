/* metrics.h: measures how far one tensor is from another, in one pass.
 *
 * One table (metrics.def) lists the metrics; keys of the limits language, names in JSON, and the
 * texts of help and specs are derived from it.
 *
 * Every sum is in double and in an order that depends only on the shape, so the same bytes give the
 * same digits for any number of threads and on any processor. Positions where either side is not
 * finite are counted and left out of all other metrics.
 *
 *   r is the reference, c the candidate, n the positions finite on both sides
 *   rel       |c-r| / max(|r|, s), where s is an eighth of the rms of r over the element's row (of
 *             its slice of 65536 in a longer row). So only the reference sets the scale, and an
 *             element near zero is measured against its neighbours. If a row is in several pieces
 *             of memory (tokens inside heads), each piece counts as a row here
 *   row       the elements of one token; the whole tensor if there is no token axis
 *   token     worst_token_nmse treats rows with less than an eighth of the median row's norm as
 *             rows of that norm: tiny rows are measured against their neighbours. A huge token
 *             hides no other, as it does in sums over the whole tensor
 *   channel   one position of the axes other than the token axis, over a sample of 32 tokens at
 *             uneven places (channels.h). worst_channel_nmse treats channels with less than half of
 *             the median channel's norm as channels of that norm. worst_channel_scale is the
 *             largest |factor - 1| beyond 6 times its standard error or the deviation of all
 *             factors, whichever is more. For scores (axis key), for fewer than 8 different tokens,
 *             and without a token axis, both are those of the whole tensor. scale is the median
 *             channel's if that is farther from 1 (for logits only with at least 8 different
 *             tokens)
 *   ulp       how many representable numbers lie between the two, in the coarser of the two formats
 *             (the one with fewer digits), after rounding both to it
 *   zeros     both all zero: cosine 1, nmse 0, norm ratio 1. Only r zero: cosine 0, nmse and norm
 *             ratio infinite, and so is rel if a row of r is zero and c's is not. Only c zero: 0,
 *             1, 0
 *
 * Threads  measuring uses `threads` of its own.
 */
#pragma once

#include "capture/recording/recording.h"

typedef enum vn_metric {
#define METRIC(NAME, ...) VN_M_##NAME,
#include "compare/metrics/metrics.def"
	VN_N_METRICS
} vn_metric;

typedef enum vn_better { VN_LOWER, VN_HIGHER, VN_NEAR_ONE } vn_better;

/* What a metric is computed from. This decides how its floors add, how rounding and zeros show in
 * it, and which limits make sense. */
typedef enum vn_metric_kind {
	VN_KIND_ERROR,      /* of errors themselves: twice the error is twice the value */
	VN_KIND_SQUARES,    /* of squared errors over squares */
	VN_KIND_COSINE,     /* from -1 to 1; its distance from 1 is of squared errors */
	VN_KIND_DIVERGENCE, /* of logits; grows with squared errors */
	VN_KIND_NORM,       /* a ratio of norms */
	VN_KIND_FACTOR,     /* the distance from 1 of a factor, beyond chance */
	VN_KIND_ULPS,       /* distances in numbers of the coarser format: 0 for values rounded to it */
	VN_KIND_SHARE,      /* of rows of logits, from 0 to 1 */
	VN_KIND_COUNT,      /* of positions, each right or wrong: no error, and no tolerance */
	VN_KIND_RANGE,      /* a share of a format's range: no error */
} vn_metric_kind;

/* How the value over several steps follows from those of the steps (pooled_small.h). */
typedef enum vn_metric_pool {
	VN_POOL_BY_SUMS, /* from the sums of squares */
	VN_POOL_MEAN,    /* the mean over all numbers */
	VN_POOL_MAX,     /* the largest */
	VN_POOL_NEVER,   /* it does not: a percentile */
} vn_metric_pool;

typedef enum vn_metric_worst { VN_WORST_NONE, VN_WORST_TOKEN, VN_WORST_CHANNEL } vn_metric_worst;

typedef struct vn_metric_info {
	const char     *name;
	vn_better       better;     /* how a limit holds: <=, >=, or |x - 1| <= */
	bool            over_floor; /* NAME_over_floor is also a key of limits */
	bool            scores;     /* only for logits */
	vn_metric_kind  kind;
	vn_metric_pool  pool;
	vn_metric_worst worst;      /* the value of one token or channel, the worst */
	size_t          worst_at;   /* offset in vn_measured of that one's index */
	bool            calibrated; /* calibrate writes limits on it, if every run is within `sane` */
	double          sane;
	double          loose;       /* a limit of this or more is useless (VN_HIGHER: or less) ... */
	const char     *loose_means; /* ... because it "can never fail" */
	const char     *unit;        /* "", "ulp", "count"... */
	const char     *means;       /* description, half a line */
} vn_metric_info;

const vn_metric_info *vn_metric_get(vn_metric m);
int                   vn_metric_from_name(const char *name, vn_metric *m); /* 0: unknown */

/* Does it measure an error? Counts and the use of a format's range do not. */
bool vn_metric_is_error(vn_metric m);

typedef struct vn_measured {
	bool     has[VN_N_METRICS];
	double   value[VN_N_METRICS];
	int64_t  n, finite;        /* elements; positions finite on both sides */
	int64_t  at;               /* row-major index of max_abs; -1: none */
	double   ref_at, cand_at;  /* the two values there */
	int64_t  bad_at;           /* first position that counts in nonfinite; -1: none */
	int64_t  differs_at;       /* first position that counts in differing; -1: none, or not measured */
	int64_t  worst_token;      /* of worst_token_cosine; -1 without a token axis */
	int64_t  worst_nmse_token; /* of worst_token_nmse; the same */
	/* the part of scale that the median channel contributes; 0: none, or too few numbers */
	double   middle;
	/* of worst_channel_*: index over outer and inner positions; -1: none */
	int64_t  worst_nmse_channel, worst_scale_channel;
	int64_t  worst_row;     /* of kl_max; -1 when there is none */
	double   argmax_strict; /* argmax_agreement with no ties allowed */
	/* 95 % interval of kl_mean is +- this: 1.96 s / sqrt(rows); NaN for fewer than two rows */
	double   kl_half;
	double   ref_rms;        /* of the reference, over the finite positions */
	int64_t  nan[2], inf[2]; /* [0] reference, [1] candidate */
	int64_t  masked;         /* positions left out as masks */
	double   absmax[2];      /* over the finite positions */
	vn_dtype grid;           /* the coarser format */
} vn_measured;

/* Returns the index of the token or channel that m is about; -1: none. */
int64_t vn_metric_worst_of(const vn_measured *x, vn_metric m);

/* Nothing measured: all counts are 0, all indices -1. */
vn_measured vn_measured_none(void);

/* One pair to measure. ref and cand must have equal shapes, with at least one element. axes: the
 * dims string, or "" (then the first of at least two axes is the token axis). scores: measure
 * argmax, top 5 and KL over the last axis. If ref and cand have no data, they are read from their
 * recordings in parts: some MB per thread, and one row of scores, whatever the size. */
typedef struct vn_job {
	vn_tensor   ref, cand;
	const char *axes;
	bool        scores;
	bool        mapped; /* both are in shared mappings, whose pages are released after use */
	bool        masks;  /* attention scores: minus infinity on both sides is a mask */
	bool        bits;   /* also measure differing, which compares all bits */
	bool        brief;  /* neither relative errors, nor ulps, nor channels: their metrics are not set */
	struct {
		vn_recording *recording;
		int           entry;
	} from[2];             /* recording NULL: use the data */
	bool        digest[2]; /* compute the digest of that side's bytes, unless it is read in parts */
	vn_digest   found[2];  /* out: those digests; empty: not computed */
	vn_measured m;         /* out */
	/* out: on failure the numbers could not be read, `why` says what, and m is not set */
	vn_status   st;
	vn_error    why;
} vn_job;

/* Measures all jobs; threads wait for each other only at the end. threads 0: one per processor.
 * Fails only if memory runs out; other failures are in `st` of the jobs. */
vn_status vn_measure_many(vn_job *job, int n, int threads, vn_error *err);
/* Measures one pair, without scores. */
vn_status vn_measure(const vn_tensor *ref, const vn_tensor *cand, const char *axes, int threads, vn_measured *m,
                     vn_error *err);
/* Same, with `brief` (vn_job). */
vn_status vn_measure_brief(const vn_tensor *ref, const vn_tensor *cand, const char *axes, int threads, vn_measured *m,
                           vn_error *err);

/* Returns the index of the token axis in the dims string; -1: none. */
int vn_token_axis(const char *axes, int rank);

/* Releases both tensors of a job, which have data in mappings of files. */
void vn_job_give_back(const vn_job *job);
