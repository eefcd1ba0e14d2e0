/* local.h: the local error of an operation: how far its numbers are from what the reference
 * computes from the same inputs, relative to the error that the precision alone causes there.
 *
 * A is what the reference computes in the candidate's precision, B the same more precisely, and C
 * the candidate's numbers. The local error is C - A, and its floor is A - B, at least one rounding
 * of the format. Both are measured over the whole tensor (nmse), for the worst token, and for the
 * worst element.
 */
#pragma once

#include "compare/comparison/comparison.h"
#include "libref/plan/plan.h"

/* A local error of more floors than this counts as the operation's own. VN_LOCAL_LIMIT: nmse of the
 * whole tensor. VN_PEAK_LIMIT: nmse of the worst token, and squared error of the worst element;
 * these find one wrong token among thousands, and one wrong channel. Correct engines reach at most
 * 3.0 and 5.3 (tests/parity/parity_replay.py). */
#define VN_LOCAL_LIMIT 4.0
#define VN_PEAK_LIMIT  16.0
/* Of a span with a floor of its own, the nmse of the whole tensor; the limits of the worst token
 * and element are smaller in the same proportion. That floor is the mean of a correct engine's
 * error: transformers reaches at most 2 (tests/parity/parity_partial.py). */
#define VN_SPAN_LIMIT 3.0

/* The error of a correct engine at the end of a span (draws.h). */
typedef struct vn_span_floor {
	int    value;            /* of the plan; -1: not known */
	double nmse, token, max; /* of the tensor; of the worst token; largest of an element, not squared */
	double largest;          /* number of the tensor */
	double freedom;          /* degrees of freedom of nmse, as known from so many draws */
} vn_span_floor;

/* Spans of more operations than this are judged only by a floor of their own (vn_span_floor). The
 * floor of one run says too little about them: it can neither clear nor accuse. */
#define VN_SPAN_CLEARED 4

/* Returns the format that value `made` of node n is judged in. Of a run in float64 this is float32
 * where transformers computes in float32: norms of mean squares, the softmax, and the decay and the
 * recurrence of the delta rule. span: the operations that are computed together. */
vn_dtype vn_local_format(const vn_node *n, int made, int span, vn_dtype storage);
/* A value as it is computed, and as the candidate has it; all of one shape. */
typedef struct vn_local_tensors {
	const vn_tensor *a, *b, *c;
	const vn_tensor *r;       /* the reference's own, or NULL */
	const char      *axes;    /* the dims string */
	vn_dtype         storage; /* the candidate's storage format */
	bool             mapped;  /* all are in shared mappings, whose pages are released after use */
	int              threads; /* 0: one per processor */
} vn_local_tensors;

/* Fills local, floor (of the tensor, the worst token and the worst element) and bad of *l, and
 * zeroes the rest. given: b measured against r; NULL without r. Fails only if memory runs out. */
vn_status vn_local_measure(const vn_local_tensors *x, vn_replayed *l, vn_measured *given, vn_error *err);

/* Raises the floors of *most to the distance z - A, where z is the result of another correct
 * implementation on the same inputs. */
vn_status vn_local_other(const vn_tensor *z, const vn_tensor *a, const char *axes, int threads, vn_replayed *most,
                         vn_error *err);
/* If C is closer to the result z of another correct implementation than to A, sets the local error
 * to C - z. */
vn_status vn_local_alone(const vn_tensor *z, const vn_tensor *c, const char *axes, int threads, vn_replayed *l,
                         vn_error *err);
/* Replaces the floors of l by those of the span, at least one rounding to `storage`, and its limits
 * by VN_SPAN_LIMIT, widened by vn_local_chance. */
void      vn_local_take_floor(vn_replayed *l, const vn_span_floor *f, vn_dtype storage);
/* Sets the limits of a span, for so many degrees of freedom; INFINITY: not widened. */
void      vn_local_set_slack(vn_replayed *l, double freedom);
/* Returns the factor by which the mean of so many squares of normal numbers exceeds 1 once in
 * 100,000 times. */
double    vn_local_chance(double freedom);
/* Adds the floors of *most to those of *l, as independent errors. */
void      vn_local_allow(vn_replayed *l, const vn_replayed *most);

/* Returns the local error divided by its floor. */
double vn_local_ratio(const vn_replayed *l);
/* Returns the larger of the worst token's nmse and the worst element's squared error, each divided
 * by its floor. */
double vn_local_worst(const vn_replayed *l);
/* Returns the fraction of the allowed error that is used, over both limits: 1 is the limit. n:
 * elements of the tensor. */
double vn_local_limit_fraction(const vn_replayed *l, int64_t n);
/* Returns the factor by which both limits are widened for n numbers: the floor of a few numbers may
 * be tiny by chance. */
double vn_local_slack(int64_t n);

/* The factor of l: that of its span, or vn_local_slack. */
double vn_local_slack_of(const vn_replayed *l, int64_t n);

/* Returns the smallest error at the end of a span that is beyond its limit, as a share of the
 * tensor's norm. Only if l has a floor of its own. */
double vn_local_least_seen(const vn_replayed *l);

/* For reports: the local error, and same as vn_local_ratio and vn_local_worst. NaN: not replayed,
 * or no number is finite on both sides (vn_local_over_floor is infinite if the operation itself
 * caused that). */
double vn_local_nmse(const vn_checkpoint *p);
double vn_local_over_floor(const vn_checkpoint *p);
double vn_local_peak(const vn_checkpoint *p);
/* The parts of vn_local_peak: the worst token's nmse and the worst element's error, each over its
 * floor. */
double vn_local_token(const vn_checkpoint *p);
double vn_local_element(const vn_checkpoint *p);
/* Returns the larger of both, for a single column in a table. */
double vn_local_shown(const vn_checkpoint *p);
/* Can the replay judge this checkpoint at all? */
bool   vn_local_judges(const vn_checkpoint *p);
/* Is the local error of this checkpoint beyond its limit? */
bool   vn_local_beyond(const vn_checkpoint *p);
/* Is the order of columns the only difference, and are the operations that read the tensor
 * right? */
bool   vn_local_is_order(const vn_checkpoint *p);
