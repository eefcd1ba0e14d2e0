/* trial_apply.c: see trial_apply.h. */
#include "compare/trial/apply_computed.h"
#include "compare/trial/apply_recorded.h"
#include "compare/trial/apply_matrix.h"
#include "compare/trial/trial_apply.h"

#include "libref/base/arrange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a plan ---------------------------------------------------------------------------------- */

static bool is_reached(const vn_plan *p, const vn_trial *h, int node)
{
	const vn_node          *a = &p->node[h->node], *n = &p->node[node];
	const vn_applied_places places = h->applied.constants.places;

	return places == VN_AT_NODE ? node == h->node : n->op == a->op && (places == VN_EVERYWHERE || n->layer == a->layer);
}

vn_status vn_trial_plan(const vn_case *t, const vn_trial *h, vn_plan **plan, vn_error *err)
{
	const vn_applied *by = &h->applied;
	vn_status         st = vn_plan_clone(t->site->plan, plan, err);

	if (!st && by->kind == VN_BY_READS) {
		vn_node *n = &(*plan)->node[h->node];
		if (by->reads.weights)
			memcpy(n->w, (*plan)->node[by->reads.weights - 1].w, by->reads.matrix ? sizeof *n->w : sizeof n->w);
		for (int i = 0; i < VN_MAX_IN; i++)
			n->in[i] = by->reads.in[i] ? by->reads.in[i] - 1 : n->in[i];
	}
	for (int i = 0; !st && by->kind == VN_BY_CONSTANTS && i < (*plan)->n_nodes; i++)
		for (int k = 0; !st && k < by->constants.n && is_reached(*plan, h, i); k++)
			st = vn_const_set(&(*plan)->node[i], by->constants.set[k].name, by->constants.set[k].value, err);
	if (st) {
		vn_plan_destroy(*plan);
		*plan = NULL;
	}
	return st;
}

/* Makes the table of learned positions with its rows moved. Rows that would come from outside the
 * table stay. */
static vn_status move_rows(const vn_tensor *table, int by, vn_tensor *moved, void **rows, vn_error *err)
{
	const int64_t C = table->shape.dim[0];
	const size_t  row = (size_t)(vn_shape_count(&table->shape) / C) * vn_dtype_size(table->dtype);
	char         *x = *rows = malloc((size_t)C * row + 1);

	if (!x)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a table of positions");
	for (int64_t p = 0; p < C; p++) {
		const int64_t from = vn_arranged(&(vn_arrange) { .rule = VN_ARRANGE_MOVED, .a = by }, p, C);
		memcpy(x + (size_t)p * row, (const char *)table->data + (size_t)(from < 0 ? p : from) * row, row);
	}
	*moved = *table;
	moved->data = x;
	return VN_OK;
}

static vn_status apply_rows(const vn_case *t, const vn_trial *h, vn_made *made, vn_error *err)
{
	const vn_plan *p = t->site->plan;
	const int      w = p->node[h->node].w[0];

	made->plan = p;
	if (w < 0)
		return VN_OK;
	const vn_tensor *table = &made->weights[w];
	const vn_status  st = vn_made_copy_table(made, p, err);
	return st ? st : move_rows(table, h->applied.rows, &made->table[w], &made->rows, err);
}

/* Applies a fault of the catalogue, then constants to the operation with that fault. */
static vn_status apply_fault_and_constants(const vn_case *t, const vn_trial *h, vn_made *made, vn_error *err)
{
	const vn_plan *p = t->site->plan;
	const int      out = p->node[h->node].out[0];
	char           what[VN_NAME_MAX + 40];
	vn_status      st;

	snprintf(what, sizeof what, "%s@%s", vn_fault_id(h->fault[0] - 1), p->value[out].name);
	if ((st = vn_faulty_create(p, made->weights, &made->faulty, err)) ||
	    (st = vn_faulty_inject(made->faulty, what, err)) ||
	    (st = vn_plan_clone(vn_faulty_plan(made->faulty), &made->copy, err)))
		return st;
	vn_node *n = &made->copy->node[made->copy->value[out].node];
	for (int k = 0; !st && k < h->applied.constants.n; k++)
		st = vn_const_set(n, h->applied.constants.set[k].name, h->applied.constants.set[k].value, err);
	made->plan = st ? NULL : made->copy;
	made->weights = vn_faulty_weights(made->faulty);
	return st;
}

static vn_status apply_number(const vn_case *t, const vn_trial *h, vn_made *made, vn_error *err)
{
	const vn_plan *p = t->site->plan;
	vn_status      st;

	if (vn_fault_why_not(h->applied.number.row, p, h->node))
		return VN_OK;
	if ((st = vn_faulty_create(p, made->weights, &made->faulty, err)) ||
	    (st = vn_faulty_make(made->faulty, h->applied.number.row, h->node, h->applied.number.value, err)))
		return st;
	made->plan = vn_faulty_plan(made->faulty);
	made->weights = vn_faulty_weights(made->faulty);
	return VN_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

vn_status vn_trial_apply(const vn_case *t, const vn_trial *h, vn_made *made, vn_error *err)
{
	const vn_step *s = vn_case_step(t);
	const bool     whole = !t->part && !t->x->unmodified.residual.bad;
	vn_error       none = { "" };
	vn_status      st = VN_OK;

	*made = (vn_made) { .weights = t->site->weights };
	if (h->applied.later && s && s->position == 0)
		return VN_OK; /* the first call is unaffected */
	switch (h->applied.kind) {
	case VN_BY_NUMBER: st = apply_number(t, h, made, &none); break;
	case VN_BY_CONSTANTS:
		if (h->fault[0]) {
			st = apply_fault_and_constants(t, h, made, &none);
			break;
		}
		/* fall through */
	case VN_BY_READS:
		st = vn_trial_plan(t, h, &made->copy, &none);
		made->plan = made->copy;
		break;
	case VN_BY_MATRIX: return vn_apply_matrix(t, h, made, err);
	case VN_BY_ATTEND: return vn_apply_attend(t, h, made, err);
	case VN_BY_ROTATION: return vn_apply_formula(t, h, made, err);
	case VN_BY_ACTIVATION: return whole ? vn_apply_formula(t, h, made, err) : VN_OK;
	case VN_BY_NARROW: return whole ? vn_apply_narrow(t, h, made, err) : VN_OK;
	case VN_BY_ROWS: return apply_rows(t, h, made, err);
	case VN_BY_BLOCKS:
	case VN_BY_SLOTS: return vn_apply_slots(t, h, made, err);
	case VN_BY_STEP: return whole ? vn_apply_step(t, h, made, err) : VN_OK;
	case VN_BY_TOKENS: return whole ? vn_apply_tokens(t, h, made, err) : VN_OK;
	case VN_BY_CATALOGUE: /* scored by the strategies that propose them */
	case VN_BY_RESULT:
	case VN_BY_CACHED:
	case VN_BY_ONE_CACHED:
	case VN_BY_REPLAY: break;
	}
	if (st && st != VN_ERR_USAGE)
		*err = none;
	return st == VN_ERR_USAGE ? VN_OK : st; /* a number that the operation refuses gives no result */
}

/* ---- in another layer ------------------------------------------------------------------------ */

bool vn_case_could_read(const vn_case *t, const vn_node *n, int input, int value)
{
	const vn_plan  *p = t->site->plan;
	const int       own = vn_plan_root(p, n->in[input]);
	const vn_value *a = &p->value[own], *b = &p->value[value];

	if (b->alias_of >= 0 || value == own || value == t->site->target || b->node >= (int)(n - p->node) ||
	    a->rank != b->rank)
		return false;
	for (int i = 0; i < a->rank; i++)
		if (a->size[i] != b->size[i])
			return false;
	return vn_recompute_has(t->recompute, value);
}

/* The value of the same point that many layers further on. -1: none. */
static int value_beside(const vn_plan *p, int value, int layers)
{
	int found = -1;

	for (int k = 0; p->value[value].layer >= 0 && k < p->n_values; k++)
		if (p->value[k].alias_of < 0 && p->value[k].point == p->value[value].point &&
		    p->value[k].layer == p->value[value].layer + layers)
			found = k;
	return found;
}

bool vn_trial_move(const vn_case *t, vn_trial *h, int node)
{
	const vn_plan *p = t->site->plan;
	const int      layers = p->node[node].layer - p->node[h->node].layer;

	if (h->applied.kind == VN_BY_READS && layers) {
		for (int i = 0; i < VN_MAX_IN; i++) {
			const int to = h->applied.reads.in[i] ? value_beside(p, h->applied.reads.in[i] - 1, layers) : -1;
			if (h->applied.reads.in[i] && (to < 0 || !vn_case_could_read(t, &p->node[node], i, to)))
				return false;
			h->applied.reads.in[i] = 1 + to;
		}
		if (h->applied.reads.weights) {
			const vn_node *of = &p->node[h->applied.reads.weights - 1],
						  *twin = vn_fault_twin(p, h->applied.reads.matrix ? of : &p->node[node], of->layer + layers);
			if (!twin)
				return false;
			h->applied.reads.weights = 1 + (int)(twin - p->node);
		}
	}
	h->node = node;
	return true;
}
