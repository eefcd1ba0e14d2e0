/* explain_point.c: see explain_point.h. A new kind of mistake needs a row in findings.def, and an
 * estimator: a row in the table of strategies here or in that of estimate.c. */
#include "compare/explain/explain_point.h"
#include "compare/explain/cache_slots.h"
#include "compare/trial/catalogue.h"
#include "compare/explain/error_shape.h"
#include "compare/estimate/estimate.h"
#include "compare/rearrange/rearrange.h"
#include "compare/trial/trial_apply.h"
#include "compare/trial/score.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- strategies that are made of others ------------------------------------------------------ */

/* The findings before a strategy, which are restored if it does not answer. */
typedef struct kept_findings {
	vn_trial by[VN_EXPLAIN_KEPT];
	int      n;
	bool     fitted;
} kept_findings;

static void remember_best(const vn_findings *x, kept_findings *k)
{
	memcpy(k->by, x->by, sizeof k->by);
	k->n = x->n;
	k->fitted = x->fitted;
}

static void restore_best(vn_case *t, const kept_findings *k)
{
	memcpy(t->x->by, k->by, sizeof k->by);
	t->x->n = k->n;
	t->x->fitted = k->fitted;
	vn_case_conclude(t);
}

/* Tries the answers in the heads that are in error, if only some are. */
static void try_in_some_heads(vn_case *t)
{
	const int    tried = t->x->n_tried;
	vn_head_part part;

	if (t->whole || !vn_head_part_find(t, &part))
		return;
	t->part = &part;
	vn_catalogue(t, NULL);
	if (!vn_case_answered(t))
		vn_estimate(t);
	t->part = NULL;
	t->x->n_tried = tried;
}

/* Tries mistakes of the recording, unless the operation then changes the buffer (as a sum
 * to which its bias is added): then a mistake of the run leaves the same numbers. */
static void try_what_was_recorded(vn_case *t)
{
	if (t->consumed != VN_CONSUMED_OTHERS)
		return;
	t->consumed = VN_CONSUMED_AS_RECORDED;
	t->x->fitted = false;
	vn_catalogue(t, NULL);
}

static void remember_pair(vn_case *t)
{
	const vn_trial *h = &t->x->by[0];
	bool            known = !t->x->n_fit || !h->fault[vn_trial_is_fitted(h) ? 0 : 1];

	for (int i = 0; i < t->n_pairs && !known; i++)
		known = vn_trial_same(&t->pair[i], h);
	if (!known && t->n_pairs < VN_PAIRS_MOST)
		t->pair[t->n_pairs++] = *h;
}

/* The pairs of earlier origins: an engine repeats its mistakes in every layer and step. */
static void try_pairs_again(vn_case *t)
{
	vn_findings with = { .by = t->pair, .n = 1 };

	if (t->site->n_span != 1 || t->part)
		return;
	for (int i = 0; i < t->n_pairs; i++, with.by++) {
		vn_trial h = t->pair[i];
		if (vn_trial_is_pair(&h))
			vn_catalogue(t, &with);
		else if (t->site->plan->node[h.node].op == t->site->plan->node[t->site->span[0]].op &&
		         vn_trial_move(t, &h, t->site->span[0]))
			vn_try(t, &h);
	}
	vn_case_conclude(t);
}

static void try_pairs(vn_case *t)
{
	enum { IN_VAIN = 4 }; /* with this many origins that no pair explains, pairs are no longer tried */

	try_pairs_again(t);
	if (vn_case_answered(t) || t->pairs_in_vain >= IN_VAIN || !vn_catalogue_has_pairs(t))
		return;
	vn_catalogue_pairs(t);
	vn_case_conclude(t);
	t->pairs_in_vain += !vn_case_answered(t);
	remember_pair(t);
}

#define POOR 0.5 /* of the limit: most correct operations leave less */

/* If the answer barely explains the checkpoint, a fitted number may explain it twice as well. */
static void try_fits_after_answer(vn_case *t)
{
	vn_findings  *x = t->x;
	const double  best = x->by[0].limit_fraction;
	kept_findings before;

	if (!(best > POOR) || t->brief)
		return;
	remember_best(x, &before);
	x->fitted = true;
	vn_catalogue_eps_beside(t);
	vn_estimate_seen_keys(t);
	vn_estimate(t);
	vn_case_conclude(t);
	if (!x->n_fit || !(x->by[0].limit_fraction * VN_EXPLAIN_APART < best))
		restore_best(t, &before);
}

/* ---- equal answers of another mechanism ------------------------------------------------------ */

/* A cheap operation and those between it and recorded tensors: more make a search long. */
enum { BESIDE_SPAN = 4 };

/* What may equal a fault of the catalogue. */
static void (*const beside[])(vn_case *t) = {
	vn_estimate_seen_keys, vn_estimate, vn_estimate_keys, vn_estimate_new_slots, vn_estimate_rotate,
};

/* Does a fault of the catalogue set another constant than h? An offset of positions in later calls
 * and one that grows are of one family, but differ in other calls. */
static bool sets_another(const vn_trial *fault, const vn_trial *h)
{
	const char *is = vn_finding_constant(h->finding),
			   *set = fault->finding == VN_FINDING_FAULT ? vn_fault_constant(fault->fault[0] - 1) : "";

	return is && *set && strcmp(is, set) != 0;
}

/* Is h one of these mistakes with another number or at another place, or two mistakes at once? */
static bool is_listed(const vn_trial *by, int n, const vn_trial *h)
{
	bool listed = h->paired || (h->finding != VN_FINDING_FAULT && h->fault[0]);

	for (int i = 0; i < n && !listed; i++)
		listed = vn_trial_same_mechanism(&by[i], h) && !sets_another(&by[i], h);
	return listed;
}

/* Adds what fits as well as the catalogue's answers and is another mechanism: in this data, neither
 * may hide the other. */
static void try_fits_beside(vn_case *t)
{
	vn_findings  *x = t->x;
	const bool    fitted = x->fitted;
	const double  best = x->by[0].limit_fraction;
	kept_findings listed;
	vn_trial      found[VN_EXPLAIN_KEPT];
	int           n = 0;

	if (t->brief || t->part || t->site->n_span > BESIDE_SPAN || x->by[0].finding != VN_FINDING_FAULT)
		return;
	remember_best(x, &listed);
	const int aliases = x->n_alias;
	for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
		x->n = 0;
		x->fitted = true;
		beside[i](t);
		vn_case_conclude(t);
		for (int k = 0; k < x->n_fit && n < VN_EXPLAIN_KEPT; k++)
			if (!is_listed(listed.by, aliases, &x->by[k]) && !is_listed(found, n, &x->by[k]))
				found[n++] = x->by[k];
	}
	restore_best(t, &listed);
	x->fitted = fitted;
	for (int i = 0; i < n; i++) {
		found[i].beside = true;
		if (vn_case_as_small(&found[i], &x->by[0])) {
			found[i].limit_fraction = fmax(found[i].limit_fraction, best);
			vn_case_keep(x, &found[i]);
		}
	}
	vn_case_conclude(t);
}

static void try_catalogue(vn_case *t)
{
	vn_catalogue(t, NULL);
	vn_case_conclude(t);
	if (!t->x->n_fit)
		return;
	try_fits_after_answer(t);
	vn_catalogue_alike(t);
	try_fits_beside(t);
}

/* Tries the numbers of another token and of another step. Neither answer may hide the other, so
 * both are tried. */
static void try_other_tokens(vn_case *t)
{
	vn_redirect_in_time(t);
	vn_estimate_rotate_by_ids(t);
}

/* The operation of this checkpoint's layer that corresponds to the node in its own layer. */
static int find_counterpart(const vn_case *t, int node)
{
	const vn_plan *p = t->site->plan;
	const char    *name = p->value[p->node[node].out[0]].name;
	const int      here = vn_name_layer(t->result->checkpoints.of[t->x->checkpoint].name);
	char           other[VN_NAME_MAX + 20];

	if (vn_name_layer(name) < 0 || here < 0)
		return node;
	snprintf(other, sizeof other, "layer%d.%s", here, vn_name_in_layer(name));
	const int v = vn_plan_find(p, other);
	return v < 0 ? node : p->value[vn_plan_root(p, v)].node;
}

/* Tries the answers of t->like and the next best of the catalogue,
 * in the heads where they were made. */
static void try_like(vn_case *t)
{
	const vn_findings *like = t->like;
	const vn_trial    *best = &like->by[0];
	vn_head_part       part;

	t->x->fitted = like->fitted;
	t->x->lent = true;
	t->part = vn_head_part_of(t, best, &part) ? &part : NULL;
	for (int i = 0; i < like->n_alias; i++) {
		vn_trial h = like->by[i];
		if (!vn_trial_is_fitted(&h) || h.applied.kind == VN_BY_ROWS || h.places ||
		    !vn_trial_move(t, &h, find_counterpart(t, h.node)))
			continue;
		h.speaks_against = VN_NOTHING_AGAINST;
		vn_try(t, &h);
	}
	if (!like->fitted || (best->heads && !vn_trial_is_fitted(best)))
		vn_catalogue(t, like);
	t->part = NULL;
	vn_case_conclude(t);
	if (t->x->n_fit)
		vn_catalogue_alike(t);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* The occasions on which a checkpoint is explained. */
typedef enum occasion {
	FIRST = 1,          /* nothing is known of it */
	LIKE = 2,           /* another checkpoint of its point is explained (t->like) */
	REFUTED = 4,        /* other steps refuted an answer of the catalogue */
	FITTED_REFUTED = 8, /* or a fitted answer, which would be found again */
} occasion;

/* All strategies: every trial about a checkpoint is tried by one of them. They are tried in
 * this order until one answers. */
static const struct strategy {
	void (*try)(vn_case *t);
	unsigned when;        /* on which occasions */
	bool     listed;      /* its answers are the catalogue's: not fitted */
	bool     ends;        /* if it answers, nothing else is tried */
	bool     in_any_case; /* tried even after an answer, which it may replace */
	bool     or_nothing;  /* if it does not answer, nothing that it found is kept */
} strategies[] = {
	{ vn_estimate_squares, .when = FIRST | LIKE, .ends = true },
	{ try_like, .when = LIKE },
	{ try_catalogue, .when = FIRST, .listed = true, .ends = true },
	{ try_other_tokens, .when = FIRST | REFUTED, .ends = true },
	{ vn_estimate_narrow, .when = FIRST | REFUTED },
	{ vn_estimate_seen_keys, .when = FIRST | REFUTED },
	{ vn_estimate, .when = FIRST | REFUTED },
	{ vn_estimate_activation, .when = FIRST | REFUTED },
	{ vn_estimate_linear, .when = FIRST | REFUTED },
	{ vn_estimate_keys, .when = FIRST | REFUTED },
	{ vn_estimate_new_slots, .when = FIRST | REFUTED },
	{ vn_estimate_attend, .when = FIRST | REFUTED },
	{ vn_estimate_rotate, .when = FIRST | REFUTED },
	{ vn_estimate_rotated_tokens, .when = FIRST | REFUTED },
	{ vn_rearrange, .when = FIRST | REFUTED, .in_any_case = true },
	{ vn_explain_cache_rows, .when = FIRST | REFUTED },
	{ vn_rearrange_rows, .when = FIRST | REFUTED | FITTED_REFUTED },
	{ vn_redirect, .when = FIRST | REFUTED },
	{ vn_rearrange_rolled, .when = FIRST | REFUTED },
	{ try_in_some_heads, .when = FIRST | REFUTED | FITTED_REFUTED },
	{ try_what_was_recorded, .when = FIRST, .or_nothing = true },
	{ try_pairs, .when = FIRST | REFUTED | FITTED_REFUTED, .or_nothing = true },
	{ vn_error_shape, .when = FIRST | REFUTED | FITTED_REFUTED },
};

static void try_strategies(vn_case *t, occasion on)
{
	const struct strategy *last = strategies + sizeof strategies / sizeof *strategies;
	kept_findings          before;

	for (const struct strategy *s = strategies; s < last && !t->failed->st; s++) {
		if (!(s->when & on) || (t->x->n_fit && !s->in_any_case))
			continue;
		t->x->fitted = !s->listed;
		if (s->or_nothing)
			remember_best(t->x, &before);
		s->try(t);
		vn_case_conclude(t);
		if (s->or_nothing && !t->x->n_fit)
			restore_best(t, &before);
		if (t->x->n_fit && s->ends)
			break;
	}
}

/* ---- a checkpoint ---------------------------------------------------------------------------- */

/* Moves the recomputation to t->x->checkpoint, and computes and scores the unmodified operation
 * there; leave_point ends it. Returns false if it cannot be computed, for which t->x->why_not has
 * the reason. */
static bool move_to_point(vn_case *t)
{
	t->own = t->fine = (vn_tensor) { 0 };
	if (!vn_case_at(t, t->x->checkpoint) || !vn_case_run(t, t->site->plan, t->site->weights, VN_OWN_WIDTH, &t->own) ||
	    !vn_case_run(t, t->site->plan, t->site->weights, VN_FINE_WIDTH, &t->fine)) {
		snprintf(t->x->why_not, sizeof t->x->why_not, "%.199s", t->failed->last.text);
		return false;
	}
	t->consumed = vn_case_consumed(t);
	t->some = vn_recompute_choose(t->recompute, &t->own);
	vn_score_unmodified(t);
	return true;
}

static void leave_point(vn_case *t)
{
	vn_tensor_free(&t->own);
	vn_tensor_free(&t->fine);
	t->own = t->fine = (vn_tensor) { 0 };
	t->some = NULL;
}

void vn_explain_with(vn_case *t, const vn_trial *h)
{
	vn_trial     with = *h;
	vn_findings  like = { .by = &with, .n = 1 };
	vn_findings *x = t->x;
	vn_head_part part;

	with.speaks_against = VN_NOTHING_AGAINST;
	with.refuted = false;
	with.lent = true;
	if (move_to_point(t)) {
		t->part = vn_head_part_of(t, h, &part) ? &part : NULL;
		x->fitted = vn_trial_is_fitted(h);
		if (x->fitted)
			vn_try(t, &with);
		else
			vn_catalogue(t, &like);
		t->part = NULL;
	}
	leave_point(t);
}

void vn_explain_point(vn_case *t, const vn_findings *like)
{
	t->like = like;
	if (move_to_point(t)) {
		try_strategies(t, like ? LIKE : FIRST);
		vn_catalogue_measure_next(t);
		if (vn_explain_says_where(t->x))
			vn_error_zeros(t);
	}
	t->like = NULL;
	leave_point(t);
}

void vn_explain_further(vn_case *t, bool fitted)
{
	if (move_to_point(t))
		try_strategies(t, fitted ? FITTED_REFUTED : REFUTED);
	leave_point(t);
}
