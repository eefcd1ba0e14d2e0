/* comparison.h: the types of a comparison; no function.
 *
 * A vn_comparison has three parts: the request (options, limits), what was opened for it (two recordings, a floor,
 * a model), and the result, which the chapters of vn_compare (compare/chapters/compare.h) fill in their order. The
 * header of each chapter says what it reads and what it fills. A vn_checkpoint is one tensor name in one step:
 * where it is in both recordings, what was measured, and how it was judged. A report needs nothing else.
 *
 * Owner    recordings, limits and options are borrowed and must outlive the comparison.
 */
#ifndef VN_COMPARE_COMPARISON_H
#define VN_COMPARE_COMPARISON_H

#include "capture/recording/recording.h"
#include "capture/recording/verify.h"
#include "compare/limits/limits.h"
#include "compare/text/columns.h"
#include "compare/text/lines.h"
#include "compare/weights/weights.h"
#include "libref/plan/policy.h"

/* What a person may allow by name (--allow token_ids,weights). */
typedef enum vn_allow {
	VN_ALLOW_TOKEN_IDS  = 1 << 0, /* and positions */
	VN_ALLOW_CONFIG     = 1 << 1,
	VN_ALLOW_WEIGHTS    = 1 << 2,
	VN_ALLOW_INCOMPLETE = 1 << 3,
	VN_ALLOW_MISSING    = 1 << 4,
	VN_ALLOW_EXTRA      = 1 << 5,
	VN_ALLOW_PRECISION  = 1 << 6, /* a floor of another precision than the candidate's */
	VN_ALLOW_REPLICAS   = 1 << 7, /* ranks that differ in what all should have */
	VN_ALLOW_CLAIMS     = 1 << 8, /* tensors that say of themselves what their plan does not, numbers finer than their file says */
	VN_ALLOW_FLOOR      = 1 << 9, /* a floor larger than a format makes it (floor_check.h) */
	VN_ALLOW_RANKS      = 1 << 10, /* one rank of several, alone */
	VN_ALLOW_STEPS      = 1 << 11, /* steps that do not follow each other, or that neither side has */
	VN_ALLOW_ITSELF     = 1 << 12, /* one file as reference and candidate */
	VN_ALLOW_DIGEST     = 1 << 13, /* numbers that are not those of their digest */
} vn_allow;

typedef enum vn_status_word {
	VN_WITHIN,     /* measured, inside all its limits */
	VN_OUTSIDE,    /* measured, outside at least one */
	VN_ACCUMULATED, /* outside, but every operation up to it was replayed and cleared (by_operation.h): does not fail */
	VN_UNLIMITED,  /* measured, no limit but nonfinite applies */
	VN_MISSING,    /* not in the candidate */
	VN_EXTRA,      /* not in the reference */
	VN_EMPTY,      /* has no elements */
	VN_MISSHAPEN,  /* shape, axes, basis or rows differ */
	VN_UNREADABLE,
	VN_N_STATUS_WORDS
} vn_status_word;

/* What became of a checkpoint since the baseline (baseline.h), the worse the later. */
typedef enum vn_since {
	VN_NO_BASELINE,
	VN_UNCHANGED, /* within its limits, or allowed */
	VN_FIXED,     /* within its limits, and was not */
	VN_BETTER,    /* outside as before, and less so */
	VN_KNOWN,     /* outside as before */
	VN_WORSE,
	VN_NEW,       /* outside, and was not, or not by this limit */
	VN_N_SINCE
} vn_since;

typedef struct vn_check {
	vn_metric      metric;
	vn_form        form;
	double         limit, value; /* value: what was held against it */
	double         best;         /* value ever reached, of a broken one against a baseline (baseline.h); where has_best */
	bool           has_best;
	bool           holds;
	const vn_rule *rule;         /* NULL: built in */
	int            line;
	const char    *note;         /* why there is no value; NULL */
	int            steps;        /* of so many steps together; 0: of this checkpoint alone */
} vn_check;

/* What came of computing it again on the candidate's own inputs (replay.h); nmse but where it says otherwise. */
typedef struct vn_replayed {
	double  local, floor, inherited;
	double  local_token, floor_token; /* nmse of the worst token */
	double  local_max, floor_max;     /* largest error of one element, not squared */
	double  gain;   /* NaN: the inputs have no error, or none that is known */
	int64_t bad;    /* not finite on one side only */
	int     span;   /* nodes from captured tensors to here, its own included */
	int     behind; /* local is beyond its floor, but the span holds what this checkpoint was charged with; -1 */
	bool    captured; /* what reads it was computed from other numbers than these: the capture is wrong, not the operation */
	vn_column_order columns; /* its columns lie in this order */
	bool    wrong_so; /* and in the reference's order, of which local is, it is wrong; else it is right so, as is what reads it: no mistake */
} vn_replayed;

/* Where numbers left the range of a format (overflow.h). */
typedef struct vn_overflow {
	vn_dtype format;
	double   largest, reached; /* reached 0: no overflow is known */
	int64_t  term, terms;      /* after so many terms of so many a sum reached it; 0: the result itself did */
	double   whole;            /* the sum of all */
} vn_overflow;

typedef struct vn_checkpoint {
	const char    *name;      /* borrowed from the recording */
	int            step, order, layer;
	int            value;     /* of the comparison's plan, aliases resolved; -1 */
	int            ref, cand; /* entries; -1: absent */
	bool           scores;    /* logits */
	int            pool;      /* whose steps it is judged with, of the metrics of logits; -1: by itself */
	int            pooled_small; /* and of the multiples of the floor; -1: by itself */
	int            channels;  /* and of worst_channel_*, which m has at a step that is charged with them (pool_channels.h); -1: by itself */
	vn_status_word status;
	bool           fails;     /* outside the limits, whatever the status */
	char          *detail;    /* one line for statuses that are not measured, and for what is invalid_floor; NULL: none */
	char          *holds;     /* of a misshapen one what its numbers are: the reference's in another order, or another checkpoint's; NULL: not known */
	vn_measured    m;         /* n == 0: not measured */
	int64_t        rows;      /* of its last axis, when it holds scores and is measured */
	const char    *vacuous;    /* why nothing was compared; NULL */
	bool           has_floor;
	bool           invalid_floor; /* its floor is none: the reference, or the floor, is wrong there */
	double        *floor;     /* (VN_N_METRICS) where it has one; NaN: not known. vn_floor_value */
	vn_check      *check;
	int            n_checks;
	int            worst;     /* the broken check that is farthest out; -1 */
	bool           origin;
	bool           replayed;
	vn_replayed    replay;
	vn_overflow    overflow;
	vn_since       since;
	double         was;       /* of the worst check, in the baseline; NaN: no number */
} vn_checkpoint;

/* The logits of all steps of one token each: one row says nothing of a mean or of
 * a share, and its divergence cannot be divided by the floor's, which may be as
 * good as 0 by chance. So these metrics are taken over the steps, and judged once. */
typedef struct vn_pool {
	const char *name;             /* as the checkpoints' */
	int         n, first, last;   /* steps; checkpoints of the first and the last */
	int         worst;            /* checkpoint of the largest divergence: the checks stand there, and a broken one at those that break it by themselves, too */
	double      value[VN_N_METRICS], floor[VN_N_METRICS]; /* metrics of logits only; floor: NaN when some step has none */
	double      argmax_strict, kl_half; /* as in vn_measured */
	int64_t     rows, distinct;   /* of the reference's tokens (count.h) */
} vn_pool;

/* Of so few numbers the ratio of two errors is luck: a floor may be next to nothing
 * because a few roundings happened to be small. Measured on healthy runs, a token
 * at a time (specs/limits.md): at 6 numbers 1 in 300 is over 4 and 17 was seen; from
 * 128 on none of 3700 was over 3.4. A row of more that is computed from so few (the
 * hidden size of a small model) is as lucky. So the steps of one token of such a tensor
 * are judged together where a multiple of the floor is limited, once. */
enum { VN_FEW_NUMBERS = 128 };

typedef struct vn_pooled_small {
	int     n;                    /* steps */
	int64_t numbers;              /* in all of them */
	int     worst;                /* checkpoint of the step that is farthest out: as in vn_pool */
	bool    outside;              /* one of them is broken, and by all the steps */
	double  value[VN_N_METRICS], floor[VN_N_METRICS]; /* where vn_pooled_small_has; else NaN */
	double *nmse, *below;         /* (n) of the steps, least first; and of that many of them together */
} vn_pooled_small;

/* When operations are computed again, where there is a model. */
typedef enum vn_replay_when {
	VN_REPLAY_OUTSIDE,   /* if something is outside */
	VN_REPLAY_SAME,      /* also if not, but where the candidate's weights are known to be others than the model's */
	VN_REPLAY_ALWAYS,
	VN_REPLAY_NEVER,
} vn_replay_when;

typedef struct vn_compare_options {
	const char *const *points; /* globs, each of which must match something; none: everything */
	int         n_points;
	unsigned    allow;
	int         threads;       /* 0: one a processor */
	bool        bitwise;       /* formats must be the same too; limits are vn_limits_bitwise */
	const char *model;         /* compute the floor with these weights, and replay what is outside; NULL */
	vn_replay_when replay;
	bool        explain;       /* which known mistake reproduces each origin (explain.h) */
	bool        strict;        /* a warning makes what is within outside */
	const char *baseline;      /* report of an earlier comparison (baseline.h); NULL */
	const vn_policy *floor_policy; /* instead of the candidate's own; NULL */
} vn_compare_options;

typedef struct vn_graph vn_graph; /* localise.c */

/* What is asked for. Borrowed; set before vn_compare. */
typedef struct vn_request {
	const vn_compare_options *options;
	vn_limits     *limits;
	const char    *again;      /* "ref.h5 cand.h5 --names hf": what a command line needs to compare the same again; NULL: none */
} vn_request;

/* What is read: both sides, and what says how they were computed. */
typedef struct vn_opened {
	vn_recording  *ref, *cand, *floor; /* floor: NULL without --floor */
	vn_model      *model;      /* of options->model; NULL. By vn_floor_run */
	const vn_plan *plan;       /* the reference's, else the candidate's, else NULL. By vn_compare */
	vn_policy      policy;     /* the candidate's precision, where there is a model, or that of --floor. By the floor */
} vn_opened;

/* What was found, in the order of the chapters that fill it. Owned. */
typedef struct vn_result {
	/* contract. Later chapters add lines to notes and warnings. */
	vn_lines       notes, warnings, refusals;
	vn_weights    *weights;    /* those that differ; NULL: a side lists none */

	/* match: one checkpoint per name and step, in execution order; extras last. Later chapters fill them in. */
	vn_checkpoint *point;
	int            n_points;
	int64_t        n_neither;  /* values of the plan, over all steps, that neither side recorded */
	int64_t        hidden;     /* numbers of a token in the reference's model; 0: no tensor says it (count.h) */

	/* measure. */
	bool           bits;       /* measure differing: some limit speaks of it */
	vn_verified    digests;    /* of the stored tensors that were read, of all recordings */

	/* floor. */
	char           floor_from[200]; /* "f16 run of MODEL", "FILE"; empty: none */
	int            n_invalid_floors, first_invalid_floor; /* checkpoints whose floor was rejected; -1 */

	/* pool: steps that are judged together. */
	vn_pool       *pool;
	int            n_pools;
	vn_pooled_small *pooled_small;
	int            n_pooled_small;
	struct vn_channel_pool *channel_pool; /* pool_channels.h */
	int            n_channel_pools;

	/* judge, and the baseline. */
	int            n_status[VN_N_STATUS_WORDS], n_fails;
	int            n_since[VN_N_SINCE];
	bool           within;
	bool           strict;     /* it would be within, but for its warnings */

	/* localise, replay, explain. */
	vn_graph      *graph;
	int            first;      /* first divergence; -1 */
	int           *origins, n_origins;
	bool           replayed;   /* origins are what replay.h says */
	struct vn_explanations *why; /* of the origins (explain.h); NULL: not asked for */
} vn_result;

typedef struct vn_comparison {
	vn_request request;
	vn_opened  opened;
	vn_result  result;
} vn_comparison;

#endif
