/* explain.c: see explain.h: from origins to answers. A hypothesis is tried in explain_try.c, the catalogue walked in explain_catalogue.c, what is
 * fitted is in explain_fit.c. */
#include "compare/explain/explain_inside.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Origins that are looked at one by one. Of further ones the answer of an origin of the same point is tried alone. Where so many
 * have no answer, further ones are likely to have none for the same reason. */
enum { IN_FULL = 6, AT_ALL = 400, IN_VAIN = 24 };

/* A buffer that the operation goes on to change, as a sum its bias is added to, holds what a mistake of the run would leave. */
static vn_status try_what_was_recorded(vn_trial *t, vn_error *err)
{
	const int     n = t->x->n;
	vn_hypothesis nearest[VN_EXPLAIN_KEPT];
	vn_status     st;

	memcpy(nearest, t->x->by, sizeof nearest);
	t->went = VN_WENT_ON;
	t->x->fitted = false;
	if ((st = vn_try_catalogue(t, NULL, err)))
		return st;
	vn_conclude(t);
	if (!t->x->n_fit) {
		memcpy(t->x->by, nearest, sizeof nearest);
		t->x->n = n;
		t->x->fitted = true;
		vn_conclude(t);
	}
	return VN_OK;
}

/* Where no mistake of the catalogue fits: what is fitted, then what may be recorded of a mistake of the run (unless other steps refuted
 * that), then the error in words. */
static vn_status look_further(vn_trial *t, bool refuted, bool fitted, const vn_tensor *own, const vn_tensor *fine, vn_error *err)
{
	vn_status st;

	t->x->fitted = true;
	if (!fitted && ((st = vn_try_late(t, err)) || (!vn_trial_answered(t) && (st = vn_try_fits(t, own, fine, err)))))
		return st;
	vn_conclude(t);
	if (!t->x->n_fit) {
		if ((st = vn_try_tiles(t, own, fine, err)) || (!fitted && !vn_trial_answered(t) && (st = vn_try_reads(t, err))))
			return st;
		vn_conclude(t);
	}
	if (!t->x->n_fit && (st = vn_try_part(t, own, fine, err)))
		return st;
	if (!refuted && !t->x->n_fit && t->went == VN_NOT_WENT_ON && (st = try_what_was_recorded(t, err)))
		return st;
	if (!t->x->n_fit && (st = vn_try_pairs(t, err)))
		return st;
	return t->x->n_fit ? VN_OK : vn_say_looks(t, own, err);
}

/* The probe turned to t->x->point, and what the sound operation makes there; both are the caller's to free. *why: that it cannot be computed. */
static vn_status turn_to(vn_trial *t, vn_tensor *own, vn_tensor *fine, char why[200], vn_error *err)
{
	const vn_plan *plan;
	vn_error  none = { "" };
	vn_status st = vn_probe_at(t->probe, t->x->point, &none);

	if (st == VN_ERR_UNSUPPORTED) {
		snprintf(why, 200, "%.199s", none.text);
		return VN_OK;
	}
	if (st) {
		*err = none;
		return st;
	}
	t->elements = t->c->point[t->x->point].m.n;
	t->went = vn_how_it_went(t);
	plan = vn_probe_plan(t->probe);
	st = vn_probe_run(t->probe, plan, vn_probe_weights(t->probe), VN_PROBE_OWN, own, err);
	return st ? st : vn_probe_run(t->probe, plan, vn_probe_weights(t->probe), VN_PROBE_FINE, fine, err);
}

static void drop(vn_tensor *own, vn_tensor *fine)
{
	free((void *)(uintptr_t)own->data);
	free((void *)(uintptr_t)fine->data);
}

/* The operation of this checkpoint's layer that does what the node does in its own. */
static int counterpart(const vn_trial *t, int node)
{
	const vn_plan *p = vn_probe_plan(t->probe);
	const char    *dot = strchr(p->value[p->node[node].out[0]].name, '.'), *name = t->c->point[t->x->point].name, *here = strchr(name, '.');
	char           other[VN_NAME_MAX];

	if (!dot || !here)
		return node;
	snprintf(other, sizeof other, "%.*s%s", (int)(here - name), name, dot);
	const int v = vn_plan_find(p, other);
	return v < 0 ? node : p->value[vn_plan_root(p, v)].node;
}

/* What was found where like is: its answers, and of the catalogue the next best; in the heads that it is made in. */
static vn_status try_like(vn_trial *t, const vn_explanation *like, const vn_tensor *own, const vn_tensor *fine, vn_error *err)
{
	vn_status st = VN_OK;
	vn_part   part;

	t->x->fitted = like->fitted;
	t->part = vn_part_of(t, &like->by[0], own, fine, &part) ? &part : NULL;
	for (int i = 0; !st && i < like->n_alias; i++) {
		vn_hypothesis h = like->by[i];
		const int     node = counterpart(t, h.node);
		if (!vn_is_made(&h) || h.made.rows || *h.also || !vn_reads_here(t, &h, node))
			continue;
		h.node = node;
		h.against[0] = 0;
		st = vn_try_made(t, &h, err);
	}
	if (!st && (!like->fitted || (*like->by[0].in_part && !vn_is_made(&like->by[0]))))
		st = vn_try_catalogue(t, like, err);
	t->part = NULL;
	return st;
}

vn_status vn_explain_with(vn_trial *t, const vn_hypothesis *h, vn_error *err)
{
	vn_hypothesis  with = *h;
	vn_explanation like = { .by = &with, .n = 1 };
	vn_explanation *x = t->x;
	vn_part   part;
	vn_tensor own = { 0 }, fine = { 0 };
	vn_status st = turn_to(t, &own, &fine, x->why_not, err);

	with.against[0] = 0;
	with.refuted = false;
	if (!st && !*x->why_not && !(st = vn_try_sound(t, &own, &fine, err))) {
		t->part = vn_part_of(t, h, &own, &fine, &part) ? &part : NULL;
		x->fitted = vn_is_made(h);
		st = x->fitted ? vn_try_made(t, &with, err) : vn_try_catalogue(t, &like, err);
		t->part = NULL;
	}
	drop(&own, &fine);
	return st;
}

#define POOR 0.5 /* used: the answer leaves more than a healthy operation mostly does */

/* What explains it hardly: a number that is fitted may do so twice as well. */
static vn_status look_beside(vn_trial *t, vn_error *err)
{
	vn_explanation *x = t->x;
	const int       n = x->n;
	vn_hypothesis   known[VN_EXPLAIN_KEPT];
	vn_status       st;

	if (!(x->by[0].used > POOR) || t->brief)
		return VN_OK;
	memcpy(known, x->by, sizeof known);
	x->fitted = true;
	if ((st = vn_fit_nodes(t, err)))
		return st;
	vn_conclude(t);
	if (!x->n_fit || !(x->by[0].used * VN_EXPLAIN_APART < known[0].used)) {
		memcpy(x->by, known, sizeof known);
		x->n = n;
		x->fitted = false;
		vn_conclude(t);
	}
	return VN_OK;
}

vn_status vn_explain_point(vn_trial *t, const vn_explanation *like, vn_error *err)
{
	vn_explanation *x = t->x;
	vn_tensor own = { 0 }, fine = { 0 };
	vn_status st = turn_to(t, &own, &fine, x->why_not, err);

	if (!st && !*x->why_not && !(st = vn_try_sound(t, &own, &fine, err)) && !(st = like ? try_like(t, like, &own, &fine, err) : vn_try_catalogue(t, NULL, err))) {
		vn_conclude(t);
		if (!x->n_fit && !like)
			st = look_further(t, false, false, &own, &fine, err);
		else if (x->n_fit && (like || !(st = look_beside(t, err))) && !(st = vn_say_beside(t, err)))
			st = vn_try_alike(t, err);
	}
	drop(&own, &fine);
	return st;
}

vn_status vn_explain_further(vn_trial *t, bool fitted, vn_error *err)
{
	vn_tensor own = { 0 }, fine = { 0 };
	vn_status st = turn_to(t, &own, &fine, t->x->why_not, err);

	if (!st && !*t->x->why_not)
		st = look_further(t, true, fitted, &own, &fine, err);
	drop(&own, &fine);
	return st;
}

/* An explanation that fits of an origin of the same point, which is likely to be the answer here too. */
static int twin_of(const vn_comparison *c, const vn_explanations *x, int point)
{
	const char *dot = strchr(c->point[point].name, '.');

	for (int i = 0; dot && i < x->n; i++) {
		const char *other = strchr(c->point[x->of[i].point].name, '.');
		if (x->of[i].n_fit && x->of[i].like < 0 && other && strcmp(other, dot) == 0)
			return i;
	}
	return -1;
}

static void clear(vn_explanation *x)
{
	x->n = x->n_tried = x->n_fit = x->n_alias = 0;
	x->fitted = false;
}

static vn_status explain_origin(vn_trial *t, vn_explanations *all, int point, vn_error *err)
{
	vn_explanation *x = &all->of[all->n];
	const int       like = all->n >= IN_FULL ? twin_of(t->c, all, point) : -1;
	vn_status       st;

	*x = (vn_explanation) { .point = point, .like = like, .by = calloc(VN_EXPLAIN_KEPT, sizeof *x->by) };
	t->x = x;
	t->brief = all->n >= IN_FULL;
	if (!x->by)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for hypotheses");
	if (vn_local_is_order(&t->c->point[point])) {
		all->n++;
		return VN_OK;
	}
	st = vn_explain_point(t, like >= 0 ? &all->of[like] : NULL, err);
	if (!st && like >= 0 && !x->n_fit) {
		x->like = -1;
		clear(x);
		st = vn_explain_point(t, NULL, err);
	}
	all->n++;
	return st;
}

vn_status vn_explain(vn_comparison *c, vn_explanations *x, vn_error *err)
{
	vn_trial  t = { .c = c };
	vn_status st = VN_OK;

	*x = (vn_explanations) { 0 };
	if (!c->model || !c->replayed || !c->n_origins)
		return VN_OK;
	if (!(x->of = calloc((size_t)c->n_origins, sizeof *x->of)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d origins", c->n_origins);
	if ((st = vn_probe_create(c, &t.probe, err)))
		return st;
	int nothing = 0; /* that nothing fits, one after the other */
	for (int i = 0; !st && i < c->n_origins; i++) {
		if (x->n == AT_ALL || nothing == IN_VAIN) {
			x->left_out = c->n_origins - i;
			break;
		}
		if (!c->point[c->origins[i]].replayed)
			continue;
		st = explain_origin(&t, x, c->origins[i], err);
		nothing = x->n && (x->of[x->n - 1].n_fit || vn_local_is_order(&c->point[c->origins[i]])) ? 0 : nothing + 1;
	}
	if (!st)
		st = vn_explain_steps(&t, x, err);
	vn_probe_destroy(t.probe);
	vn_explain_settle(c, x);
	return st;
}

void vn_explanations_free(vn_explanations *x)
{
	for (int i = 0; i < x->n; i++) {
		free(x->of[i].by);
		vn_lines_free(&x->of[i].looks);
	}
	free(x->of);
	*x = (vn_explanations) { 0 };
}
