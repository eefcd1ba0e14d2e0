/* score.c: see score.h. */
#include "compare/trial/score.h"
#include "compare/trial/trial_apply.h"
#include "compare/replay/reference_variants.h"
#include "compare/replayed/floors.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double vn_trial_residual(const vn_trial *h)
{
	return h->limit_fraction * VN_LOCAL_LIMIT;
}

static double residual_shown(const vn_trial *h)
{
	const double left = vn_trial_residual(h);
	return left > VN_EXPLAIN_LEAST ? left : VN_EXPLAIN_LEAST;
}

/* Are its numbers computed from the slots of a cache, in place of a plan? */
static bool is_of_slots(const vn_trial *h)
{
	switch (h->applied.kind) {
	case VN_BY_SLOTS:
	case VN_BY_BLOCKS:
	case VN_BY_CACHED:
	case VN_BY_CHANGED:
	case VN_BY_ONE_CACHED: return true;
	default: return false;
	}
}

/* The largest limit_fraction of a trial that explains an error of `was`. chosen: it is one of many
 * that were tried. */
static double most_left(double was, bool chosen)
{
	const double most = was / (chosen ? 16 : 4);
	return most < 1 ? most : 1;
}

double vn_findings_limit(const vn_findings *x)
{
	const double was = x->unmodified.limit_fraction;
	return most_left(was, !x->lent && (x->fitted || was < 4));
}

bool vn_case_fits(const vn_case *t, const vn_trial *h)
{
	const double most = h->lent ? most_left(t->x->unmodified.limit_fraction, false) : vn_findings_limit(t->x);

	return most > 0 && h->limit_fraction <= most && /* without an error there is nothing to explain */
	       !(h->residual.local > t->x->unmodified.residual.local / 2); /* a wide floor proves no layout */
}

bool vn_case_answered(const vn_case *t)
{
	return t->x->n && vn_case_fits(t, &t->x->by[0]);
}

/* ---- one trial ------------------------------------------------------------------------- */

/* Inserts h into the list, which is sorted by what is left, least first, and limited in length. */
void vn_case_keep(vn_findings *x, const vn_trial *h)
{
	int at = x->n;

	while (at > 0 && (h->limit_fraction < x->by[at - 1].limit_fraction || isnan(x->by[at - 1].limit_fraction)))
		at--;
	if (at == VN_EXPLAIN_KEPT)
		return;
	const int move = (x->n < VN_EXPLAIN_KEPT ? x->n : VN_EXPLAIN_KEPT - 1) - at;
	memmove(x->by + at + 1, x->by + at, (size_t)move * sizeof *x->by);
	x->by[at] = *h;
	x->n += x->n < VN_EXPLAIN_KEPT;
}

/* Masked keys have probability 0 in every implementation, without rounding. Counts keys that a
 * trial masks (own is 0, and was not without it) although the candidate gives them a
 * probability that did not underflow, in its own format or, whatever the file holds, in that of its
 * run, to which own is rounded. */
static int64_t count_unmasked(const vn_case *t, const vn_tensor *own)
{
	enum { SUMMED_AT_ONCE = 512 };
	const vn_tensor *cand = &t->site->cand, *from[] = { own, &t->own, cand };
	const vn_node   *n = &t->site->plan->node[vn_case_node(t)];
	const bool       half = cand->dtype == VN_F16 || t->opened->policy.storage == VN_F16;
	const double     least = half ? 0x1p-14 : 0x1p-100;
	const int64_t    all = vn_shape_count(&cand->shape);
	double           x[3][SUMMED_AT_ONCE];
	int64_t          count = 0;

	if (n->op != VN_OP_ATTENTION || n->out[VN_ATTN_PROBS] != t->site->target || !t->own.data ||
	    own->data == t->own.data)
		return 0;
	for (int64_t at = 0; at < all; at += SUMMED_AT_ONCE) {
		const int64_t some = all - at < SUMMED_AT_ONCE ? all - at : SUMMED_AT_ONCE;
		for (int i = 0; i < 3; i++)
			vn_tensor_numbers(from[i], at, some, x[i]);
		for (int64_t i = 0; i < some; i++)
			count += x[0][i] == 0 && x[1][i] > 0 && x[2][i] >= least;
	}
	return count;
}

/* Sets limit_fraction from the residual. */
static void put_fraction(const vn_case *t, vn_trial *h)
{
	h->limit_fraction = vn_local_limit_fraction(&h->residual, t->result->checkpoints.of[t->x->checkpoint].m.n);
}

/* Does the checkpoint end a span of several operations, whose floor the replay drew (draws.h)? A
 * correct engine's roundings inside it are those draws, under any plan. */
static bool is_drawn(const vn_case *t)
{
	return t->site->n_span > 1 && t->result->checkpoints.of[t->x->checkpoint].replay.slack > 0;
}

static void take_floor(const vn_case *t, vn_replayed *l)
{
	const vn_replayed *r = &t->result->checkpoints.of[t->x->checkpoint].replay;
	l->floor = r->floor;
	l->floor_token = r->floor_token;
	l->floor_max = r->floor_max;
	l->slack = r->slack;
}

/* Of a checkpoint without a plan. */
static void score_by_floors(const vn_case *t, const vn_tensor *own, const vn_tensor *fine, vn_trial *h)
{
	const vn_floor_tensors x = {
		.cand = &t->site->cand, .expected = fine, .floor = own, .format = t->format, .allow = t->allow
	};
	vn_floor_slope slope;

	vn_floors_measure(&x, &h->residual, &slope);
	h->limit_fraction = vn_local_limit_fraction(&h->residual, h->residual.independent_numbers);
}

static int order_ids(const void *a, const void *b)
{
	const float *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* A copy with each row in ascending order, to be freed. */
static vn_tensor sorted_ids(const vn_tensor *ids)
{
	const int64_t n = vn_shape_count(&ids->shape), width = ids->shape.dim[ids->shape.rank - 1];
	float        *x = vn_alloc((size_t)n + 1, sizeof *x);

	for (int64_t i = 0; i < n; i++)
		x[i] = (float)vn_tensor_number(ids, i);
	for (int64_t i = 0; i < n; i += width)
		qsort(x + i, (size_t)width, sizeof *x, order_ids);
	return (vn_tensor) { .dtype = VN_F32, .shape = ids->shape, .data = x };
}

static void score_by_plan(vn_case *t, const vn_tensor *own, const vn_tensor *fine, const vn_tensor *cand, vn_trial *h)
{
	const vn_plan   *p = t->site->plan;
	const vn_dtype   format = vn_local_format(&p->node[vn_case_node(t)], t->site->target, t->site->n_span,
	                                          t->opened->policy.storage);
	const int        threads = t->opened->request.options->threads;
	vn_error        *err = vn_case_error(t);
	vn_local_tensors x = {
		.a = own, .b = fine, .c = cand, .axes = t->site->axes, .storage = format, .threads = threads
	};
	if (vn_case_made(t, vn_local_measure(&x, &h->residual, NULL, err)) && is_drawn(t)) {
		take_floor(t, &h->residual);
		vn_case_made(t, vn_local_alone(fine, x.c, x.axes, threads, &h->residual, err));
	}
	h->residual.bad += count_unmasked(t, own);
	put_fraction(t, h);
}

void vn_score_numbers(vn_case *t, const vn_tensor *own, const vn_tensor *fine, vn_trial *h)
{
	if (!t->site->plan) {
		score_by_floors(t, own, fine, h);
	} else if (t->site->plan->node[vn_case_node(t)].op == VN_OP_TOP_K) { /* a row is a set */
		VN_ENDS(vn_tensor_free) vn_tensor a = sorted_ids(own), b = sorted_ids(fine), c = sorted_ids(&t->site->cand);
		score_by_plan(t, &a, &b, &c, h);
	} else {
		score_by_plan(t, own, fine, &t->site->cand, h);
	}
}

/* Widens the floor of h by these errors. */
static void allow_errors(const vn_case *t, vn_trial *h, const vn_replayed *by)
{
	vn_local_allow(&h->residual, by);
	put_fraction(t, h);
}

/* A plan's node of a node of the span. */
static int node_in(const vn_case *t, const vn_plan *plan, int span)
{
	const int value = t->site->plan->node[span]
	                      .out[0]; /* a changed plan has the same values but may have additional nodes */
	return plan->value[value].node;
}

/* A plan that was tried, and its result computed as the reference does. */
typedef struct tried_plan {
	const vn_plan   *plan;
	const vn_tensor *weights, *own;
} tried_plan;

/* Widens the floor of h by the plan's result with correct implementation i of each node. */
static bool allow_variant(vn_case *t, const tried_plan *p, int i, vn_replayed *l, vn_replayed *most)
{
	const int   threads = t->opened->request.options->threads;
	const char *axes = t->site->axes;
	vn_error   *err = vn_case_error(t);
	vn_tensor   z;

	if (!vn_case_made(t, vn_recompute_run_variant(t->recompute, p->plan, p->weights, i, &z, err)))
		return false;
	if (t->part)
		vn_head_part_splice(t->part, &z, p->own);
	/* If the numbers are exactly those of this implementation, it is the candidate's own. The floor
	 * of a format with few digits could hide a mistake; exact numbers do not. */
	const bool done = vn_case_made(t, vn_local_alone(&z, &t->site->cand, axes, threads, l, err)) &&
	                  (vn_recompute_variant_alone(t->recompute, p->plan, i) ||
	                   vn_case_made(t, vn_local_other(&z, p->own, axes, threads, most, err)));
	vn_tensor_free(&z);
	return done;
}

/* Widens the floor of h by all other correct implementations: the candidate may be one of them with
 * the same mistake. */
static void allow_variants(vn_case *t, const tried_plan *p, vn_trial *h, vn_replayed *variants)
{
	const vn_plan     *plan = p->plan;
	const vn_replayed *r = &t->result->checkpoints.of[t->x->checkpoint].replay;
	vn_replayed        most = { 0 };
	const int         *span = t->site->span, n = t->site->n_span;
	int                others = 0;

	for (int k = 0; k < n && !is_drawn(t); k++) {
		const int of = vn_reference_variants_count(&plan->node[node_in(t, plan, span[k])], t->opened->policy);
		others = of > others ? of : others;
	}
	for (int i = 0; i < others; i++)
		if (!allow_variant(t, p, i, &h->residual, &most))
			return;
	vn_local_allow(&h->residual, &most);
	if (variants)
		*variants = most;
	if (plan->node[plan->value[t->site->target].node].op == VN_OP_DELTA_RULE) {
		if (!others)
			vn_local_allow(&h->residual, &t->reference_variants);
		/* The floor is at least the replay's floor, which includes rounding of the inputs. */
		h->residual.floor = fmax(h->residual.floor, r->floor);
		h->residual.floor_token = fmax(h->residual.floor_token, r->floor_token);
		h->residual.floor_max = fmax(h->residual.floor_max, r->floor_max);
	}
	put_fraction(t, h);
}

void vn_try_numbers(vn_case *t, const vn_tensor *own, const vn_tensor *fine, const vn_replayed *allowed, vn_trial *h)
{
	vn_score_numbers(t, own, fine, h);
	if (allowed)
		allow_errors(t, h, allowed);
	vn_case_keep(t->x, h);
}

/* a trial that leaves this many times more than the unmodified floor needs no floor of its
 * own */
#define FAR 1e4

/* Can a trial that leaves this much in the candidate's width not be kept, whatever it leaves
 * in float64? Only where its floor is drawn: a candidate that computes in float64 then leaves less
 * by the rounding of the width, which is about a floor. */
#define ROUNDED 4 /* floors */
static bool cannot_be_kept(const vn_case *t, const vn_trial *h)
{
	const vn_replayed *l = &h->residual;
	const double       least = h->limit_fraction * (1 - ROUNDED * l->floor / l->local);

	return is_drawn(t) && t->x->n == VN_EXPLAIN_KEPT && least > t->x->by[VN_EXPLAIN_KEPT - 1].limit_fraction;
}

/* Can the trial not be kept, by the error of its first tokens? Only one that leaves far more
 * than every one that is kept is dropped here: the rest of its tokens would have to be right. */
#define AMONG 16 /* the mean of all tokens is at least a sixteenth of that of the first */
static bool is_hopeless(vn_case *t, const vn_plan *plan, const vn_tensor *weights)
{
	const vn_findings *x = t->x;
	vn_trial           least = { .residual = x->unmodified.residual };
	double            *local = &least.residual.local;

	/* Of chosen experts, the first tokens are compared slot by slot, whatever their order. */
	if (plan->node[plan->value[t->site->target].node].op == VN_OP_TOP_K)
		return false;
	if (t->part || x->n < VN_EXPLAIN_KEPT || !vn_recompute_touched(t->recompute, plan, weights) ||
	    !vn_case_made(t, vn_recompute_estimate_first(t->recompute, plan, weights, local, vn_case_error(t))))
		return false;
	*local /= AMONG;
	least.residual.local_token = least.residual.local_max = 0;
	least.residual.bad = 0;
	put_fraction(t, &least);
	return isfinite(*local) && (is_drawn(t) || *local > FAR * x->unmodified.residual.floor) &&
	       least.limit_fraction > x->by[VN_EXPLAIN_KEPT - 1].limit_fraction;
}

static bool is_unmodified(const vn_case *t, const vn_tensor *own)
{
	return memcmp(own->data, t->own.data, (size_t)vn_shape_count(&own->shape) * vn_dtype_size(own->dtype)) == 0;
}

static void score_plan(vn_case *t, const vn_plan *plan, const vn_tensor *weights, vn_trial *h)
{
	vn_tensor own, fine;

	h->limit_fraction = (double)NAN;
	if (!vn_recompute_touched(t->recompute, plan, weights) || !vn_case_run(t, plan, weights, VN_OWN_WIDTH, &own))
		return;
	if (is_drawn(t) && !t->part && is_unmodified(t, &own)) {
		h->residual = t->x->unmodified.residual;
		put_fraction(t, h);
		vn_tensor_free(&own);
		return;
	}
	if (t->part) {
		vn_head_part_splice(t->part, &own, &t->own);
		memcpy(h->part, t->part->in, sizeof h->part);
		h->heads = t->part->heads;
	}
	/* Scores first with the result itself as the more precise numbers, which gives the smallest
	 * possible floor. */
	vn_score_numbers(t, &own, &own, h);
	if (h->residual.local <= FAR * t->x->unmodified.residual.floor && !h->residual.bad && !cannot_be_kept(t, h) &&
	    vn_case_run(t, plan, weights, VN_FINE_WIDTH, &fine)) {
		if (t->part)
			vn_head_part_splice(t->part, &fine, &t->fine);
		/* Computed even if the trial already fits: a wider floor alone would let another
		 * trial leave less. */
		vn_score_numbers(t, &own, &fine, h);
		allow_variants(t, &(tried_plan) { plan, weights, &own }, h, NULL);
		vn_tensor_free(&fine);
	}
	vn_tensor_free(&own);
}

void vn_score(vn_case *t, vn_trial *h)
{
	vn_made made;

	vn_trial_apply(t, h, &made);
	h->limit_fraction = (double)NAN;
	if (made.plan)
		score_plan(t, made.plan, made.weights, h);
	else if (made.own.data)
		vn_score_numbers(t, &made.own, &made.fine, h);
	/* The sums were computed in double, so the rounding of the unmodified operation is used. */
	if (made.own.data &&
	    (h->applied.kind == VN_BY_MATRIX || h->applied.kind == VN_BY_ATTEND || h->applied.kind == VN_BY_ROTATION ||
	     h->applied.kind == VN_BY_NARROW || h->applied.kind == VN_BY_STATE || h->applied.kind == VN_BY_ACTIVATION))
		allow_errors(t, h, &t->x->unmodified.residual);
	/* Another correct softmax rounds differently, whatever keys it sees. */
	if (made.own.data && is_of_slots(h))
		allow_errors(t, h, &t->reference_variants);
	vn_made_finish(&made);
}

static void keep_scored(vn_case *t, const vn_trial *h)
{
	if (!isnan(h->limit_fraction))
		vn_case_keep(t->x, h);
}

void vn_try(vn_case *t, vn_trial *h)
{
	vn_score(t, h);
	keep_scored(t, h);
}

void vn_try_format(vn_case *t, vn_trial *h, vn_rounding_format *format, vn_rounding_format likely)
{
	const bool either = *format == VN_FORMAT_TF32 || *format == VN_FORMAT_F16;

	*format = either ? likely : *format;
	vn_try(t, h);
	if (!either)
		return;
	const double left = vn_trial_residual(h);
	if (likely == VN_FORMAT_TF32 && left > VN_EXPLAIN_LEAST) {
		*format = VN_FORMAT_TF32_AWAY;
		vn_try(t, h);
	}
	*format = likely == VN_FORMAT_TF32 ? VN_FORMAT_F16 : VN_FORMAT_TF32;
	vn_score(t, h);
	if (left < VN_EXPLAIN_LEAST && vn_trial_residual(h) < left)
		h->limit_fraction = left / VN_LOCAL_LIMIT; /* both fit */
	keep_scored(t, h);
}

void vn_try_plan(vn_case *t, const vn_plan *plan, const vn_tensor *weights, vn_trial *h)
{
	if (t->failed->st || is_hopeless(t, plan, weights))
		return;
	score_plan(t, plan, weights, h);
	keep_scored(t, h);
}

void vn_score_unmodified(vn_case *t)
{
	vn_trial *h = &t->x->unmodified;

	vn_score_numbers(t, &t->own, &t->fine, h);
	t->reference_variants = (vn_replayed) { 0 };
	allow_variants(t, &(tried_plan) { t->site->plan, t->site->weights, &t->own }, h, &t->reference_variants);
}

/* ---- which of them explain it ---------------------------------------------------------------- */

static void drop_trial(vn_findings *x, int i)
{
	memmove(x->by + i, x->by + i + 1, (size_t)(x->n - i - 1) * sizeof *x->by);
	x->n--;
}

/* Is the result of the trial's operation recorded, or is it the checkpoint? */
static bool place_is_recorded(const vn_case *t, const vn_trial *h)
{
	const vn_plan *p = t->site->plan;
	const int      value = vn_plan_root(p, p->node[h->node].out[0]);

	return value == t->site->target || vn_recompute_has(t->recompute, value);
}

/* Are a and b one mistake of the catalogue at two recorded operations, which no recording can tell
 * apart? */
static bool same_beside(const vn_case *t, const vn_trial *a, const vn_trial *b)
{
	return a->finding == VN_FINDING_FAULT && vn_trial_same(a, b) && a->node != b->node && !a->places && !b->places &&
	       place_is_recorded(t, a) && place_is_recorded(t, b);
}

/* If two answers are one mistake (at either place, or one read off and one from the catalogue),
 * keeps the one that leaves less. */
static void drop_repeated(const vn_case *t, int n)
{
	vn_findings *x = t->x;

	for (int i = 1; i < n && i < x->n; i++)
		for (int k = 0; k < i; k++)
			if (vn_trial_same_mistake(&x->by[i], &x->by[k]) || same_beside(t, &x->by[i], &x->by[k])) {
				drop_trial(x, i--);
				n--;
				break;
			}
}

static int count_fitting(const vn_case *t)
{
	const vn_findings *x = t->x;
	int                n = 0;

	while (n < x->n && !x->by[n].refuted && vn_case_fits(t, &x->by[n]))
		n++;
	return n;
}

bool vn_case_as_small(const vn_trial *h, const vn_trial *best)
{
	/* A result times a factor, and that of cached values times it, differ by roundings alone. */
	const bool scaled = h->finding == VN_FINDING_FACTOR && best->finding == VN_FINDING_CACHE_SCALED;

	return residual_shown(h) < VN_EXPLAIN_APART * residual_shown(best) ||
	       ((is_of_slots(h) || scaled) && vn_trial_residual(h) <= VN_EXPLAIN_LEAST_SLOTS);
}

/* Puts a trial at an earlier place. */
static void move_up(vn_findings *x, int from, int at)
{
	const vn_trial h = x->by[from];

	memmove(x->by + at + 1, x->by + at, (size_t)(from - at) * sizeof *x->by);
	x->by[at] = h;
}

/* Sorts those that fit by what they leave, then moves those as small as the first
 * (vn_case_as_small) to the front. These need not leave least: more is allowed to mistakes of slots
 * than to others. */
static void put_aliases_first(vn_findings *x)
{
	for (int i = 1, at; i < x->n_fit; i++) {
		for (at = i; at > 0 && x->by[i].limit_fraction < x->by[at - 1].limit_fraction; at--)
			;
		move_up(x, i, at);
	}
	x->n_alias = 0;
	for (int i = 0; i < x->n_fit; i++)
		if (vn_case_as_small(&x->by[i], &x->by[0]))
			move_up(x, i, x->n_alias++);
}

void vn_case_conclude(vn_case *t)
{
	vn_findings *x = t->x;

	drop_repeated(t, count_fitting(t));
	x->n_fit = count_fitting(t);
	put_aliases_first(x);
	const double best = x->n ? residual_shown(&x->by[0]) : 0;
	x->margin = (double)INFINITY;
	if (x->n > x->n_alias && !x->by[x->n_alias].refuted)
		x->margin = residual_shown(&x->by[x->n_alias]) / best;
}
