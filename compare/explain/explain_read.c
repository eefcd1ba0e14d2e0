/* explain_read.c: the operation is right, and reads what is another's: a checkpoint in the place of an input (the layer's index is off by one,
 * a buffer that was not swapped), the keys or values of another layer, another layer's weights. Whatever was recorded, and every layer, is looked
 * at in a few rows; the nearest are then hypotheses like any other. */
#include "compare/explain/explain_inside.h"

#include "libref/plan/fault.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEAREST = 3 }; /* that are computed in full */
enum { SPANNED = 6 }; /* operations between the checkpoint and what was captured, that are looked at */
#define LEAVES 0.25   /* of what the rows are off as they should be, at most */

typedef struct nearest {
	vn_trial     *t;
	double        sound;       /* nmse of the rows, as they should be */
	double        off[NEAREST];
	vn_hypothesis h[NEAREST];
	int           n;
} nearest;

static vn_status glance(vn_trial *t, const vn_hypothesis *h, double *off, vn_error *err)
{
	vn_error  none = { "" };
	vn_plan  *p;
	vn_status st = vn_made_plan(t, h, &p, err);

	*off = (double)NAN;
	if (st)
		return st;
	st = vn_probe_glance(t->probe, p, vn_probe_weights(t->probe), off, &none);
	vn_plan_destroy(p);
	if (st && st != VN_ERR_UNSUPPORTED)
		*err = none;
	return st == VN_ERR_UNSUPPORTED ? VN_OK : st;
}

static vn_status look(nearest *near, const vn_hypothesis *h, vn_error *err)
{
	double          off;
	const vn_status st = glance(near->t, h, &off, err);
	int             at = near->n;

	if (st || !(off < LEAVES * near->sound))
		return st;
	while (at > 0 && off < near->off[at - 1])
		at--;
	if (at == NEAREST)
		return VN_OK;
	near->n += near->n < NEAREST;
	for (int i = near->n - 1; i > at; i--) {
		near->off[i] = near->off[i - 1];
		near->h[i] = near->h[i - 1];
	}
	near->off[at] = off;
	near->h[at] = *h;
	return VN_OK;
}

/* ---- what it may read --------------------------------------------------------------------------------- */

/* A checkpoint that was there when the node ran, of the shape of one of its inputs. */
static bool could_read(const vn_trial *t, const vn_node *n, int input, int value)
{
	const vn_plan  *p = vn_probe_plan(t->probe);
	const int       own = vn_plan_root(p, n->in[input]);
	const vn_value *a = &p->value[own], *b = &p->value[value];

	if (b->alias_of >= 0 || value == own || value == vn_probe_target(t->probe) || b->node >= (int)(n - p->node) || a->rank != b->rank)
		return false;
	for (int i = 0; i < a->rank; i++)
		if (a->size[i] != b->size[i])
			return false;
	return vn_probe_has(t->probe, value);
}

static void say(const vn_trial *t, vn_hypothesis *h)
{
	const vn_plan *p = vn_probe_plan(t->probe);
	const vn_node *n = &p->node[h->node];
	int            input = 0;

	while (input < VN_MAX_IN - 1 && !h->made.reads[input])
		input++;
	if (h->made.weights_of) {
		snprintf(h->id, sizeof h->id, "W9");
		vn_hypothesis_say(h, "weights of layer %d", p->node[h->made.weights_of - 1].layer);
	} else if (n->op == VN_OP_ATTENTION && input) {
		const bool both = h->made.reads[VN_ATTN_K] && h->made.reads[VN_ATTN_V];
		snprintf(h->id, sizeof h->id, "C9");
		vn_hypothesis_say(h, "it reads %s in the place of %s of its own layer", p->value[h->made.reads[input] - 1].name, input == VN_ATTN_V ? "the values" : "the keys");
		if (both)
			vn_hypothesis_say(h, "it reads the keys and values of layer %d: %s and %s", p->value[h->made.reads[VN_ATTN_K] - 1].layer,
			                  p->value[h->made.reads[VN_ATTN_K] - 1].name, p->value[h->made.reads[VN_ATTN_V] - 1].name);
	} else {
		snprintf(h->id, sizeof h->id, "P22");
		vn_hypothesis_say(h, "it reads %s in the place of %s", p->value[h->made.reads[input] - 1].name, p->value[vn_plan_root(p, n->in[input])].name);
	}
}

static vn_status other_inputs(nearest *near, int node, vn_error *err)
{
	const vn_plan *p = vn_probe_plan(near->t->probe);
	const vn_node *n = &p->node[node];
	vn_status      st = VN_OK;

	for (int i = 0; !st && i < n->n_in; i++)
		for (int v = 0; !st && v < p->n_values; v++) {
			vn_hypothesis h = { .node = node };
			if (!could_read(near->t, n, i, v))
				continue;
			h.made.reads[i] = 1 + v;
			st = look(near, &h, err);
		}
	return st;
}

/* Of attentions of other layers, the keys together with the values. */
static vn_status other_cache(nearest *near, int node, vn_error *err)
{
	const vn_plan *p = vn_probe_plan(near->t->probe);
	const vn_node *n = &p->node[node];
	vn_status      st = VN_OK;

	for (int i = 0; !st && i < node; i++) {
		const vn_node *o = &p->node[i];
		vn_hypothesis  h = { .node = node };
		if (o->op != VN_OP_ATTENTION)
			continue;
		const int k = vn_plan_root(p, o->in[VN_ATTN_K]), v = vn_plan_root(p, o->in[VN_ATTN_V]);
		if (!could_read(near->t, n, VN_ATTN_K, k) || !could_read(near->t, n, VN_ATTN_V, v))
			continue;
		h.made.reads[VN_ATTN_K] = 1 + k;
		h.made.reads[VN_ATTN_V] = 1 + v;
		st = look(near, &h, err);
	}
	return st;
}

static vn_status other_weights(nearest *near, int node, vn_error *err)
{
	const vn_plan *p = vn_probe_plan(near->t->probe);
	vn_status      st = VN_OK;

	for (int layer = 0; !st && p->node[node].n_w && layer < p->layers; layer++) {
		const vn_node *twin = vn_fault_twin(p, &p->node[node], layer);
		vn_hypothesis  h = { .node = node };
		if (!twin)
			continue;
		h.made.weights_of = 1 + (int)(twin - p->node);
		st = look(near, &h, err);
	}
	return st;
}

/* What is computed whole for every one that is looked at is to cost little, where it is not the checkpoint's own. */
static bool cheap(vn_op op)
{
	return op != VN_OP_LINEAR && op != VN_OP_ATTENTION && op != VN_OP_DELTA_RULE && op != VN_OP_EMBED;
}

vn_status vn_try_reads(vn_trial *t, vn_error *err)
{
	const vn_plan *p = vn_probe_plan(t->probe);
	nearest        near = { .t = t };
	int            n;
	const int     *span = vn_probe_span(t->probe, &n);
	vn_error       none = { "" };
	vn_status      st = vn_probe_glance(t->probe, p, vn_probe_weights(t->probe), &near.sound, &none);

	if (st == VN_ERR_UNSUPPORTED || t->went == VN_NOT_WENT_ON)
		return VN_OK;
	if (st)
		*err = none;
	for (int i = 0; !st && i < n && i < SPANNED; i++) {
		if (i && !cheap(p->node[span[i]].op))
			continue;
		if (!(st = other_inputs(&near, span[i], err)) && !(st = other_weights(&near, span[i], err)) && p->node[span[i]].op == VN_OP_ATTENTION)
			st = other_cache(&near, span[i], err);
	}
	for (int i = 0; !st && i < near.n; i++) {
		say(t, &near.h[i]);
		st = vn_try_made(t, &near.h[i], err);
	}
	return st;
}

/* ---- the same in another layer -------------------------------------------------------------------------- */

bool vn_reads_here(const vn_trial *t, vn_hypothesis *h, int node)
{
	const vn_plan *p = vn_probe_plan(t->probe);
	const int      by = p->node[node].layer - p->node[h->node].layer;
	bool           reads = false;

	for (int i = 0; i < VN_MAX_IN; i++) {
		int v = h->made.reads[i] - 1, to = -1;
		reads = reads || v >= 0;
		if (v < 0 || !by)
			continue;
		for (int k = 0; p->value[v].layer >= 0 && k < p->n_values; k++)
			if (p->value[k].alias_of < 0 && p->value[k].point == p->value[v].point && p->value[k].layer == p->value[v].layer + by)
				to = k;
		if (to < 0 || !could_read(t, &p->node[node], i, to))
			return false;
		h->made.reads[i] = 1 + to;
	}
	if (h->made.weights_of && by) {
		const vn_node *of = &p->node[h->made.weights_of - 1], *twin = vn_fault_twin(p, &p->node[node], of->layer + by);
		if (!twin)
			return false;
		h->made.weights_of = 1 + (int)(twin - p->node);
	}
	if ((reads || h->made.weights_of) && by) {
		h->node = node;
		say(t, h);
	}
	return true;
}
