/* localise.c: finds where the error starts.
 *
 * The first divergence is the first checkpoint in execution order that is outside its limits. An
 * origin is one whose inputs, on the graph of the plan, are all inside: the graph decides, not the
 * order, so that a wrong v is not blamed on attn_out. An error that continues near the limits goes
 * in and out of them many times; where it does, nothing starts.
 */
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"
#include "compare/judge/localise.h"
#include "compare/judge/pool_channels.h"
#include "compare/judge/reach.h"
#include "compare/judge/run_graph.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Which checkpoint holds which value, with room for the walk. A cell is a pair (step, value). */
struct vn_graph {
	size_t    values;
	int      *point; /* checkpoint of a root value; -1 if it was not compared */
	uint32_t *stamp, now;
	size_t   *stack, depth;
	bool     *carries; /* for the values of one step: the value or one of its inputs is outside */
	int       carried; /* that step */
};

/* Step numbers are untrusted, so the table of all steps is bounded. */
enum { CELLS_MAX = 1 << 26 };

static void destroy_graph(vn_graph *g)
{
	if (!g)
		return;
	free(g->point);
	free(g->stamp);
	free(g->stack);
	free(g->carries);
	free(g);
}

void vn_localise_drop_graph(vn_result *r)
{
	destroy_graph(r->localised.graph);
	r->localised.graph = NULL;
	vn_run_graph_free(r->localised.run_graph);
	r->localised.run_graph = NULL;
}

void vn_graph_build(vn_comparison *c)
{
	const vn_plan *plan = c->opened.plan;
	int            steps = 0;
	for (int i = 0; i < c->result.checkpoints.n; i++)
		if (c->result.checkpoints.of[i].step >= steps)
			steps = c->result.checkpoints.of[i].step + 1;
	const size_t values = (size_t)plan->n_values, cells = (size_t)steps * values;
	if (cells > CELLS_MAX)
		return;
	vn_graph *g = c->result.localised.graph = vn_alloc_zero(1, sizeof *g);
	g->point = vn_alloc(cells, sizeof *g->point);
	g->stamp = vn_alloc_zero(cells, sizeof *g->stamp);
	g->stack = vn_alloc(cells, sizeof *g->stack);
	g->carries = vn_alloc(values, sizeof *g->carries);
	g->values = values;
	g->carried = -1;
	for (size_t i = 0; i < cells; i++)
		g->point[i] = -1;
	for (int i = 0; i < c->result.checkpoints.n; i++) {
		const vn_checkpoint *p = &c->result.checkpoints.of[i];
		if (!p->m.n || p->value < 0)
			continue;
		int *cell = &g->point[(size_t)p->step * values + (size_t)p->value];
		/* If a value has two names, the one outside counts, and among equals the first. */
		if (*cell < 0 || (p->status == VN_OUTSIDE && c->result.checkpoints.of[*cell].status != VN_OUTSIDE))
			*cell = i;
	}
}

static void push_cell(vn_graph *g, size_t cell)
{
	if (g->stamp[cell] == g->now)
		return;
	g->stamp[cell] = g->now;
	g->stack[g->depth++] = cell;
}

static void push_reached(void *graph, size_t step, int value, bool all_rows)
{
	vn_graph *g = graph;
	(void)all_rows; /* by tensors that are compared whole */
	push_cell(g, step * g->values + (size_t)value);
}

static void push_inputs(vn_graph *g, const vn_plan *plan, size_t cell)
{
	vn_reach_inputs(plan, cell / g->values, (int)(cell % g->values), true, push_reached, g);
}

int vn_inputs_of(const vn_comparison *c, int point, int *input, int max)
{
	const vn_plan *plan = c->opened.plan;
	vn_graph      *g = c->result.localised.graph;
	const int      value = g ? c->result.checkpoints.of[point].value : -1;
	int            n = 0;
	if (value < 0)
		return g ? -1 : vn_run_inputs_of(c, point, input, max);
	g->now++;
	g->depth = 0;
	push_inputs(g, plan, (size_t)c->result.checkpoints.of[point].step * g->values + (size_t)value);
	while (g->depth > 0) {
		const size_t cell = g->stack[--g->depth];
		if (g->point[cell] < 0)
			push_inputs(g, plan, cell);
		else if (n < max)
			input[n++] = g->point[cell];
	}
	return n;
}

/* Outside its limits and not already so in the baseline, either alone or together with its other
 * steps, one of which is charged. */
static bool is_outside(const vn_result *r, const vn_checkpoint *p)
{
	return (p->status == VN_OUTSIDE && p->fails) ||
	       (p->pooled_small >= 0 && r->pools.pooled_small[p->pooled_small].outside) ||
	       (p->channels >= 0 && r->pools.channel_pool[p->channels].outside);
}

/* Argument of push_carried: the value and step asked for, and the first step with
 * something outside. */
typedef struct carried {
	vn_graph *g;
	size_t    step, from;
	bool      yes;
} carried;

static void push_carried(void *context, size_t step, int value, bool all_rows)
{
	carried *a = context;
	(void)all_rows;
	a->yes = a->yes || (step == a->step ? a->g->carries[value] : step >= a->from);
}

/* A plan's values come after their inputs. From earlier steps only whether anything was outside is
 * used, because each attention reads them all. */
static void carry_errors(const vn_comparison *c, int step)
{
	vn_graph *g = c->result.localised.graph;
	carried   a = { g, (size_t)step, (size_t)c->result.checkpoints.of[c->result.localised.first].step, false };
	for (size_t v = 0; v < g->values; v++) {
		const int at = g->point[(size_t)step * g->values + v];
		a.yes = at >= 0 && is_outside(&c->result, &c->result.checkpoints.of[at]);
		if (!a.yes)
			vn_reach_inputs(c->opened.plan, (size_t)step, (int)v, true, push_carried, &a);
		g->carries[v] = a.yes;
	}
	g->carried = step;
}

/* The share of its limits that a checkpoint's error uses while within them. Non-finite values are
 * skipped, and a nearly exhausted format range is not an error. */
static double brought_error(const vn_checkpoint *p)
{
	double most = 0;
	for (int i = 0; i < p->n_checks; i++) {
		const vn_check k = vn_check_at(p, i);
		const double   part = vn_check_limit_fraction(&k);
		if (vn_metric_get(k.metric)->kind != VN_KIND_RANGE && part <= 1)
			most = fmax(most, part);
	}
	return most;
}

/* After a divergence, an origin must exceed the error of its inputs by this factor, both measured
 * as shares of their limits. */
static const double ANEW = 4;

/* Outside because its input is nearly outside, and was farther out earlier. */
static bool inherits_error(const vn_comparison *c, int point, const int *input, int n)
{
	vn_graph            *g = c->result.localised.graph;
	const vn_checkpoint *p = &c->result.checkpoints.of[point];
	double               brought = 0;
	bool                 behind = false;

	if (c->result.localised.first == point)
		return false;
	if (g->carried != p->step)
		carry_errors(c, p->step);
	for (int i = 0; i < n; i++) {
		const vn_checkpoint *in = &c->result.checkpoints.of[input[i]];
		behind = behind || (in->step == p->step ? g->carries[in->value]
		                                        : in->step >= c->result.checkpoints.of[c->result.localised.first].step);
		brought = fmax(brought, brought_error(in));
	}
	return behind && fmax(0, vn_checkpoint_limit_fraction(p)) < ANEW * brought;
}

/* Same by the plan of a run, of which only the order tells what comes behind an error. */
static bool run_starts_here(const vn_comparison *c, int point, int *input)
{
	const int n = vn_run_inputs_of(c, point, input, c->result.checkpoints.n);
	double    brought = 0;

	for (int i = 0; i < n; i++) {
		if (is_outside(&c->result, &c->result.checkpoints.of[input[i]]))
			return false;
		brought = fmax(brought, brought_error(&c->result.checkpoints.of[input[i]]));
	}
	return n >= 0 && (point == c->result.localised.first ||
	                  !(fmax(0, vn_checkpoint_limit_fraction(&c->result.checkpoints.of[point])) < ANEW * brought));
}

/* Only the name that counts may be an origin: one value is one origin. */
static bool starts_here(const vn_comparison *c, int point, int *input)
{
	const vn_checkpoint *p = &c->result.checkpoints.of[point];
	if (!c->result.localised.graph)
		return run_starts_here(c, point, input);
	if (p->value < 0 ||
	    c->result.localised.graph->point[(size_t)p->step * c->result.localised.graph->values + (size_t)p->value] !=
	        point)
		return false;
	const int n = vn_inputs_of(c, point, input, c->result.checkpoints.n);
	for (int i = 0; i < n; i++)
		if (is_outside(&c->result, &c->result.checkpoints.of[input[i]]))
			return false;
	return n >= 0 && !inherits_error(c, point, input, n);
}

void vn_localise(vn_comparison *c)
{
	c->result.localised.first = -1;
	for (int i = c->result.checkpoints.n - 1; i >= 0; i--)
		if (c->result.checkpoints.of[i].status == VN_OUTSIDE && c->result.checkpoints.of[i].fails)
			c->result.localised.first = i;
	if (c->result.localised.first < 0)
		return;
	(c->opened.plan ? vn_graph_build : vn_run_graph_build)(c);
	if (!c->opened.plan && !c->result.localised.run_graph)
		return;
	if (c->opened.plan && !c->result.localised.graph) {
		vn_lines_add(&c->result.remarks.warnings, "too many steps of %d values each: vernier did not look for origins",
		             c->opened.plan->n_values);
		return;
	}
	int *input = vn_alloc((size_t)c->result.checkpoints.n, sizeof *input);
	c->result.localised.origins = vn_alloc_zero((size_t)c->result.checkpoints.n, sizeof *c->result.localised.origins);
	for (int i = 0; i < c->result.checkpoints.n; i++) {
		vn_checkpoint *p = &c->result.checkpoints.of[i];
		if (p->status == VN_OUTSIDE && p->fails && (p->overwritten || starts_here(c, i, input))) {
			p->origin = true;
			c->result.localised.origins[c->result.localised.n_origins++] = i;
		}
	}
	free(input);
}
