/* recompute_touched.c: finds the values that a plan computes differently from the unmodified
 * plan. */
#include "compare/replay/recompute_internal.h"

#include <string.h>

typedef vn_recompute_plan run;

static bool same_weight(const vn_tensor *a, const vn_tensor *b)
{
	return a->data == b->data && a->dtype == b->dtype && vn_shape_equal(&a->shape, &b->shape);
}

/* Do both nodes compute the same from the same inputs? a: in the unmodified plan, b: in the
 * tried one. */
static bool same_nodes(const run *r, const vn_node *a, const vn_node *b)
{
	const vn_recompute *p = r->p;
	bool same = a->op == b->op && a->n_in == b->n_in && a->n_w == b->n_w && memcmp(&a->c, &b->c, sizeof a->c) == 0 &&
	            memcmp(&a->x, &b->x, sizeof a->x) == 0 && memcmp(a->in, b->in, (size_t)a->n_in * sizeof *a->in) == 0;

	for (int i = 0; same && i < a->n_w; i++)
		same = (a->w[i] < 0) == (b->w[i] < 0) &&
		       (a->w[i] < 0 || same_weight(&p->site.weights[a->w[i]], &r->weight[b->w[i]]));
	return same;
}

static bool same_node(const run *r, int value)
{
	const vn_plan *plan = r->base;
	return same_nodes(r, &plan->node[plan->value[value].node], &r->plan->node[r->plan->value[value].node]);
}

bool vn_recompute_is_touched(run *r, int value)
{
	const int root = vn_plan_root(r->plan, value);
	bool      yes;

	if (r->touched[root] >= 0)
		return r->touched[root];
	if (vn_recompute_known(r->p, root)) {
		r->touched[root] = 0;
		return false;
	}
	yes = root >= r->p->site.plan->n_values || !same_node(r, root);
	const vn_node *n = &r->plan->node[r->plan->value[root].node];
	for (int i = 0; !yes && i < n->n_in; i++)
		yes = vn_recompute_is_touched(r, n->in[i]);
	r->touched[root] = yes;
	return yes;
}

bool vn_recompute_makes_target(run *r, int root)
{
	const vn_plan  *plan = r->base;
	const int       target = r->p->site.target;
	const vn_value *v = &r->plan->value[root], *t = &plan->value[target];
	const vn_node  *a = &plan->node[t->node], *b = &r->plan->node[v->node];

	if (root == target)
		return !vn_recompute_is_touched(r, root);
	if (root < plan->n_values || a->out[0] != target || b->out[0] != root || a->n_state || b->n_state ||
	    !same_nodes(r, a, b) || vn_value_row(v) != vn_value_row(t) || v->size[v->rank - 1] != t->size[t->rank - 1] ||
	    vn_value_wide(r->plan, root) != vn_value_wide(plan, target))
		return false;
	for (int i = 0; i < b->n_in; i++)
		if (vn_recompute_is_touched(r, b->in[i]))
			return false;
	return true;
}
