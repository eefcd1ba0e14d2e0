/* explain_pairs.c: two mistakes at one operation, where no single one explains it: a norm with another's weights and another eps. */
#include "compare/explain/explain_inside.h"

#include "libref/plan/fault.h"

#include <stdio.h>
#include <string.h>

/* Operations that cost little to compute some hundred times, and of which an engine has several things to get wrong. */
static bool cheap(vn_op op)
{
	return op == VN_OP_ROPE || op == VN_OP_RMS_NORM || op == VN_OP_LAYER_NORM || op == VN_OP_GATED_NORM || op == VN_OP_L2_NORM;
}

/* Mistakes of the arithmetic and of the weights; two of buffers or formats at once would be no likeness of anything. */
static bool may_join(const vn_trial *t, int fault, int node)
{
	return strchr("RNWG", vn_fault_id(fault)[0]) && !vn_fault_why_not(fault, vn_probe_plan(t->probe), node);
}

static vn_status try_pair(vn_trial *t, int a, int b, int node, vn_error *err)
{
	const vn_plan *plan = vn_probe_plan(t->probe);
	vn_hypothesis  h = { .node = node };
	char           what[VN_NAME_MAX + 40];
	vn_faulty     *f;
	vn_status      st = vn_faulty_create(plan, vn_probe_weights(t->probe), &f, err);

	if (st)
		return st;
	snprintf(h.id, sizeof h.id, "%s+%s", vn_fault_id(a), vn_fault_id(b));
	vn_hypothesis_say(&h, "%s; and %s", vn_fault_means(a), vn_fault_means(b));
	for (int i = 0; !st && i < 2; i++) {
		snprintf(what, sizeof what, "%s@%s", vn_fault_id(i ? b : a), plan->value[plan->node[node].out[0]].name);
		st = vn_faulty_inject(f, what, err);
	}
	if (!st)
		st = vn_try(t, vn_faulty_plan(f), vn_faulty_weights(f), &h, err);
	else if (st == VN_ERR_USAGE)
		st = VN_OK; /* the second does not fit what the first left */
	vn_faulty_destroy(f);
	return st;
}

vn_status vn_try_pairs(vn_trial *t, vn_error *err)
{
	enum { IN_VAIN = 4 }; /* so many origins that no pair explains are enough */
	const vn_plan  *plan = vn_probe_plan(t->probe);
	vn_explanation *x = t->x;
	const int       kept = x->n;
	vn_hypothesis   nearest[VN_EXPLAIN_KEPT];
	vn_status       st = VN_OK;
	int             n;
	const int      *span = vn_probe_span(t->probe, &n);

	if (n != 1 || t->brief || t->part || t->pairs_in_vain >= IN_VAIN || t->went == VN_NOT_WENT_ON || !cheap(plan->node[span[0]].op))
		return VN_OK;
	memcpy(nearest, x->by, sizeof nearest);
	/* What makes other frequencies makes all of them; so of rotations in either order. */
	const bool either = plan->node[span[0]].op == VN_OP_ROPE;
	for (int a = 0; !st && a < vn_n_faults(); a++)
		for (int b = either ? 0 : a + 1; !st && may_join(t, a, span[0]) && b < vn_n_faults(); b++)
			if (b != a && may_join(t, b, span[0]))
				st = try_pair(t, a, b, span[0], err);
	if (st)
		return st;
	vn_conclude(t);
	if (!x->n_fit) {
		memcpy(x->by, nearest, sizeof nearest);
		x->n = kept;
		t->pairs_in_vain++;
		vn_conclude(t);
	}
	return VN_OK;
}
