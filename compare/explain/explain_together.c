/* explain_together.c: one number that an engine takes for several operations: theta of all rotations, eps of all norms, the
 * scale and window of all attentions, where what these make was not recorded. The checkpoint is computed with each number for
 * all operations that lie between it and what was captured, then for those of a layer, then for one alone. */
#include "compare/explain/explain_inside.h"

#include <stdio.h>
#include <string.h>

enum { FEW = 4 }; /* layers between captured tensors, and operations of a kind, that are tried each */
enum { THETAS = 73, SOME = 33 };

static bool is_norm(vn_op op)
{
	return op == VN_OP_RMS_NORM || op == VN_OP_LAYER_NORM || op == VN_OP_L2_NORM || op == VN_OP_GATED_NORM;
}

/* Operations between the checkpoint and what was captured that h reaches. */
static int reached(vn_trial *t, const vn_hypothesis *h, int *other)
{
	const vn_plan *p = vn_probe_plan(t->probe);
	const vn_node *a = &p->node[h->node];
	int            n, some = 0;
	const int     *span = vn_probe_span(t->probe, &n);

	for (int i = 0; i < n; i++) {
		const vn_node *b = &p->node[span[i]];
		if (b->op != a->op || (h->made.reach == VN_IN_LAYER && b->layer != a->layer) || (h->made.reach == VN_AT_NODE && b != a))
			continue;
		*other = span[i] != h->node ? span[i] : *other;
		some++;
	}
	return some;
}

static void say_where(vn_trial *t, vn_hypothesis *h)
{
	const vn_plan *p = vn_probe_plan(t->probe);
	int            other = h->node;
	const int      n = reached(t, h, &other);

	if (n == 2)
		snprintf(h->also, sizeof h->also, " and %s", p->value[p->node[other].out[0]].name);
	else if (n > 2)
		snprintf(h->also, sizeof h->also, " and %d more operations", n - 1);
}

/* The numbers of the kind of operation that h->node is. */
static vn_status fit(vn_trial *t, const vn_hypothesis *at, vn_error *err)
{
	const vn_node *n = &vn_probe_plan(t->probe)->node[at->node];
	vn_hypothesis  h = *at;
	vn_status      st = VN_OK;

	say_where(t, &h);
	if (n->op == VN_OP_ROPE) {
		snprintf(h.id, sizeof h.id, "R2");
		return vn_fit_constant(t, &h, "theta", (vn_range) { 10, 1e9, THETAS, true }, "RoPE with theta %g", err);
	}
	if (is_norm(n->op)) {
		snprintf(h.id, sizeof h.id, "N1");
		return vn_fit_constant(t, &h, "eps", (vn_range) { 1e-9, 10, SOME, true }, "eps is %.4g", err);
	}
	if (n->op == VN_OP_ATTENTION) {
		vn_hypothesis window = h;
		snprintf(window.id, sizeof window.id, "A5");
		snprintf(h.id, sizeof h.id, "A1");
		if ((st = vn_fit_window(t, &window, err)) || vn_trial_answered(t))
			return st;
		return vn_fit_constant(t, &h, "scale", (vn_range) { n->c.attention.scale / 100, n->c.attention.scale * 100, SOME, true }, "scores scaled by %.6g", err);
	}
	return VN_OK;
}

/* The first operation of each kind (of rotations, norms, attentions) in the span, of a layer or (-1) of all; at most `room`. */
static int kinds(vn_trial *t, int layer, int *node, int room)
{
	const vn_plan *p = vn_probe_plan(t->probe);
	int            n, some = 0;
	const int     *span = vn_probe_span(t->probe, &n);

	for (int i = 0; i < n; i++) {
		const vn_node *a = &p->node[span[i]];
		bool           known = (layer >= 0 && a->layer != layer) || (a->op != VN_OP_ROPE && a->op != VN_OP_ATTENTION && !is_norm(a->op));
		for (int k = 0; k < some; k++)
			known = known || p->node[node[k]].op == a->op;
		if (!known && some < room)
			node[some++] = span[i];
	}
	return some;
}

static vn_status each_kind(vn_trial *t, int layer, vn_error *err)
{
	int       node[8], other;
	const int n = kinds(t, layer, node, 8);
	vn_status st = VN_OK;

	for (int i = 0; !st && i < n && !vn_trial_answered(t); i++) {
		const vn_hypothesis h = { .node = node[i], .made.reach = layer < 0 ? VN_EVERYWHERE : VN_IN_LAYER };
		if (reached(t, &h, &other) > 1)
			st = fit(t, &h, err);
	}
	return st;
}

/* Operations behind those that were tried in their own way, each alone, where these are few. */
static vn_status each_alone(vn_trial *t, vn_error *err)
{
	const vn_plan *p = vn_probe_plan(t->probe);
	int            n, of[VN_N_OPS] = { 0 };
	const int     *span = vn_probe_span(t->probe, &n);
	vn_status      st = VN_OK;

	for (int i = 0; i < n; i++)
		of[p->node[span[i]].op]++;
	for (int i = 0; !st && i < n && !vn_trial_answered(t); i++) {
		const vn_hypothesis h = { .node = span[i] };
		const vn_op         op = p->node[span[i]].op;
		if (of[op] <= FEW && (i >= VN_FIT_ALONE || (op == VN_OP_ROPE && i)))
			st = fit(t, &h, err);
	}
	return st;
}

vn_status vn_fit_together(vn_trial *t, vn_error *err)
{
	const vn_plan *p = vn_probe_plan(t->probe);
	int            n, low = p->layers, high = -1;
	const int     *span = vn_probe_span(t->probe, &n);
	vn_status      st;

	if (t->brief)
		return VN_OK;
	for (int i = 0; i < n; i++) {
		const int layer = p->node[span[i]].layer;
		low = layer >= 0 && layer < low ? layer : low;
		high = layer > high ? layer : high;
	}
	st = each_kind(t, -1, err);
	for (int layer = low; !st && high > low && high - low < FEW && layer <= high && !vn_trial_answered(t); layer++)
		st = each_kind(t, layer, err);
	return st || vn_trial_answered(t) ? st : each_alone(t, err);
}

/* A query that does not see its own key may be a mask's, or of a cache that the key is not in yet, which is so behind the first call alone.
 * In a call of several tokens a cache would lack all of theirs. */
static vn_status try_not_yet(vn_trial *t, vn_error *err)
{
	const vn_step *s = vn_recording_step(t->c->cand, t->c->point[t->x->point].step);
	vn_hypothesis h = { .id = "C5", .made.later = true };
	vn_status     st = VN_OK;

	vn_made_put(&h, "ahead", -1);
	vn_hypothesis_say(&h, "a token's own key and value are not yet in the cache when it is read");
	bool tried = !s || s->tokens != 1; /* or as what explains another step */
	for (int i = 0; i < t->x->n; i++)
		tried = tried || strcmp(t->x->by[i].words, h.words) == 0;
	for (int i = 0; !tried && i < t->x->n_alias; i++)
		if (strcmp(t->x->by[i].id, "A3.strict") == 0 && !*t->x->by[i].also && !*t->x->by[i].in_part) {
			h.node = t->x->by[i].node;
			tried = true;
			if (!(st = vn_try_made(t, &h, err)))
				vn_conclude(t);
		}
	return st;
}

/* Where queries and keys are turned alike, by whatever angle, their products are those of no rotation: what skipping it explains behind
 * both, this explains as well. */
static vn_status try_turned_alike(vn_trial *t, vn_error *err)
{
	const vn_plan *p = vn_probe_plan(t->probe);
	vn_status      st = VN_OK;
	const int      n = t->x->n_alias;
	vn_hypothesis  h = { .id = "R3" };

	for (int i = 0; !st && i < n && !*h.words; i++) {
		const vn_hypothesis *skipped = &t->x->by[i];
		if (strcmp(skipped->id, "R12") != 0 || !*skipped->also || p->node[skipped->node].op != VN_OP_ROPE)
			continue;
		h.node = skipped->node;
		h.made.reach = strstr(skipped->also, " more operations") ? VN_EVERYWHERE : VN_IN_LAYER;
		memcpy(h.also, skipped->also, sizeof h.also);
		vn_made_put(&h, "one_position", 1);
		vn_made_put(&h, "offset", 1);
		vn_hypothesis_say(&h, "every token is rotated alike, whichever it is rotated as");
		if ((st = vn_weigh_made(t, &h, err)) || !(h.used <= 1))
			continue;
		h.used = t->x->by[i].used; /* but for rounding, of which they make no two alike, it is the same */
		vn_keep(t->x, &h);
	}
	if (*h.words)
		vn_conclude(t);
	return st;
}

vn_status vn_try_alike(vn_trial *t, vn_error *err)
{
	const vn_status st = try_turned_alike(t, err);
	return st ? st : try_not_yet(t, err);
}
