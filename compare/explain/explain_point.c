/* explain_point.c: see explain_point.h. A new kind of mistake needs a row in findings.def, and an
 * estimator: a row in the table of strategies here or in that of estimate.c. */
#include "compare/explain/explain_point.h"
#include "compare/trial/catalogue.h"
#include "compare/explain/error_shape.h"
#include "compare/estimate/estimate.h"
#include "compare/estimate/estimate_arithmetic.h"
#include "compare/estimate/estimate_attention.h"
#include "compare/estimate/estimate_cache.h"
#include "compare/estimate/estimate_linear.h"
#include "compare/estimate/estimate_rotate.h"
#include "compare/trial/case.h"
#include "compare/rearrange/rearrange.h"
#include "compare/rearrange/rearrange_rows.h"
#include "compare/rearrange/redirect.h"
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
static vn_status try_in_some_heads(vn_case *t, vn_error *err)
{
	const int    tried = t->x->n_tried;
	vn_head_part part;
	bool         some = false;
	vn_status    st = t->whole ? VN_OK : vn_head_part_find(t, &part, &some, err);

	if (st || !some)
		return st;
	t->part = &part;
	st = vn_catalogue(t, NULL, err);
	if (!st && !vn_case_answered(t))
		st = vn_estimate(t, err);
	t->part = NULL;
	t->x->n_tried = tried;
	return st;
}

/* Tries mistakes of the recording, unless the operation then changes the buffer (as a sum
 * to which its bias is added): then a mistake of the run leaves the same numbers. */
static vn_status try_what_was_recorded(vn_case *t, vn_error *err)
{
	if (t->consumed != VN_CONSUMED_OTHERS)
		return VN_OK;
	t->consumed = VN_CONSUMED_AS_RECORDED;
	t->x->fitted = false;
	return vn_catalogue(t, NULL, err);
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
static vn_status try_pairs_again(vn_case *t, vn_error *err)
{
	vn_findings with = { .by = t->pair, .n = 1 };
	vn_status   st = VN_OK;

	if (t->site->n_span != 1 || t->part)
		return VN_OK;
	for (int i = 0; !st && i < t->n_pairs; i++, with.by++) {
		vn_trial h = t->pair[i];
		if (vn_trial_is_pair(&h))
			st = vn_catalogue(t, &with, err);
		else if (t->site->plan->node[h.node].op == t->site->plan->node[t->site->span[0]].op &&
		         vn_trial_move(t, &h, t->site->span[0]))
			st = vn_try(t, &h, err);
	}
	vn_case_conclude(t);
	return st;
}

static vn_status try_pairs(vn_case *t, vn_error *err)
{
	enum { IN_VAIN = 4 }; /* with this many origins that no pair explains, pairs are no longer tried */
	vn_status st = try_pairs_again(t, err);

	if (st || vn_case_answered(t) || t->pairs_in_vain >= IN_VAIN || !vn_catalogue_has_pairs(t))
		return st;
	if ((st = vn_catalogue_pairs(t, err)))
		return st;
	vn_case_conclude(t);
	t->pairs_in_vain += !vn_case_answered(t);
	remember_pair(t);
	return VN_OK;
}

#define POOR 0.5 /* of the limit: most correct operations leave less */

/* If the answer barely explains the checkpoint, a fitted number may explain it twice as well. */
static vn_status try_fits_after_answer(vn_case *t, vn_error *err)
{
	vn_findings  *x = t->x;
	const double  best = x->by[0].limit_fraction;
	kept_findings before;
	vn_status     st;

	if (!(best > POOR) || t->brief)
		return VN_OK;
	remember_best(x, &before);
	x->fitted = true;
	if ((st = vn_catalogue_eps_beside(t, err)) || (st = vn_estimate_seen_keys(t, err)) || (st = vn_estimate(t, err)))
		return st;
	vn_case_conclude(t);
	if (!x->n_fit || !(x->by[0].limit_fraction * VN_EXPLAIN_APART < best))
		restore_best(t, &before);
	return VN_OK;
}

/* ---- equal answers of another mechanism ------------------------------------------------------ */

/* A cheap operation and those between it and recorded tensors: more make a search long. */
enum { BESIDE_SPAN = 4 };

/* What may equal a fault of the catalogue. */
static vn_status (*const beside[])(vn_case *t, vn_error *err) = {
	vn_estimate_seen_keys, vn_estimate, vn_estimate_keys, vn_estimate_new_slots, vn_estimate_rotate,
};

/* Is h one of these mistakes with another number or at another place, or two mistakes at once? */
static bool is_listed(const vn_trial *by, int n, const vn_trial *h)
{
	bool listed = h->paired || (h->finding != VN_FINDING_FAULT && h->fault[0]);

	for (int i = 0; i < n && !listed; i++)
		listed = vn_trial_same_mechanism(&by[i], h);
	return listed;
}

/* Adds what fits as well as the catalogue's answers and is another mechanism: in this data, neither
 * may hide the other. */
static vn_status try_fits_beside(vn_case *t, vn_error *err)
{
	vn_findings  *x = t->x;
	const bool    fitted = x->fitted;
	const double  best = x->by[0].limit_fraction;
	kept_findings listed;
	vn_trial      found[VN_EXPLAIN_KEPT];
	int           n = 0;
	vn_status     st = VN_OK;

	if (t->brief || t->part || t->site->n_span > BESIDE_SPAN || x->by[0].finding != VN_FINDING_FAULT)
		return VN_OK;
	remember_best(x, &listed);
	const int aliases = x->n_alias;
	for (size_t i = 0; !st && i < sizeof beside / sizeof *beside; i++) {
		x->n = 0;
		x->fitted = true;
		if ((st = beside[i](t, err)))
			break;
		vn_case_conclude(t);
		for (int k = 0; k < x->n_fit && n < VN_EXPLAIN_KEPT; k++)
			if (!is_listed(listed.by, aliases, &x->by[k]) && !is_listed(found, n, &x->by[k]))
				found[n++] = x->by[k];
	}
	restore_best(t, &listed);
	x->fitted = fitted;
	for (int i = 0; !st && i < n; i++) {
		found[i].beside = true;
		if (vn_case_as_small(&found[i], &x->by[0])) {
			found[i].limit_fraction = fmax(found[i].limit_fraction, best);
			vn_case_keep(x, &found[i]);
		}
	}
	vn_case_conclude(t);
	return st;
}

static vn_status try_catalogue(vn_case *t, vn_error *err)
{
	vn_status st = vn_catalogue(t, NULL, err);

	if (st)
		return st;
	vn_case_conclude(t);
	if (!t->x->n_fit || (st = try_fits_after_answer(t, err)) || (st = vn_catalogue_alike(t, err)))
		return st;
	return try_fits_beside(t, err);
}

/* Tries the numbers of another token and of another step. Neither answer may hide the other, so
 * both are tried. */
static vn_status try_other_tokens(vn_case *t, vn_error *err)
{
	const vn_status st = vn_redirect_in_time(t, err);
	return st ? st : vn_estimate_rotate_by_ids(t, err);
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
static vn_status try_like(vn_case *t, vn_error *err)
{
	const vn_findings *like = t->like;
	const vn_trial    *best = &like->by[0];
	vn_status          st = VN_OK;
	vn_head_part       part;

	t->x->fitted = like->fitted;
	t->x->lent = true;
	t->part = vn_head_part_of(t, best, &part) ? &part : NULL;
	for (int i = 0; !st && i < like->n_alias; i++) {
		vn_trial h = like->by[i];
		if (!vn_trial_is_fitted(&h) || h.applied.kind == VN_BY_ROWS || h.places ||
		    !vn_trial_move(t, &h, find_counterpart(t, h.node)))
			continue;
		h.speaks_against = VN_NOTHING_AGAINST;
		st = vn_try(t, &h, err);
	}
	if (!st && (!like->fitted || (best->heads && !vn_trial_is_fitted(best))))
		st = vn_catalogue(t, like, err);
	t->part = NULL;
	if (st)
		return st;
	vn_case_conclude(t);
	return t->x->n_fit ? vn_catalogue_alike(t, err) : VN_OK;
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
	vn_status (*try)(vn_case *t, vn_error *err);
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
	{ vn_rearrange_rows, .when = FIRST | REFUTED | FITTED_REFUTED },
	{ vn_redirect, .when = FIRST | REFUTED },
	{ try_in_some_heads, .when = FIRST | REFUTED | FITTED_REFUTED },
	{ try_what_was_recorded, .when = FIRST, .or_nothing = true },
	{ try_pairs, .when = FIRST | REFUTED | FITTED_REFUTED, .or_nothing = true },
	{ vn_error_shape, .when = FIRST | REFUTED | FITTED_REFUTED },
};

static vn_status try_strategies(vn_case *t, occasion on, vn_error *err)
{
	const struct strategy *last = strategies + sizeof strategies / sizeof *strategies;
	kept_findings          before;
	vn_status              st = VN_OK;

	for (const struct strategy *s = strategies; !st && s < last; s++) {
		if (!(s->when & on) || (t->x->n_fit && !s->in_any_case))
			continue;
		t->x->fitted = !s->listed;
		if (s->or_nothing)
			remember_best(t->x, &before);
		if ((st = s->try(t, err)))
			break;
		vn_case_conclude(t);
		if (s->or_nothing && !t->x->n_fit)
			restore_best(t, &before);
		if (t->x->n_fit && s->ends)
			break;
	}
	return st;
}

/* ---- a checkpoint ---------------------------------------------------------------------------- */

/* Moves the recomputation to t->x->checkpoint, and computes and scores the unmodified operation
 * there; leave_point ends it. t->x->why_not says why it cannot be computed. */
static vn_status move_to_point(vn_case *t, vn_error *err)
{
	const vn_plan *plan;
	vn_error       none = { "" };
	vn_status      st = vn_recompute_at(t->recompute, t->x->checkpoint, &none);

	t->own = t->fine = (vn_tensor) { 0 };
	if (st == VN_ERR_UNSUPPORTED) {
		snprintf(t->x->why_not, sizeof t->x->why_not, "%.199s", none.text);
		return VN_OK;
	}
	if (st) {
		*err = none;
		return st;
	}
	t->consumed = vn_case_consumed(t);
	plan = t->site->plan;
	if (!(st = vn_recompute_run(t->recompute, plan, t->site->weights, VN_OWN_WIDTH, &t->own, err)))
		t->some = vn_recompute_choose(t->recompute, &t->own);
	if (!st)
		st = vn_recompute_run(t->recompute, plan, t->site->weights, VN_FINE_WIDTH, &t->fine, err);
	return st ? st : vn_score_unmodified(t, err);
}

static void leave_point(vn_case *t)
{
	vn_tensor_free(&t->own);
	vn_tensor_free(&t->fine);
	t->own = t->fine = (vn_tensor) { 0 };
	t->some = NULL;
}

vn_status vn_explain_with(vn_case *t, const vn_trial *h, vn_error *err)
{
	vn_trial     with = *h;
	vn_findings  like = { .by = &with, .n = 1 };
	vn_findings *x = t->x;
	vn_head_part part;
	vn_status    st = move_to_point(t, err);

	with.speaks_against = VN_NOTHING_AGAINST;
	with.refuted = false;
	with.lent = true;
	if (!st && !*x->why_not) {
		t->part = vn_head_part_of(t, h, &part) ? &part : NULL;
		x->fitted = vn_trial_is_fitted(h);
		st = x->fitted ? vn_try(t, &with, err) : vn_catalogue(t, &like, err);
		t->part = NULL;
	}
	leave_point(t);
	return st;
}

vn_status vn_explain_point(vn_case *t, const vn_findings *like, vn_error *err)
{
	vn_status st = move_to_point(t, err);

	t->like = like;
	if (!st && !*t->x->why_not && !(st = try_strategies(t, like ? LIKE : FIRST, err)))
		st = vn_catalogue_measure_next(t, err);
	t->like = NULL;
	leave_point(t);
	return st;
}

vn_status vn_explain_further(vn_case *t, bool fitted, vn_error *err)
{
	vn_status st = move_to_point(t, err);

	if (!st && !*t->x->why_not)
		st = try_strategies(t, fitted ? FITTED_REFUTED : REFUTED, err);
	leave_point(t);
	return st;
}
