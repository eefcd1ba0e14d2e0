/* explain_catalogue.c: the faults of the catalogue as hypotheses: where each can be made, alone and at several operations at once. */
#include "compare/explain/explain_inside.h"

#include "libref/plan/fault.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

vn_went vn_how_it_went(const vn_trial *t)
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

vn_status vn_try_catalogue(vn_trial *t, const vn_explanation *only, vn_error *err)
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
