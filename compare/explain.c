/* explain.c: see explain.h. The catalogue is walked here; what is fitted is in explain_fit.c. */
#include "compare/explain_inside.h"
#include "compare/healthy.h"

#include "libref/plan/fault.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Origins that are looked at one by one. Of further ones the answer of an origin of the same point is tried alone. Where so many
 * have no answer, further ones are likely to have none for the same reason. */
enum { IN_FULL = 6, AT_ALL = 400, IN_VAIN = 24 };

double vn_hypothesis_left(const vn_hypothesis *h)
{
	return h->used * VN_LOCAL_LIMIT;
}

static double told(const vn_hypothesis *h)
{
	const double left = vn_hypothesis_left(h);
	return left > VN_EXPLAIN_LEAST ? left : VN_EXPLAIN_LEAST;
}

bool vn_trial_fits(const vn_trial *t, const vn_hypothesis *h)
{
	/* Little more than a healthy operation leaves is easily halved by something that is wrong, too. */
	return h->used <= 1 && !(h->used > t->x->sound.used / (t->x->fitted || t->x->sound.used < 4 ? 16 : 4)) &&
	       !(h->local.local > t->x->sound.local.local / 2); /* a wide floor of its own is no likeness */
}

bool vn_trial_answered(const vn_trial *t)
{
	return t->x->n && vn_trial_fits(t, &t->x->by[0]);
}

/* ---- one hypothesis ------------------------------------------------------------------------- */

/* Keeps the list sorted, those that leave least first, and as long as it may be. */
static void keep(vn_explanation *x, const vn_hypothesis *h)
{
	int at = x->n;

	while (at > 0 && (h->used < x->by[at - 1].used || isnan(x->by[at - 1].used)))
		at--;
	if (at == VN_EXPLAIN_KEPT)
		return;
	const int move = (x->n < VN_EXPLAIN_KEPT ? x->n : VN_EXPLAIN_KEPT - 1) - at;
	memmove(x->by + at + 1, x->by + at, (size_t)move * sizeof *x->by);
	x->by[at] = *h;
	x->n += x->n < VN_EXPLAIN_KEPT;
}

static vn_status measure(vn_trial *t, const vn_tensor *own, const vn_tensor *fine, vn_hypothesis *h, vn_error *err)
{
	const vn_status st = vn_local_measure(own, fine, vn_probe_candidate(t->probe), vn_probe_axes(t->probe), t->c->policy.storage,
	                                      t->c->options->threads, &h->local, err);
	h->used = vn_local_used(&h->local, t->elements);
	return st;
}

/* A plan's node of a node of the span. */
static int node_of(const vn_trial *t, const vn_plan *plan, int span)
{
	const int value = vn_probe_plan(t->probe)->node[span].out[0]; /* a changed plan has the same values, but may have nodes in between */
	return plan->value[value].node;
}

/* The plan as other healthy implementation i computes it, of its nodes that have no such one as the last that they have. own: what
 * the plan makes in the reference's way. */
static vn_status run_other(vn_trial *t, const vn_plan *plan, const vn_tensor *weights, int i, const vn_tensor *own, vn_replayed *l, vn_replayed *most,
                           vn_error *err)
{
	const vn_dtype storage = t->c->policy.storage;
	const int      threads = t->c->options->threads;
	bool           alone = false;
	int            n;
	const int     *span = vn_probe_span(t->probe, &n);
	vn_plan       *other;
	vn_tensor      z;
	vn_status      st = vn_plan_clone(plan, &other, err);

	for (int k = 0; !st && k < n; k++) {
		vn_node  *node = &other->node[node_of(t, plan, span[k])];
		const int others = vn_healthy_others(node, storage);
		const int which = i < others ? i : others - 1;
		if (!others)
			continue;
		alone = alone || vn_healthy_alone(node, which);
		vn_healthy_other(node, storage, which);
	}
	if (st)
		return st;
	if (!(st = vn_probe_run(t->probe, other, weights, VN_PROBE_OWN, &z, err))) {
		st = alone ? vn_local_alone(&z, vn_probe_candidate(t->probe), vn_probe_axes(t->probe), threads, l, err)
		           : vn_local_other(&z, own, vn_probe_axes(t->probe), threads, most, err);
		free((void *)(uintptr_t)z.data);
	}
	vn_plan_destroy(other);
	return st;
}

/* They make the same mistake in their own arithmetic, and may be the candidate. own: what the plan makes in the reference's. */
static vn_status allow(vn_trial *t, const vn_plan *plan, const vn_tensor *weights, const vn_tensor *own, vn_hypothesis *h, vn_error *err)
{
	const vn_replayed *r = &t->c->point[t->x->point].replay;
	vn_replayed most = { 0 };
	vn_error    why = { "" };
	vn_status   st = VN_OK;
	int         n, others = 0;
	const int  *span = vn_probe_span(t->probe, &n);

	for (int k = 0; k < n; k++) {
		const int of = vn_healthy_others(&plan->node[node_of(t, plan, span[k])], t->c->policy.storage);
		others = of > others ? of : others;
	}
	for (int i = 0; !st && i < others; i++)
		st = run_other(t, plan, weights, i, own, &h->local, &most, &why);
	if (st && st != VN_ERR_UNSUPPORTED) {
		*err = why;
		return st;
	}
	vn_local_allow(&h->local, &most);
	if (plan->node[plan->value[vn_probe_target(t->probe)].node].op == VN_OP_DELTA_RULE) {
		/* Nor does it do less than the replay found with the inputs drawn again. */
		h->local.floor = fmax(h->local.floor, r->floor);
		h->local.floor_token = fmax(h->local.floor_token, r->floor_token);
		h->local.floor_max = fmax(h->local.floor_max, r->floor_max);
	}
	h->used = vn_local_used(&h->local, t->elements);
	return VN_OK;
}

vn_status vn_try_numbers(vn_trial *t, const vn_tensor *own, const vn_tensor *fine, vn_hypothesis *h, vn_error *err)
{
	const vn_status st = measure(t, own, fine, h, err);
	if (!st)
		keep(t->x, h);
	return st;
}

/* Hypotheses that leave so much more than the sound floor allows need no floor of their own. */
#define FAR 1e4

vn_status vn_try(vn_trial *t, const vn_plan *plan, const vn_tensor *weights, vn_hypothesis *h, vn_error *err)
{
	vn_tensor own, fine;
	vn_status st;

	if (!vn_probe_touched(t->probe, plan, weights))
		return VN_OK;
	st = vn_probe_run(t->probe, plan, weights, VN_PROBE_OWN, &own, err);
	if (st == VN_ERR_UNSUPPORTED)
		return VN_OK;
	if (st)
		return st;
	/* With itself for more precise numbers: the least floor that there is. */
	if (!(st = measure(t, &own, &own, h, err)) && h->local.local <= FAR * t->x->sound.local.floor && !h->local.bad
	    && !(st = vn_probe_run(t->probe, plan, weights, VN_PROBE_FINE, &fine, err))) {
		if (!(st = measure(t, &own, &fine, h, err)) && h->used > 1)
			st = allow(t, plan, weights, &own, h, err);
		free((void *)(uintptr_t)fine.data);
	}
	free((void *)(uintptr_t)own.data);
	if (!st)
		keep(t->x, h);
	return st;
}

/* ---- the catalogue ------------------------------------------------------------------------------ */

static bool reads(const vn_plan *p, int root)
{
	for (int i = 0; i < p->n_nodes; i++)
		for (int k = 0; k < p->node[i].n_in; k++)
			if (vn_plan_root(p, p->node[i].in[k]) == root)
				return true;
	return false;
}

/* Who reads it, as the model's plan has it, was found right on these numbers: the run did go on with them. */
static bool went_on(const vn_comparison *c, const vn_plan *plan, int point)
{
	const int root = vn_plan_root(plan, vn_plan_find(plan, c->point[point].name));

	for (int i = 0; i < c->n_points; i++) {
		const vn_checkpoint *p = &c->point[i];
		if (p->step != c->point[point].step || !p->replayed || vn_local_beyond(p))
			continue;
		const int v = vn_plan_find(plan, p->name);
		const vn_node *n = v < 0 ? NULL : &plan->node[plan->value[vn_plan_root(plan, v)].node];
		for (int k = 0; n && k < n->n_in; k++)
			if (vn_plan_root(plan, n->in[k]) == root)
				return true;
	}
	return false;
}

/* A number format tells itself by the bits: who rounds to it makes no others. */
static bool could_be(const vn_trial *t, const vn_node *made)
{
	const vn_tensor *cand = vn_probe_candidate(t->probe);
	const vn_act     as = made->op == VN_OP_ACT ? (vn_act)made->c.act.act : VN_IDENTITY;
	const vn_dtype   format = as == VN_AS_BF16_CUT ? VN_BF16 : VN_F16;

	if (as != VN_AS_BF16_CUT && as != VN_AS_F16_CUT)
		return true;
	const vn_shape *s = &cand->shape;
	const int64_t   n = vn_shape_count(s);
	float           x[256], y[256];
	for (int64_t at = 0; at < n; at += 256) {
		const size_t some = (size_t)(n - at < 256 ? n - at : 256);
		vn_to_f32(x, (const char *)cand->data + (size_t)at * vn_dtype_size(cand->dtype), cand->dtype, some);
		memcpy(y, x, sizeof y);
		vn_round_f32(y, format, some);
		for (size_t i = 0; i < some; i++)
			if (isfinite(x[i]) && x[i] != y[i])
				return false;
	}
	return true;
}

/* Whose numbers stand in the place of a value's, where a faulty plan has a copy of another recorded. */
static void say_held(const vn_plan *faulty, int root, vn_hypothesis *h)
{
	const vn_node *n = &faulty->node[faulty->value[root].node];

	if (h->capture && n->op == VN_OP_SLICE && n->c.slice.from == 0 && n->c.slice.width == n->c.slice.stride)
		snprintf(h->holds, sizeof h->holds, "%s", faulty->value[n->in[0]].name);
}

/* One fault at n nodes at once. */
static vn_status try_fault(vn_trial *t, int fault, const int *node, int n, vn_error *err)
{
	const vn_plan *plan = vn_probe_plan(t->probe);
	const int      root = vn_plan_root(plan, vn_plan_find(plan, t->c->point[t->x->point].name));
	vn_hypothesis  h = { .node = node[0] };
	char           what[VN_NAME_MAX + 40];
	vn_faulty     *f;
	vn_status      st = vn_faulty_create(plan, vn_probe_weights(t->probe), &f, err);

	if (st)
		return st;
	snprintf(h.id, sizeof h.id, "%s", vn_fault_id(fault));
	snprintf(h.words, sizeof h.words, "%s", vn_fault_means(fault));
	if (n == 2)
		snprintf(h.also, sizeof h.also, " and %s", plan->value[plan->node[node[1]].out[0]].name);
	else if (n > 2)
		snprintf(h.also, sizeof h.also, " and %d more operations", n - 1);
	for (int i = 0; !st && i < n; i++) {
		snprintf(what, sizeof what, "%s@%s", h.id, plan->value[plan->node[node[i]].out[0]].name);
		st = vn_faulty_inject(f, what, err);
	}
	if (st == VN_ERR_USAGE)
		st = VN_OK; /* weights that stay what they are, or are not of the format */
	else if (!st) {
		const vn_plan *made = vn_faulty_plan(f);
		h.capture = reads(plan, root) && !reads(made, root);
		say_held(made, root, &h);
		if ((t->went == VN_WENT_UNKNOWN || h.capture == (t->went == VN_NOT_WENT_ON)) && could_be(t, &made->node[made->value[root].node]))
			st = vn_try(t, made, vn_faulty_weights(f), &h, err);
	}
	vn_faulty_destroy(f);
	return st;
}

static bool of_query_or_key(const vn_plan *p, int node)
{
	const char *dot = strchr(p->value[p->node[node].out[0]].name, '.');
	return dot && (strncmp(dot + 1, "q_", 2) == 0 || strncmp(dot + 1, "k_", 2) == 0);
}

/* An engine makes a mistake wherever it does the same: at the n nodes that it fits everywhere, in each layer, and in each layer's queries
 * and keys. */
static vn_status try_together(vn_trial *t, int fault, const int *fit, int n, vn_error *err)
{
	enum { FEW = 4 }; /* layers between captured tensors whose parts are tried */
	const vn_plan *plan = vn_probe_plan(t->probe);
	int           *some = malloc(((size_t)n + 1) * sizeof *some), low = plan->layers, high = 0;
	vn_status      st = n < 2 ? VN_OK : some ? try_fault(t, fault, fit, n, err) : vn_fail(err, VN_ERR_NOMEM, "no memory for %d nodes", n);

	for (int i = 0; i < n; i++) {
		const int layer = plan->node[fit[i]].layer;
		low = layer >= 0 && layer < low ? layer : low;
		high = layer > high ? layer : high;
	}
	for (int layer = low; !st && n >= 2 && layer <= high && high - low < FEW; layer++)
		for (int pair = 0; !st && pair < 2; pair++) {
			int k = 0, all = 0;
			for (int i = 0; i < n; i++) {
				const bool here = plan->node[fit[i]].layer == layer;
				all += here;
				if (here && (!pair || of_query_or_key(plan, fit[i])))
					some[k++] = fit[i];
			}
			if (k >= 2 && k < n && !(pair && k == all))
				st = try_fault(t, fault, some, k, err);
		}
	free(some);
	return st;
}

static vn_went how_it_went(const vn_trial *t)
{
	const vn_checkpoint *p = &t->c->point[t->x->point];
	return p->replay.captured ? VN_NOT_WENT_ON : went_on(t->c, vn_probe_plan(t->probe), t->x->point) ? VN_WENT_ON : VN_WENT_UNKNOWN;
}

/* A fault at one operation may change another too (a norm behind the sum is none before it): the operations of the other origins of the
 * layer, behind the n that are in `place`. */
static int and_origins(const vn_trial *t, int *place, int n)
{
	const vn_comparison *c = t->c;
	const vn_checkpoint *me = &c->point[t->x->point];
	const vn_plan       *plan = vn_probe_plan(t->probe);

	for (int i = 0; i < c->n_origins && n < plan->n_nodes; i++) {
		const vn_checkpoint *p = &c->point[c->origins[i]];
		const int v = p->step == me->step && p->layer == me->layer ? vn_plan_find(plan, p->name) : -1;
		bool      there = v < 0;
		for (int k = 0; !there && k < n; k++)
			there = place[k] == plan->value[vn_plan_root(plan, v)].node;
		if (!there)
			place[n++] = plan->value[vn_plan_root(plan, v)].node;
	}
	return n;
}

/* only: of its answers and the next best alone; NULL: all. */
static vn_status try_catalogue(vn_trial *t, const vn_explanation *only, vn_error *err)
{
	const vn_plan *plan = vn_probe_plan(t->probe);
	int            n;
	const int     *span = vn_probe_span(t->probe, &n);
	const int      spanned = n;
	int           *place = malloc(((size_t)plan->n_nodes + 1) * sizeof *place), *fit = malloc(((size_t)plan->n_nodes + 1) * sizeof *fit);
	vn_status      st = place && fit ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for %d nodes", plan->n_nodes);

	if (place) {
		memcpy(place, span, (size_t)n * sizeof *place);
		n = and_origins(t, place, n);
	}
	for (int f = 0; !st && f < vn_n_faults(); f++) {
		bool wanted = !only;
		int  fits = 0;
		for (int i = 0; only && i < only->n && i <= only->n_alias; i++)
			wanted = wanted || strcmp(only->by[i].id, vn_fault_id(f)) == 0;
		for (int k = 0; !st && wanted && k < n; k++) {
			if (vn_fault_why_not(f, plan, place[k]))
				continue;
			fit[fits++] = place[k];
			st = try_fault(t, f, &place[k], 1, err);
		}
		t->x->n_tried += fits > 0;
		if (!st && spanned > 1 && fits > 1)
			st = try_together(t, f, fit, fits, err);
	}
	free(fit);
	free(place);
	return st;
}

/* ---- the answer ------------------------------------------------------------------------------------ */

void vn_conclude(vn_trial *t)
{
	vn_explanation *x = t->x;
	const double best = x->n ? told(&x->by[0]) : 0;

	x->n_fit = x->n_alias = 0;
	x->margin = (double)INFINITY;
	while (x->n_fit < x->n && !x->by[x->n_fit].refuted && vn_trial_fits(t, &x->by[x->n_fit]))
		x->n_fit++;
	while (x->n_alias < x->n_fit && told(&x->by[x->n_alias]) < VN_EXPLAIN_APART * best)
		x->n_alias++;
	if (x->n > x->n_alias && !x->by[x->n_alias].refuted)
		x->margin = told(&x->by[x->n_alias]) / best;
}

/* A buffer that the operation goes on to change, as a sum its bias is added to, holds what a mistake of the run would leave. */
static vn_status try_what_was_recorded(vn_trial *t, vn_error *err)
{
	const int     n = t->x->n;
	vn_hypothesis nearest[VN_EXPLAIN_KEPT];
	vn_status     st;

	memcpy(nearest, t->x->by, sizeof nearest);
	t->went = VN_WENT_ON;
	t->x->fitted = false;
	if ((st = try_catalogue(t, NULL, err)))
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
static vn_status look_further(vn_trial *t, bool refuted, const vn_tensor *own, const vn_tensor *fine, vn_error *err)
{
	vn_status st;

	t->x->fitted = true;
	if ((st = vn_try_fits(t, own, fine, err)))
		return st;
	vn_conclude(t);
	if (!refuted && !t->x->n_fit && t->went == VN_NOT_WENT_ON && (st = try_what_was_recorded(t, err)))
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
	t->went = how_it_went(t);
	plan = vn_probe_plan(t->probe);
	st = vn_probe_run(t->probe, plan, vn_probe_weights(t->probe), VN_PROBE_OWN, own, err);
	return st ? st : vn_probe_run(t->probe, plan, vn_probe_weights(t->probe), VN_PROBE_FINE, fine, err);
}

static void drop(vn_tensor *own, vn_tensor *fine)
{
	free((void *)(uintptr_t)own->data);
	free((void *)(uintptr_t)fine->data);
}

vn_status vn_explain_point(vn_trial *t, const vn_explanation *like, vn_error *err)
{
	vn_explanation *x = t->x;
	vn_tensor own = { 0 }, fine = { 0 };
	vn_status st = turn_to(t, &own, &fine, x->why_not, err);

	if (!st && !*x->why_not && !(st = measure(t, &own, &fine, &x->sound, err)) &&
	    !(st = allow(t, vn_probe_plan(t->probe), vn_probe_weights(t->probe), &own, &x->sound, err)) && !(st = try_catalogue(t, like, err))) {
		vn_conclude(t);
		if (!x->n_fit && !like)
			st = look_further(t, false, &own, &fine, err);
	}
	drop(&own, &fine);
	return st;
}

vn_status vn_explain_further(vn_trial *t, vn_error *err)
{
	vn_tensor own = { 0 }, fine = { 0 };
	vn_status st = turn_to(t, &own, &fine, t->x->why_not, err);

	if (!st && !*t->x->why_not)
		st = look_further(t, true, &own, &fine, err);
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
	if (!x->by)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for hypotheses");
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
		nothing = x->n && x->of[x->n - 1].n_fit ? 0 : nothing + 1;
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
