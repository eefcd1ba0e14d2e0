/* compare.h: one recording judged by another.
 *
 * vn_compare runs the chapters of a comparison in order (contract, match,
 * measure, judge, localise) and leaves everything a report needs in a
 * vn_comparison. It fails closed: whatever is missing, extra, empty, misshapen,
 * unreadable or not finite is a finding, and a finding is outside the limits
 * unless a person allowed it by name.
 *
 * Owner    recordings, limits and options are borrowed and must outlive it.
 * Errors   VN_ERR_MISMATCH: not comparable; `refusals` says why, a line each.
 */
#ifndef VN_COMPARE_COMPARE_H
#define VN_COMPARE_COMPARE_H

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

/* "token_ids,missing" into a set; the word that is none, else NULL. */
const char *vn_allow_parse(const char *list, unsigned *set);
extern const char *const vn_allow_names; /* "token_ids|config|...", for help */

typedef enum vn_status_word {
	VN_WITHIN,     /* measured, inside all its limits */
	VN_OUTSIDE,    /* measured, outside at least one */
	VN_UNLIMITED,  /* measured, no limit but nonfinite applies */
	VN_MISSING,    /* not in the candidate */
	VN_EXTRA,      /* not in the reference */
	VN_EMPTY,      /* has no elements */
	VN_MISSHAPEN,  /* shape, axes, basis or rows differ */
	VN_UNREADABLE,
	VN_N_STATUS_WORDS
} vn_status_word;

const char *vn_status_text(vn_status_word s);

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

/* How much of its limit a value uses: 1 is the limit, more is outside; INFINITY where
 * the value is none, or the limit is 0 and the value is not. */
double vn_check_used(const vn_check *k);

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

typedef struct vn_checkpoint {
	const char    *name;      /* borrowed from the recording */
	int            step, order, layer;
	int            value;     /* of the comparison's plan, aliases resolved; -1 */
	int            ref, cand; /* entries; -1: absent */
	bool           scores;    /* logits */
	int            pool;      /* whose steps it is judged with, of the metrics of logits; -1: by itself */
	int            few;       /* and of the multiples of the floor; -1: by itself */
	int            channels;  /* and of worst_channel_*, which m has at a step that is charged with them (pool_channels.h); -1: by itself */
	vn_status_word status;
	bool           fails;     /* outside the limits, whatever the status */
	char          *detail;    /* one line for statuses that are not measured, and for what is unfounded; NULL: none */
	char          *holds;     /* of a misshapen one what its numbers are: the reference's in another order, or another checkpoint's; NULL: not known */
	vn_measured    m;         /* n == 0: not measured */
	int64_t        rows;      /* of its last axis, when it holds scores and is measured */
	const char    *hollow;    /* why nothing was compared; NULL */
	bool           has_floor;
	bool           unfounded; /* its floor is none: the reference, or the floor, is wrong there */
	double        *floor;     /* (VN_N_METRICS) where it has one; NaN: not known. vn_floor_value */
	vn_check      *check;
	int            n_checks;
	int            worst;     /* the broken check that is farthest out; -1 */
	bool           origin;
	bool           replayed;
	vn_replayed    replay;
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

typedef struct vn_few {
	int     n;                    /* steps */
	int64_t numbers;              /* in all of them */
	int     worst;                /* checkpoint of the step that is farthest out: as in vn_pool */
	bool    outside;              /* one of them is broken, and by all the steps */
	double  value[VN_N_METRICS], floor[VN_N_METRICS]; /* where vn_few_have; else NaN */
	double *nmse, *below;         /* (n) of the steps, least first; and of that many of them together */
} vn_few;

/* Is this one taken over the steps of a small tensor? */
bool vn_few_have(vn_metric m);
/* All together break a limit of so many floors: is a step of that nmse one that they do so by? It is where the smaller ones together break none,
 * and with it they do, or where it is twice as far off as all. A healthy step's own ratio is luck, whatever another one does. */
bool vn_few_by_it(const vn_few *g, double nmse, double floors);

typedef struct vn_compare_options {
	const char *const *points; /* globs, each of which must match something; none: everything */
	int         n_points;
	unsigned    allow;
	int         threads;       /* 0: one a processor */
	bool        bitwise;       /* formats must be the same too; limits are vn_limits_bitwise */
	const char *model;         /* compute the floor with these weights, and replay what is outside; NULL */
	bool        replay;        /* also where everything is within its limits */
	bool        explain;       /* which known mistake reproduces each origin (explain.h) */
	bool        strict;        /* a warning makes what is within outside */
	const char *baseline;      /* report of an earlier comparison (baseline.h); NULL */
	const vn_policy *floor_policy; /* instead of the candidate's own; NULL */
} vn_compare_options;

typedef struct vn_graph vn_graph; /* localise.c */

typedef struct vn_comparison {
	vn_recording  *ref, *cand, *floor; /* floor: NULL without --floor */
	vn_limits     *limits;
	vn_model      *model;      /* options->model, opened; NULL */
	vn_policy      policy;     /* the candidate's, where there is a model, or that of --floor */
	bool           replayed;   /* origins are what replay.h says */
	const vn_compare_options *options;
	const vn_plan *plan;       /* the reference's, else the candidate's, else NULL */
	vn_checkpoint *point;      /* in execution order; extras last */
	int            n_points;
	vn_pool       *pool;
	int            n_pools;
	vn_few        *few;
	int            n_few;
	struct vn_channel_pool *channel_pool; /* pool_channels.h */
	int            n_channel_pools;
	int            n_status[VN_N_STATUS_WORDS], n_fails;
	vn_verified    digests;    /* of the stored tensors that were read, of all recordings */
	int            n_since[VN_N_SINCE];
	int64_t        hidden;     /* numbers of a token in the reference's model; 0: no tensor says it (count.h) */
	int64_t        n_neither;  /* values of the plan, over all steps, that neither side recorded */
	int            first;      /* first divergence; -1 */
	int            n_unfounded, first_unfounded; /* checkpoints whose floor is none; -1 */
	int           *origins, n_origins;
	vn_graph      *graph;
	struct vn_explanations *why; /* of the origins (explain.h); NULL: not asked for */
	char           floor_from[200]; /* "f16 run of MODEL", "FILE"; empty: none */
	vn_weights    *weights;    /* those that differ; NULL: a side lists none */
	vn_lines       notes, warnings, refusals;
	bool           bits;       /* measure differing: some limit speaks of it */
	bool           within;
	bool           strict;     /* it would be within, but for its warnings */
} vn_comparison;

/* Opens ref, cand and, unless NULL, floor. */
vn_status vn_comparison_open(vn_comparison *c, const char *ref, const char *cand, const char *floor, vn_error *err);
/* As options->allow has it (options NULL: nothing is allowed), of a recording that is opened for c: before anything is read of it. */
void      vn_comparison_allow(const vn_comparison *c, vn_recording *r);
/* c: zeroed, with ref, cand, floor, limits and options filled in. Whatever
 * happens, vn_comparison_finish afterwards. */
vn_status vn_compare(vn_comparison *c, vn_error *err);
/* The same where one of the two is nothing (vn_derive_nothing): all that the other holds is missing, or extra. */
vn_status vn_compare_alone(vn_comparison *c, vn_error *err);
void      vn_comparison_finish(vn_comparison *c);
/* The same, and limits and recordings are closed. */
void      vn_comparison_close(vn_comparison *c);

/* ---- the chapters --------------------------------------------------------- */

/* Are b's tokens, config and weights a's? who: what b is, for the lines. *weights: what
 * vn_contract_weights found; NULL: not asked. */
vn_status vn_contract(const vn_recording *a, const vn_recording *b, const char *who, const vn_compare_options *o, vn_weights **weights,
                      vn_lines *notes, vn_lines *refusals, vn_error *err);
/* The weights alone, by their tables and, with o->model, by the numbers of that model as far as it is the one
 * or the other's. *weights: the table, the caller's, NULL where a side lists none; weights NULL: not asked. */
vn_status vn_contract_weights(const vn_recording *a, const vn_recording *b, const char *who, const vn_compare_options *o, vn_weights **weights,
                              vn_lines *notes, vn_lines *refusals, vn_error *err);
/* The same of two configs alone, as text; NULL: not known. */
void      vn_contract_config(const char *ref, const char *other, const char *who, unsigned allow, vn_lines *notes,
                             vn_lines *refusals);
/* The plan that a config.json means, the caller's; NULL: none that is known. */
vn_plan  *vn_contract_plan(const char *config);
/* Is every tensor of r what its own plan says of that name? */
vn_status vn_contract_claims(const vn_recording *r, const char *who, unsigned allow, vn_lines *notes, vn_lines *refusals, vn_error *err);
/* Are the candidate's positions the reference's, which count from 0, and one number more (*by; else 0)? A replay then computes with the
 * reference's: which positions an engine gives its tokens is what such a comparison is to tell. */
bool      vn_positions_moved(const vn_comparison *c, int64_t *by);
/* Do the steps of the recordings follow each other, and has one side at least every token that went in? What does not hold is a
 * refusal, and it is not an error yet. */
vn_status vn_check_steps(vn_comparison *c, vn_error *err);
/* Are r's numbers of the precision that it says it ran in? Where most of what is looked at is coarser, a warning; where finer, a
 * refusal, and it is not an error yet. */
vn_status vn_check_precision(vn_comparison *c, const char *who, vn_recording *r, vn_error *err);
/* Are these the same numbers? By digest, or between formats by statistics. */
bool      vn_weights_same(const vn_weight_row *x, const vn_weight_row *y);
/* Sees other as the reference is, where both declare what they have: axes in another
 * order, rows of tokens that only one of them kept (those are left out of both). */
vn_status vn_align(vn_comparison *c, vn_recording *other, const char *who, vn_error *err);
/* The same of a floor: what is compared already stays as it is, so rows are cut from the floor alone. */
vn_status vn_align_to(vn_comparison *c, vn_recording *floor, const char *who, vn_error *err);
/* Fills point: names, entries, and the status of those that cannot be measured. */
vn_status vn_match(vn_comparison *c, vn_error *err);
/* n_neither, of what was matched and asked for. */
vn_status vn_count_neither(vn_comparison *c, vn_error *err);
/* c->policy: what was asked for, what the candidate declares, or else the format that most of its tensors are in. */
void      vn_assume_policy(vn_comparison *c);
/* hollow of every measured checkpoint: both sides hold one number everywhere, or the same point's of another layer. */
vn_status vn_hollow(vn_comparison *c, vn_error *err);
/* floor of every measured checkpoint, from the recording c->floor or from a run
 * of the reference engine on options->model; nothing when there is neither. */
vn_status vn_floor(vn_comparison *c, vn_error *err);
/* pool, of what is measured. */
vn_status vn_pool_scores(vn_comparison *c, vn_error *err);
/* channel_pool: worst_channel_* of steps of few tokens, together, to the first that is off. */
vn_status vn_pool_channels(vn_comparison *c, vn_error *err);
/* few, of what is measured and has a floor. */
vn_status vn_take_few(vn_comparison *c, vn_error *err);
/* status, checks and fails of a measured checkpoint. */
vn_status vn_judge(vn_comparison *c, vn_checkpoint *p, vn_error *err);
/* holds of misshapen checkpoints. Errors: memory. */
vn_status vn_tell_misshapen(vn_comparison *c, vn_error *err);
/* first and origins. */
vn_status vn_localise(vn_comparison *c, vn_error *err);
/* graph, of what is measured: for vn_inputs_of. Stays NULL where the steps are too many. */
vn_status vn_graph_build(vn_comparison *c, vn_error *err);
void      vn_comparison_drop_graph(vn_comparison *c);

/* Measure pairs of checkpoints, many at a time: other's tensors against the
 * reference's. Entry i of other belongs to point i; -1: not this one. done is
 * called for each that was measured; unread for each whose numbers cannot be
 * read, with the reason. */
typedef struct vn_batch {
	vn_recording *other;
	int         (*entry)(vn_comparison *c, const vn_checkpoint *p);
	void        (*done)(vn_checkpoint *p, const vn_measured *m);
	void        (*unread)(vn_checkpoint *p, const char *why);
} vn_batch;
vn_status vn_measure_points(vn_comparison *c, const vn_batch *batch, vn_error *err);

/* The tensor of an entry; vn_recording_release gives it back. */
vn_status vn_entry_tensor(vn_recording *r, int entry, vn_tensor *t, vn_error *err);
/* Fill floor from what the floor run was measured to be. Without memory for it it is not known, and what is limited by it fails. */
void      vn_floor_set(vn_checkpoint *p, const vn_measured *m);
/* To the floor comes what another run, whose errors have nothing to do with the first one's, was measured to be. */
void      vn_floor_join(vn_checkpoint *p, const vn_measured *m);
/* Two runs' errors in this metric together. */
double    vn_floor_sum(vn_metric m, double x, double y);
double    vn_floor_value(const vn_checkpoint *p, vn_metric m); /* NaN: not known */
/* Where products alone round more than float32 does (vn_products), no floor is less than what another order of sums in float32 leaves:
 * what comes before the first of them, or behind a weight of float32, has no other. 0: of another precision, or metric. */
double    vn_floor_of_sums(const vn_comparison *c, vn_metric m);
/* What keeps it from being measured, at most 199 bytes and fit to be shown. Without memory nothing. */
__attribute__((format(printf, 2, 3)))
void      vn_checkpoint_say(vn_checkpoint *p, const char *format, ...);

/* The recorded values a checkpoint was computed from: indices into point of
 * the nearest ancestors that were compared, through those that were not.
 * Returns how many (at most max); -1 when no plan knows it. After vn_localise. */
int       vn_inputs_of(const vn_comparison *c, int point, int *input, int max);

#endif
