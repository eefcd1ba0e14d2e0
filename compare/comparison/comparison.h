/* comparison.h: the types of a comparison. It declares no function.
 *
 * A vn_comparison has two parts: what was opened for it (vn_opened: the request, two recordings, a
 * floor, a model), which a chapter reads; and the result, in parts that each have one author. Only
 * those who own a comparison, and the list of chapters (compare/chapters/compare.c), see it whole:
 * a chapter takes the parts that it reads and fills, and its header says which. A vn_checkpoint is
 * one tensor name in one step: where it is in both recordings, what was measured, and how it was
 * judged. A report needs vn_opened and a const vn_result.
 *
 * Owner    recordings, limits and options are borrowed and must outlive the comparison.
 */
#pragma once

#include "capture/recording/recording.h"
#include "capture/recording/replayed_file.h"
#include "capture/recording/verify.h"
#include "compare/limits/limits.h"
#include "compare/text/columns.h"
#include "compare/text/lines.h"
#include "libref/plan/policy.h"

/* What a user may allow by name (--allow token_ids,weights). */
/* clang-format off */
typedef enum vn_allow {
	VN_ALLOW_TOKEN_IDS  = 1 << 0, /* and positions */
	VN_ALLOW_CONFIG     = 1 << 1,
	VN_ALLOW_WEIGHTS    = 1 << 2,
	VN_ALLOW_INCOMPLETE = 1 << 3,
	VN_ALLOW_MISSING    = 1 << 4,
	VN_ALLOW_EXTRA      = 1 << 5,
	VN_ALLOW_PRECISION  = 1 << 6, /* a floor in another precision than the candidate's */
	VN_ALLOW_REPLICAS   = 1 << 7, /* ranks that differ in tensors that should be equal */
	/* tensors that contradict their plan; numbers finer than the file's declared precision */
	VN_ALLOW_CLAIMS     = 1 << 8,
	VN_ALLOW_FLOOR      = 1 << 9, /* a floor larger than the format explains (floor_check.h) */
	VN_ALLOW_RANKS      = 1 << 10, /* one rank of several, by itself */
	/* steps that do not follow each other, or that both sides lack */
	VN_ALLOW_STEPS      = 1 << 11,
	VN_ALLOW_ITSELF     = 1 << 12, /* one file as reference and candidate */
	VN_ALLOW_DIGEST     = 1 << 13, /* numbers that contradict their digest */
	/* with --strict: tensors that agreed during the run and were left out */
	VN_ALLOW_AGREED     = 1 << 14,
} vn_allow;
/* clang-format on */

/* The outcome for one checkpoint: "status" in reports. */
typedef enum vn_checkpoint_status {
	VN_WITHIN,  /* measured, inside all its limits */
	VN_OUTSIDE, /* measured, outside at least one */
	/* outside, but accumulated rounding only: every operation up to it was replayed and cleared
	 * (by_operation.h); does not fail */
	VN_ACCUMULATED,
	VN_UNLIMITED, /* measured, no limit but nonfinite applies */
	VN_MISSING,   /* not in the candidate */
	VN_EXTRA,     /* not in the reference */
	VN_EMPTY,     /* has no elements */
	VN_MISSHAPEN, /* shape, axes, basis or rows differ */
	VN_UNREADABLE,
	VN_AGREED, /* not in the candidate: its run found that it agrees, and left it out (left_out.h) */
	VN_EQUAL,  /* equal by its digests, and not read (trusted.h) */
	VN_N_CHECKPOINT_STATUSES
} vn_checkpoint_status;

/* How a checkpoint changed since the baseline (baseline.h), from best to worst. */
typedef enum vn_since {
	VN_NO_BASELINE,
	VN_UNCHANGED, /* within its limits, or allowed */
	VN_FIXED,     /* within its limits, but outside in the baseline */
	VN_BETTER,    /* outside as before, but less */
	VN_KNOWN,     /* outside as before */
	VN_WORSE,
	VN_NEW, /* outside; in the baseline it was within, or broke another limit */
	VN_N_SINCE
} vn_since;

typedef struct vn_check {
	vn_metric      metric;
	vn_form        form;
	double         limit, value; /* value: what the limit was compared with */
	/* for a broken check with a baseline (baseline.h): the best value so far, if has_best */
	double         best;
	bool           has_best;
	bool           holds;
	const vn_rule *rule; /* NULL: built in */
	int            line;
	const char    *note;  /* why there is no value; NULL */
	int            steps; /* number of pooled steps; 0: this checkpoint alone */
} vn_check;

/* A check as a checkpoint keeps it (checks.h). */
typedef struct vn_kept_check {
	const vn_check *terms; /* all fields of the check except its value */
	double          value;
} vn_kept_check;

/* The result of recomputing a checkpoint from the candidate's own inputs (replay.h); nmse unless
 * stated otherwise. */
typedef struct vn_replayed {
	double          local, floor;
	double          inherited;                /* NaN: no number is finite on both sides */
	double          local_token, floor_token; /* nmse of the worst token */
	double          local_max, floor_max;     /* largest error of one element, not squared */
	double          gain;                     /* NaN: the error of the inputs is zero or not known */
	int64_t         bad;                      /* not finite on one side only */
	int64_t         other_ids;                /* of whole numbers: how many are other ones */
	int64_t         flips;                    /* of experts: how many choices are not the reference's */
	bool            not_measured; /* no number is finite on both sides: the local errors are 0, and not measured */
	/* factor on both limits, of a span with a floor of its own, or of a norm whose rows err as a
	 * whole; 0: vn_local_slack */
	double          slack;
	/* error of the worst channel over what chance allows, of such a span: 1 is the limit; and of
	 * the steps of its pool up to this one, 0 if it is not in its sample */
	double          channel, channel_of_steps;
	bool            not_widened;         /* the steps judged with it are beyond the limit (pool_steps.h) */
	int64_t         independent_numbers; /* elements; of probabilities, those that carry the sum of squares (count.h) */
	int             span;                /* number of nodes from captured tensors to here, including its own */
	int             charged_to;          /* the earlier checkpoint charged with the span; -1 */
	bool            recorder_fault;      /* the capture is wrong: its readers used other numbers */
	vn_column_order columns;             /* the order of its columns */
	bool            wrong_in_order; /* its columns are in another order, and in the reference's order it is wrong too */
	/* it differs, and what is computed without it does not: another order of work (replayed.h) */
	bool            another_order;
} vn_replayed;

/* Where numbers left the range of a format (overflow.h). */
typedef struct vn_overflow {
	vn_dtype format;
	double   largest, reached; /* reached 0: no overflow is known */
	int64_t  term, terms;      /* the running sum reached it at term `term` of `terms`; 0: only the result did */
	double   whole;            /* the sum of all */
} vn_overflow;

typedef struct vn_checkpoint {
	const char          *name; /* borrowed from the recording */
	int                  step, order, layer;
	int                  value;           /* in the comparison's plan, aliases resolved; -1 */
	int                  ref, cand;       /* entries; -1: absent */
	bool                 scores;          /* logits */
	int                  pooled_logits;   /* its pool for metrics of logits; -1: none */
	int                  pooled_small;    /* its pool for multiples of the floor; -1: none */
	int                  channels;        /* its pool for worst_channel_* (pool_channels.h); -1: none */
	bool                 in_channel_pool; /* a row of it is in that pool's sample */
	vn_checkpoint_status status;
	bool                 fails;           /* outside the limits, whatever the status */
	char                *detail;          /* one line if not measured, or if invalid_floor; NULL */
	char                *contents;        /* misshapen: what it holds instead; NULL: not known */
	vn_measured          m;               /* n == 0: not measured */
	int64_t              rows;            /* rows of logits, if measured */
	int64_t              first_token;     /* of row 0, in its call: not 0 if other rows were kept */
	bool                 not_run;         /* the candidate's run was stopped before it */
	bool                 partial_metrics; /* not all metrics are known; limits of the others do not apply */
	const char          *vacuous;         /* why nothing was compared; NULL */
	/* of a second recording (name_map.h): the checkpoint that it repeats, if the candidate had
	 * overwritten its numbers; NULL */
	const char          *overwritten;
	bool                 has_floor;
	bool                 invalid_floor; /* the floor was rejected: it or the reference is wrong */
	double              *floor;         /* (VN_N_METRICS) if has_floor; NaN: not known */
	vn_kept_check       *check;         /* (n_checks), for vn_check_at */
	int                  n_checks;
	int                  worst;  /* the broken check that is farthest outside; -1 */
	bool                 origin; /* its own operation is at fault */
	bool                 replayed;
	vn_replayed          replay;
	vn_overflow          overflow;
	vn_since             since;
	double               was; /* value of the worst check in the baseline; NaN: none */
} vn_checkpoint;

/* The logits of all single-token steps. One row says nothing about a mean or a share, and its
 * divergence cannot be divided by the floor's, which may be almost 0 by chance. So these metrics
 * are computed over all such steps, and judged once. */
typedef struct vn_pooled_logits {
	const char *name;           /* name of the checkpoints */
	int         n, first, last; /* steps; checkpoints of the first and the last */
	int         worst;          /* checkpoint of the largest divergence, which gets the checks */
	/* only metrics of logits; floor: NaN if a step has none */
	double      value[VN_N_METRICS], floor[VN_N_METRICS];
	double      argmax_strict, kl_half; /* as in vn_measured */
	int64_t     rows, distinct;         /* of the reference's tokens (count.h) */
} vn_pooled_logits;

/* For fewer numbers than this, the ratio of two errors depends on chance: the floor may be tiny
 * because a few roundings happened to be small. Measured on correct runs, one token at a time:
 * with 6 numbers, 1 ratio in 300 is over 4, the largest 17; from 128 numbers on,
 * none of 3700 is over 3.4. A larger row that is computed from fewer numbers (the hidden size of a
 * small model) varies as much. So the single-token steps of such a tensor are judged together,
 * once, in limits that are multiples of the floor. */
enum { VN_SMALL_SAMPLE = 128 };

/* One of those steps; its nmse comes first, for vn_ascending. */
typedef struct vn_small_step {
	double nmse, dd, rr; /* dd, rr: sums of squares of the difference and the reference */
	double below;        /* nmse of this step and all with a smaller one together */
} vn_small_step;

typedef struct vn_pooled_small {
	int            n;       /* steps */
	int64_t        numbers; /* in all of them */
	int            worst;   /* checkpoint of the step farthest outside, as in vn_pooled_logits */
	bool           outside; /* the steps together break a limit */
	double         value[VN_N_METRICS], floor[VN_N_METRICS]; /* where vn_pooled_small_has; else NaN */
	vn_small_step *step;                                     /* (n), nmse ascending */
} vn_pooled_small;

/* When operations are replayed, if there is a model. */
typedef enum vn_replay_when {
	VN_REPLAY_OUTSIDE, /* if something is outside */
	/* also if nothing is, unless the candidate's weights are known to differ from the model's */
	VN_REPLAY_SAME,
	VN_REPLAY_ALWAYS,
	VN_REPLAY_NEVER,
} vn_replay_when;

/* The chapter that explains the origins. The caller supplies it, so that a program that does not
 * explain does not link it. explain: the caller frees *why, also after a failure. why may be
 * NULL in free. */
struct vn_opened;
struct vn_result;
struct vn_all_findings;
typedef struct vn_explainer {
	vn_status (*explain)(const struct vn_opened *o, const struct vn_result *r, struct vn_all_findings **why,
	                     vn_error *err);
	void (*free)(struct vn_all_findings *why);
} vn_explainer;

typedef struct vn_compare_options {
	/* globs, each of which must match something; none: all checkpoints */
	const char *const  *points;
	int                 n_points;
	unsigned            allow;
	int                 threads; /* 0: one per processor */
	bool                bitwise; /* formats must be equal too; the limits are vn_limits_bitwise */
	const char         *model;   /* for the floor and the replay; NULL: none */
	vn_replay_when      replay;
	bool                replay_routing; /* with a model: replay/routing.h */
	/* finds the known mistake that reproduces each origin: &vn_catalogue_explainer of explain.h;
	 * NULL: not requested */
	const vn_explainer *explain;
	bool                strict;       /* a warning counts as outside */
	bool                trust;        /* what is equal by its digests is not read (trusted.h) */
	const char         *baseline;     /* report of an earlier comparison (baseline.h); NULL */
	const vn_policy    *precision;    /* the candidate's, instead of what it records; NULL */
	const vn_policy    *floor_policy; /* instead of the candidate's own; NULL */
} vn_compare_options;

typedef struct vn_graph vn_graph; /* localise.c */

struct vn_checkpoints;
/* Stops the replay when more than `most` of the checkpoints that count have a larger local error
 * than in `than`, a comparison of the same checkpoints. */
typedef struct vn_bound {
	const struct vn_checkpoints *than;
	const bool                  *counts; /* (than->n) */
	int                          most;
} vn_bound;

/* The request. Borrowed; set before vn_compare, which changes the limits as compare.h says. */
typedef struct vn_request {
	const vn_compare_options *options;
	vn_limits                *limits;
	/* command-line arguments to compare the same again, without --allow: " ref.h5 cand.h5 --names
	 * hf"; NULL: none */
	const char               *again;
	/* the candidate's precision as its numbers show it, where nobody declared one */
	bool                      infers;
	vn_policy                 inferred;
	bool                      unexplained; /* without the chapter explain: the caller runs it later */
	bool                      only_local;  /* the local errors alone, without any floor of a run */
	bool                      sampled;     /* the recordings have some logits only (libref/plan/vocab_part.h) */
	const vn_bound           *bound;       /* where to stop the replay; NULL */
} vn_request;

/* The inputs of a chapter, which it reads: the request, and what was opened for it. Set by the
 * owner of the comparison, and by the chapters named. */
typedef struct vn_opened {
	vn_request        request;
	vn_recording     *ref, *cand, *floor; /* floor: NULL without --floor */
	vn_replayed_file *replayed;           /* NULL without --replayed */
	vn_model         *model;              /* from options->model; NULL. Opened by the floor */
	/* the reference's, else the candidate's, else NULL. Set by vn_compare */
	const vn_plan    *plan;
	/* precision of the candidate (with a model), or of --floor. Set by the floor */
	vn_policy         policy;
} vn_opened;

/* Lines for the user, to which every chapter may add. */
typedef struct vn_remarks {
	vn_lines notes, warnings, refusals;
} vn_remarks;

/* One checkpoint per name and step, in execution order; extras last. The match makes them, and
 * later chapters fill them. */
typedef struct vn_checkpoints {
	vn_checkpoint *of;
	int            n;
	void          *terms; /* of their checks: checks.h */
} vn_checkpoints;

/* What has no counterpart. By the match. */
typedef struct vn_unpaired {
	int         n_not_run; /* the candidate's run was stopped before these checkpoints (judge_left_out.h) */
	int64_t     n_neither; /* values of the plan, over all steps, that neither side recorded */
	/* shipped name maps that know the names that only one side has: the candidate's, the
	 * reference's; NULL */
	const char *cand_map, *ref_map;
	bool        misspelt; /* a name that only one side has is close to one that only the other side has */
} vn_unpaired;

/* What is judged together: pool_channels.h, pooled_small.h. */
typedef struct vn_pools {
	/* width of the reference's residual stream; 0: no tensor shows it (judge/count.h) */
	int64_t                 hidden;
	struct vn_channel_pool *channel_pool;
	int                     n_channel_pools;
	vn_pooled_logits       *pooled_logits;
	int                     n_pooled_logits;
	vn_pooled_small        *pooled_small;
	int                     n_pooled_small;
} vn_pools;

/* By the floor. */
typedef struct vn_floor_result {
	char from[200];                /* "the reference engine in f16 on MODEL"; empty: none */
	int  n_invalid, first_invalid; /* checkpoints whose floor was rejected; the first; -1 */
} vn_floor_result;

/* By localise; the origins also by replay. */
typedef struct vn_localised {
	vn_graph            *graph;
	struct vn_run_graph *run_graph; /* judge/localise.c */
	int                  first;     /* first divergence; -1 */
	int                 *origins, n_origins;
	/* behind the origins in that list: checkpoints after an operation that is wrong that were
	 * captured wrongly. By replay */
	int                  n_captured;
} vn_localised;

typedef struct vn_conclusion {
	int  n_status[VN_N_CHECKPOINT_STATUSES], n_fails;
	bool within;
	bool strict; /* outside only because of warnings (--strict) */
} vn_conclusion;

/* What another choice of experts does to a checkpoint, and what arithmetic does, as nmse
 * (routing.h). name NULL: not measured. */
typedef struct vn_routing_parts {
	const char *name;
	double      routing, arithmetic, together;
} vn_routing_parts;

/* The results, each part filled by one chapter, in their order (compare/chapters/compare.h). Owned.
 * A later chapter takes the parts that it reads as const. */
typedef struct vn_result {
	vn_remarks                   remarks;
	struct vn_weights           *weights; /* differences (weights.h); NULL: a side lists no weights */
	bool                         swapped; /* may the sides be swapped: has the reference fewer digits (precision.h)? */
	vn_checkpoints               checkpoints;
	vn_unpaired                  unpaired;
	vn_verified                  digests; /* of the stored tensors that were read, over all recordings */
	vn_pools                     pools;
	vn_floor_result              floor;
	bool                         replayed; /* the origins are those of replay.h */
	vn_routing_parts             routing;
	/* what was found of each result of opened.replayed (compare/replayed/replayed.h); NULL */
	struct vn_replayed_findings *judged;
	int                          n_since[VN_N_SINCE]; /* by the baseline */
	vn_localised                 localised;
	/* the explanations of the origins (findings.h), and who frees them; NULL: not requested */
	struct vn_all_findings      *why;
	const vn_explainer          *explainer;
	vn_conclusion                verdict;
} vn_result;

typedef struct vn_comparison {
	vn_opened opened;
	vn_result result;
} vn_comparison;
