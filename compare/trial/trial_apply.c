/* trial_apply.c: see trial_apply.h. */
#include "compare/trial/trial_apply.h"
#include "compare/trial/apply_matrix.h"

#include "libref/base/alloc.h"
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

/* Sets the trial's constants. Returns false if the operation refuses one. */
static bool set_constants(const vn_case *t, const vn_trial *h, vn_node *n)
{
	bool all = true;

	for (int k = 0; all && k < h->applied.constants.n; k++)
		all = vn_case_made(
			t, vn_const_set(n, h->applied.constants.set[k].name, h->applied.constants.set[k].value, vn_case_error(t)));
	return all;
}

vn_plan *vn_trial_plan(const vn_case *t, const vn_trial *h)
{
	const vn_applied *by = &h->applied;
	vn_plan          *plan = vn_case_clone(t);

	if (plan && by->kind == VN_BY_READS) {
		vn_node *n = &plan->node[h->node];
		if (by->reads.weights)
			memcpy(n->w, plan->node[by->reads.weights - 1].w, by->reads.matrix ? sizeof *n->w : sizeof n->w);
		for (int i = 0; i < VN_MAX_IN; i++)
			n->in[i] = by->reads.in[i] ? by->reads.in[i] - 1 : n->in[i];
	}
	for (int i = 0; plan && by->kind == VN_BY_CONSTANTS && i < plan->n_nodes; i++)
		if (is_reached(plan, h, i) && !set_constants(t, h, &plan->node[i])) {
			vn_plan_destroy(plan);
			return NULL;
		}
	return plan;
}

/* Moves the rows of the table of learned positions. Rows that would come from outside it stay. */
static void apply_rows(const vn_case *t, const vn_trial *h, vn_made *made)
{
	const vn_plan *p = t->site->plan;
	const int      w = p->node[h->node].w[0];

	made->plan = p;
	if (w < 0)
		return;
	const vn_tensor *table = &made->weights[w];
	const int64_t    C = table->shape.dim[0];
	const size_t     row = (size_t)(vn_shape_count(&table->shape) / C) * vn_dtype_size(table->dtype);
	char            *x = made->rows = vn_alloc((size_t)C, row);
	for (int64_t i = 0; i < C; i++) {
		const int64_t from = vn_arranged(&(vn_arrange) { .rule = VN_ARRANGE_MOVED, .a = h->applied.rows }, i, C);
		memcpy(x + (size_t)i * row, (const char *)table->data + (size_t)(from < 0 ? i : from) * row, row);
	}
	vn_made_put_weight(made, p, w, table->dtype);
}

/* Applies a fault of the catalogue, then constants to the operation with that fault. */
static void apply_fault_and_constants(const vn_case *t, const vn_trial *h, vn_made *made)
{
	const vn_plan *p = t->site->plan;
	const int      out = p->node[h->node].out[0];
	vn_error      *err = vn_case_error(t);
	char           what[VN_NAME_MAX + 40];

	snprintf(what, sizeof what, "%s@%s", vn_fault_id(h->fault[0] - 1), p->value[out].name);
	if (!vn_case_made(t, vn_faulty_create(p, made->weights, &made->faulty, err)) ||
	    !vn_case_made(t, vn_faulty_inject(made->faulty, what, err)) ||
	    !vn_case_made(t, vn_plan_clone(vn_faulty_plan(made->faulty), &made->copy, err)))
		return;
	made->plan = set_constants(t, h, &made->copy->node[made->copy->value[out].node]) ? made->copy : NULL;
	made->weights = vn_faulty_weights(made->faulty);
}

static void apply_number(const vn_case *t, const vn_trial *h, vn_made *made)
{
	const vn_plan *p = t->site->plan;
	const int      row = h->applied.number.row;
	vn_error      *err = vn_case_error(t);

	if (vn_fault_why_not(row, p, h->node) || !vn_case_made(t, vn_faulty_create(p, made->weights, &made->faulty, err)) ||
	    !vn_case_made(t, vn_faulty_make(made->faulty, row, h->node, h->applied.number.value, err)))
		return;
	made->plan = vn_faulty_plan(made->faulty);
	made->weights = vn_faulty_weights(made->faulty);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Those that are known for a whole checkpoint of finite numbers alone. */
static void apply_to_whole(const vn_case *t, const vn_trial *h, vn_made *made)
{
	switch (h->applied.kind) {
	case VN_BY_ACTIVATION: vn_apply_formula(t, h, made); break;
	case VN_BY_NARROW: vn_apply_narrow(t, h, made); break;
	case VN_BY_STATE: vn_apply_state(t, h, made); break;
	case VN_BY_STEP: vn_apply_step(t, h, made); break;
	default: vn_apply_tokens(t, h, made); break;
	}
}

void vn_trial_apply(const vn_case *t, const vn_trial *h, vn_made *made)
{
	const vn_step *s = vn_case_step(t);

	*made = (vn_made) { .weights = t->site->weights };
	if (t->failed->st || (h->applied.later && s && s->position == 0)) /* the first call is unaffected */
		return;
	switch (h->applied.kind) {
	case VN_BY_NUMBER: apply_number(t, h, made); break;
	case VN_BY_CONSTANTS:
		if (h->fault[0]) {
			apply_fault_and_constants(t, h, made);
			break;
		}
		/* fall through */
	case VN_BY_READS: made->plan = made->copy = vn_trial_plan(t, h); break;
	case VN_BY_MATRIX: vn_apply_matrix(t, h, made); break;
	case VN_BY_ATTEND: vn_apply_attend(t, h, made); break;
	case VN_BY_ROTATION: vn_apply_formula(t, h, made); break;
	case VN_BY_ROWS: apply_rows(t, h, made); break;
	case VN_BY_BLOCKS:
	case VN_BY_SLOTS: vn_apply_slots(t, h, made); break;
	case VN_BY_ACTIVATION:
	case VN_BY_NARROW:
	case VN_BY_STATE:
	case VN_BY_STEP:
	case VN_BY_TOKENS:
		if (!t->part && !t->x->unmodified.residual.bad)
			apply_to_whole(t, h, made);
		break;
	case VN_BY_CATALOGUE: /* scored by the strategies that propose them */
	case VN_BY_RESULT:
	case VN_BY_CACHED:
	case VN_BY_CHANGED:
	case VN_BY_ONE_CACHED:
	case VN_BY_REPLAY: break;
	}
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
