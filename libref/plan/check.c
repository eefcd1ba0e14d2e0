/* check.c: the rules of a plan, the same for all engines and files: see vn_plan_check and
 * vn_plan_settle in plan.h. The rules of single operations are in op_*.c. */
#include "libref/plan/op_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_in_range(int index, int n)
{
	return index >= 0 && index < n;
}

/* ---- weights and values by themselves ------------------------------------------- */

static bool is_state(const vn_value *v, const vn_state *s, int state)
{
	return v->state == state && v->rank == s->rank && memcmp(v->size, s->size, (size_t)s->rank * sizeof *s->size) == 0;
}

static vn_status check_weights(const vn_plan *p, vn_error *err)
{
	for (int i = 0; i < p->n_weights; i++) {
		const vn_shape *s = &p->weight[i].shape;
		int64_t         n = INT64_MAX / 16; /* the byte count must fit too */

		bool good = memchr(p->weight[i].name, '\0', VN_NAME_MAX) && s->rank >= 0 && s->rank <= VN_PLAN_RANK;
		for (int k = 0; good && k < s->rank; k++) {
			good = s->dim[k] >= 1 && s->dim[k] <= INT32_MAX && s->dim[k] <= n;
			n = good ? n / s->dim[k] : n;
		}
		if (!good)
			return vn_fail(err, VN_ERR_UNSUPPORTED,
			               "weights[%d] (%.*s): its name is not terminated, or its shape is invalid", i,
			               VN_NAME_MAX - 1, p->weight[i].name);
	}
	return VN_OK;
}

static vn_status check_values(const vn_plan *p, vn_error *err)
{
	for (int i = 0; i < p->n_values; i++) {
		const vn_value *v = &p->value[i];
		const char     *why = NULL;

		if (!memchr(v->name, '\0', VN_NAME_MAX) || (unsigned)v->point >= VN_N_POINTS)
			why = "its name is not terminated, or its point is unknown";
		else if (v->layer < -1 || v->layer >= p->layers)
			why = "the model has no such layer";
		else if (v->rank < 1 || v->rank > VN_PLAN_RANK)
			why = "expected 1 to 4 sizes";
		for (int k = 0; !why && k < v->rank; k++)
			if (v->size[k] < 1 && v->size[k] != VN_T && v->size[k] != VN_S)
				why = "a size is neither above 0 nor a number of tokens";
		if (!why && v->alias_of >= 0 && (v->alias_of >= i || !vn_plan_check_same_shape(v, &p->value[v->alias_of])))
			why = "it is a second name for a later value or one of another shape";
		if (!why && v->alias_of < -1)
			why = "it is a second name for a value that does not exist";
		if (!why && v->state != -1 &&
		    (!is_in_range(v->state, p->n_states) || p->state[v->state].value != vn_plan_root(p, i)))
			why = "the state that it shows does not exist or belongs to another value";
		if (why)
			return vn_fail(err, VN_ERR_UNSUPPORTED, "values[%d] (%.*s): %s", i, VN_NAME_MAX - 1, v->name, why);
	}
	return VN_OK;
}

/* Checks that a node's states are those derived from it, fit into memory, and match the
 * values that show them. */
static vn_status check_states(vn_plan_walk *w)
{
	const vn_plan *p = w->p;
	const vn_node *n = w->n;
	vn_state       s[VN_MAX_STATE];

	if (n->n_state != vn_node_states(p, w->node, s) || n->n_state > p->n_states - w->states)
		return vn_plan_check_fail(w, "its states differ from those that its operation keeps");
	for (int k = 0; k < n->n_state; k++, w->states++) {
		const vn_state *a = &p->state[w->states], *b = &s[k];
		int64_t         room = INT64_MAX / 16 / (b->input >= 0 ? p->context + 1LL : 1);
		if (n->state[k] != w->states || a->node != b->node || a->value != b->value || a->input != b->input ||
		    a->wide != b->wide || a->rank != b->rank ||
		    memcmp(a->size, b->size, (size_t)b->rank * sizeof *b->size) != 0)
			return vn_plan_check_fail(w, "its states differ from those that its operation keeps");
		for (int d = b->input >= 0; d < b->rank; d++) {
			room = b->size[d] < 1 ? 0 : room / b->size[d];
			if (room < 1)
				return vn_plan_check_fail(w, "its state for %d tokens is too large to address", p->context);
		}
		if (b->value >= 0 && !is_state(&p->value[b->value], b, w->states))
			return vn_plan_check_fail(w, "%s does not have the shape of the state that it shows",
			                          p->value[b->value].name);
	}
	return VN_OK;
}

/* ---- what is there and made when ------------------------------------------------------- */

static vn_status connect_node(vn_plan_walk *w, int i)
{
	const vn_plan *p = w->p;
	const vn_node *n = &p->node[i];

	w->node = i;
	w->n = n;
	if ((unsigned)n->op >= VN_N_OPS || n->layer < -1 || n->layer >= p->layers)
		return vn_plan_check_fail(w, "unknown operation, or the model has no such layer");
	const vn_op_info *o = vn_op_get(n->op);
	const int         most = n->op == VN_OP_ATTENTION ? VN_ATTN_KEPT_VALUES + 1 : o->n_in;
	if (n->n_in < o->n_in || n->n_in > most || n->n_w != o->n_w || n->n_out != o->n_out)
		return vn_plan_check_fail(w, "wrong number of inputs, weights or outputs for its operation");
	for (int j = 0; j < n->n_w; j++)
		if (n->w[j] < (j < o->must_w ? 0 : -1) || n->w[j] >= p->n_weights)
			return vn_plan_check_fail(w, "a weight is missing");
	for (int j = 0; j < n->n_in; j++) {
		const int v = n->in[j];
		if (v < 0 || v >= p->n_values || p->value[v].alias_of >= 0 || w->made[v] < 0)
			return vn_plan_check_fail(w, "an input does not exist, is a second name, or is computed by a later node");
		if (p->value[v].on_demand || p->value[v].state != -1)
			return vn_plan_check_fail(w, "an input is computed only on demand, or shows a state");
		w->last[v] = i;
	}
	for (int j = 0; j < n->n_out; j++) {
		const int v = n->out[j];
		if (v == -1 && j > 0)
			continue;
		if (v < 0 || v >= p->n_values || p->value[v].alias_of >= 0 || w->made[v] >= 0)
			return vn_plan_check_fail(w, "an output does not exist, is a second name, or is computed twice");
		w->made[v] = i;
	}
	static vn_op_check *const check[VN_N_OPS] = {
#define OP(NAME, name, check, ...) [VN_OP_##NAME] = vn_check_##check,
#include "libref/plan/op.def"
	};
	w->x = n->n_in ? &p->value[n->in[0]] : NULL;
	w->y = &p->value[n->out[0]];
	w->m = n->n_w && n->w[0] >= 0 ? &p->weight[n->w[0]].shape : NULL;
	double      value;
	const char *beyond = vn_const_beyond(n, &value);
	if (beyond)
		return vn_plan_check_fail(w, "%s is %g, which is beyond its range", beyond, value);
	const vn_status st = check[n->op](w);
	return st ? st : check_states(w);
}

vn_status vn_plan_check(const vn_plan *p, vn_error *err)
{
	vn_plan_walk w = { .p = p, .err = err };
	vn_status    st;

	if (p->n_nodes < 0 || p->n_values < 0 || p->n_weights < 0 || p->layers < 0 || p->vocab < 0 || p->context < 0 ||
	    p->n_states < 0 || p->n_lists < 0)
		return vn_fail(err, VN_ERR_UNSUPPORTED,
		               "a count is negative: layers %d, vocab %d, context %d, states %d, nodes %d", p->layers, p->vocab,
		               p->context, p->n_states, p->n_nodes);
	if ((st = check_weights(p, err)) || (st = check_values(p, err)))
		return st;
	VN_FREED int *made = malloc(2 * ((size_t)p->n_values + 1) * sizeof *made);
	if (!made)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a plan of %d nodes", p->n_nodes);
	w.made = made;
	w.last = made + p->n_values;
	for (int v = 0; v < p->n_values; v++)
		w.made[v] = w.last[v] = -1;
	for (int i = 0; !st && i < p->n_nodes; i++)
		st = connect_node(&w, i);
	if (!st && w.states != p->n_states)
		st = vn_fail(err, VN_ERR_UNSUPPORTED, "states[%d]: no node keeps this state", w.states);
	for (int v = 0; !st && v < p->n_values; v++) {
		const vn_value *x = &p->value[v], *of = &p->value[x->alias_of >= 0 ? x->alias_of : v];
		const int       by = x->alias_of < 0 ? w.made[v] : of->node;
		if (x->alias_of < 0 && w.made[v] < 0)
			st = vn_fail(err, VN_ERR_UNSUPPORTED, "values[%d] (%s): no node computes this value", v, x->name);
		else if (x->last_use != w.last[v] || x->node != by || x->slot != of->slot || x->state != of->state ||
		         x->wide != of->wide || !is_in_range(x->slot, p->node[by].n_out) ||
		         p->node[by].out[x->slot] != vn_plan_root(p, v))
			st = vn_fail(err, VN_ERR_UNSUPPORTED,
			             "values[%d] (%s): the node recorded as computing it, or as its last reader, is the wrong one",
			             v, x->name);
	}
	return st;
}

/* ---- what follows from the rest --------------------------------------------------------- */

/* Derives the rest of a plan. Checks indices only as far as needed to stay inside arrays;
 * vn_plan_check checks everything else. state: room for VN_MAX_STATE for each node. */
static void derive_rest(vn_plan *p, vn_state *state)
{
	for (int v = 0; v < p->n_values; v++)
		p->value[v].node = p->value[v].slot = p->value[v].state = p->value[v].last_use = -1;
	free(p->state);
	p->state = state;
	p->n_states = 0;
	for (int i = 0; i < p->n_nodes; i++) {
		vn_node         *n = &p->node[i];
		const vn_op_info a = (unsigned)n->op < VN_N_OPS ? *vn_op_get(n->op) : (vn_op_info) { 0 };

		while (n->n_w < a.n_w && n->n_w >= a.must_w)
			n->w[n->n_w++] = -1;
		while (n->n_out < a.n_out && n->n_out >= 1)
			n->out[n->n_out++] = -1;
		for (int j = 0; j < n->n_in && j < VN_MAX_IN; j++)
			if (is_in_range(n->in[j], p->n_values))
				p->value[n->in[j]].last_use = i;
		for (int j = 0; j < n->n_out && j < VN_MAX_OUT; j++)
			if (is_in_range(n->out[j], p->n_values)) {
				p->value[n->out[j]].node = i;
				p->value[n->out[j]].slot = j;
			}
		n->n_state = vn_node_states(p, i, state + p->n_states);
		for (int k = 0; k < n->n_state; k++, p->n_states++) {
			n->state[k] = p->n_states;
			if (is_in_range(state[p->n_states].value, p->n_values))
				p->value[state[p->n_states].value].state = p->n_states;
		}
	}
	for (int v = 0; v < p->n_values; v++)
		if (is_in_range(p->value[v].alias_of, v)) {
			p->value[v].node = p->value[p->value[v].alias_of].node;
			p->value[v].slot = p->value[p->value[v].alias_of].slot;
			p->value[v].state = p->value[p->value[v].alias_of].state;
		}
}

vn_status vn_plan_settle(vn_plan *p, vn_error *err)
{
	const size_t n = p->n_nodes > 0 ? (size_t)p->n_nodes : 0;
	vn_state    *state = malloc((n * VN_MAX_STATE + 1) * sizeof *state);

	if (!state)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for the states of %d nodes", p->n_nodes);
	derive_rest(p, state);
	return vn_plan_check(p, err);
}

vn_status vn_plan_finish(vn_builder *b, vn_plan **plan, vn_error *err)
{
	if (!b->status)
		b->status = vn_plan_settle(b->plan, &b->err);
	vn_status st = b->status;
	if (st) {
		vn_plan_destroy(b->plan);
		b->plan = NULL;
		vn_fail(err, st, "%s", b->err.text);
	}
	*plan = b->plan;
	VN_FREE(b->newest, b->older, b->named, b);
	return st;
}
