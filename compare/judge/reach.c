/* reach.c: see reach.h. */
#include "compare/judge/reach.h"

typedef struct asker {
	const vn_plan    *plan;
	vn_reach_visitor *reach;
	void             *context;
} asker;

static void reach_input(const asker *a, size_t step, const vn_node *node, int i, bool all_rows)
{
	a->reach(a->context, step, vn_plan_root(a->plan, node->in[i]), all_rows || vn_op_mixes_tokens(node->op, i));
}

/* Marks a state after a step: the value that shows it, or else the values written to it in all
 * steps so far. */
static void reach_state(const asker *a, size_t step, const vn_state *s)
{
	const vn_node *node = &a->plan->node[s->node];

	if (s->value >= 0)
		a->reach(a->context, step, s->value, true);
	for (size_t k = 0; s->value < 0 && k <= step; k++)
		for (int i = 0; i < node->n_in; i++)
			if (s->input < 0 || s->input == i)
				reach_input(a, k, node, i, true);
}

void vn_reach_inputs(const vn_plan *plan, size_t step, int value, bool all_rows, vn_reach_visitor *reach, void *context)
{
	const asker     a = { plan, reach, context };
	const vn_value *v = &plan->value[value];
	const vn_node  *node = &plan->node[v->node];
	const vn_state *shown = v->state >= 0 ? &plan->state[v->state] : NULL;

	if (shown && shown->input >= 0) {
		if (step > 0)
			reach_state(&a, step - 1, shown);
		reach_input(&a, step, node, shown->input, true);
		return;
	}
	for (int k = 0; k < node->n_state; k++)
		if (plan->state[node->state[k]].input < 0 && step > 0)
			reach_state(&a, step - 1, &plan->state[node->state[k]]);
	for (int i = node->n_in - 1; i >= 0; i--) {
		int k = 0;
		while (k < node->n_state && plan->state[node->state[k]].input != i)
			k++;
		if (k < node->n_state)
			reach_state(&a, step, &plan->state[node->state[k]]);
		else
			reach_input(&a, step, node, i, all_rows);
	}
}
