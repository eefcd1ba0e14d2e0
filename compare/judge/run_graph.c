/* run_graph.c: see run_graph.h. */
#include "compare/judge/run_graph.h"

#include "libref/base/alloc.h"

#include <stdlib.h>

struct vn_run_graph {
	const vn_run_plan *plan;
	int               *point; /* (values): checkpoint; -1: it was not compared */
	unsigned          *stamp; /* (nodes): of the walk that went through it */
	unsigned           now;
	int               *stack; /* (nodes) */
};

void vn_run_graph_free(vn_run_graph *g)
{
	if (!g)
		return;
	free(g->point);
	free(g->stamp);
	free(g->stack);
	free(g);
}

static const vn_run_plan *plan_of(const vn_opened *o)
{
	const vn_run_plan *ref = vn_recording_run_plan(o->ref);
	return ref ? ref : vn_recording_run_plan(o->cand);
}

void vn_run_graph_build(const vn_opened *o, const vn_checkpoints *all, vn_localised *localised)
{
	const vn_run_plan *plan = plan_of(o);

	if (!plan || localised->run_graph)
		return;
	vn_run_graph *g = localised->run_graph = vn_alloc_zero(1, sizeof *g);
	g->point = vn_alloc((size_t)plan->n_values, sizeof *g->point);
	g->stamp = vn_alloc_zero((size_t)plan->n, sizeof *g->stamp);
	g->stack = vn_alloc((size_t)plan->n, sizeof *g->stack);
	g->plan = plan;
	for (int i = 0; i < plan->n_values; i++)
		g->point[i] = -1;
	for (int i = 0; i < all->n; i++) {
		const vn_checkpoint *p = &all->of[i];
		const int            value = p->m.n ? vn_run_plan_value(plan, p->step, p->name) : -1;
		if (value >= 0)
			g->point[value] = i;
	}
}

static bool is_listed(const int *input, int n, int point)
{
	for (int i = 0; i < n; i++)
		if (input[i] == point)
			return true;
	return false;
}

int vn_run_inputs_of(const vn_checkpoints *all, const vn_localised *localised, int point, int *input, int max)
{
	vn_run_graph        *g = localised->run_graph;
	const vn_checkpoint *p = &all->of[point];
	const int            value = g ? vn_run_plan_value(g->plan, p->step, p->name) : -1;
	int                  n = 0, depth = 0;

	if (value < 0)
		return -1;
	g->stamp[g->plan->value[value].node] = ++g->now;
	g->stack[depth++] = g->plan->value[value].node;
	while (depth > 0) {
		const vn_run_node *node = &g->plan->node[g->stack[--depth]];
		for (int i = 0; i < node->n_in; i++) {
			const int in = g->plan->in[node->first_in + i], maker = g->plan->value[in].node;
			if (g->point[in] >= 0 && n < max && !is_listed(input, n, g->point[in]))
				input[n++] = g->point[in];
			if (g->point[in] >= 0 || g->stamp[maker] == g->now)
				continue;
			g->stamp[maker] = g->now;
			g->stack[depth++] = maker;
		}
	}
	return n;
}
