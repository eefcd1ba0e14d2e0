/* localise.c: finds where the error starts.
 *
 * The first divergence is the first checkpoint in execution order that is outside its limits. An
 * origin is one whose inputs, on the graph of the plan, are all inside: the graph decides, not the
 * order, so that a wrong v is not blamed on attn_out. An error that continues near the limits goes
 * in and out of them many times; where it does, nothing starts.
 */
#include "compare/judge/localise.h"
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"
#include "compare/comparison/comparison.h"
#include "compare/judge/pool_channels.h"
#include "compare/judge/reach.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>

/* Which checkpoints a checkpoint was computed from, by the plan of a run of any
 * PyTorch module (capture/recording/run_plan.h): that of the reference, else the candidate's.
 *
 * Reads   opened.ref, opened.cand, and the measured checkpoints
 * Fills   localised.run_graph, which vn_localise_drop_graph frees
 */

typedef struct vn_run_graph vn_run_graph;

struct vn_run_graph {
	const vn_run_plan *plan;
	int               *point; /* (values): checkpoint; -1: it was not compared */
	unsigned          *stamp; /* (nodes): of the walk that went through it */
	unsigned           now;
	int               *stack; /* (nodes) */
};

static void free_run_graph(vn_run_graph *g)
{
	if (!g)
		return;
	VN_FREE(g->point, g->stamp, g->stack, g);
}

static const vn_run_plan *plan_of(const vn_opened *o)
{
	const vn_run_plan *ref = vn_recording_run_plan(o->ref);
	return ref ? ref : vn_recording_run_plan(o->cand);
}

/* Builds localised.run_graph. It stays NULL, without an error, if no side has such a plan. */
static void build_run_graph(const vn_opened *o, const vn_checkpoints *all, vn_localised *localised)
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

/* As vn_inputs_of (localise.h). Needs build_run_graph. */
static int run_inputs_of(const vn_checkpoints *all, const vn_localised *localised, int point, int *input, int max)
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
	VN_FREE(g->point, g->stamp, g->stack, g->carries, g);
}

void vn_localise_drop_graph(vn_localised *localised)
{
	destroy_graph(localised->graph);
	localised->graph = NULL;
	free_run_graph(localised->run_graph);
	localised->run_graph = NULL;
}

void vn_graph_build(const vn_opened *o, const vn_checkpoints *all, vn_localised *localised)
{
	const vn_plan *plan = o->plan;
	int            steps = 0;
	for (int i = 0; i < all->n; i++)
		if (all->of[i].step >= steps)
			steps = all->of[i].step + 1;
	const size_t values = (size_t)plan->n_values, cells = (size_t)steps * values;
	if (cells > CELLS_MAX)
		return;
	vn_graph *g = localised->graph = vn_alloc_zero(1, sizeof *g);
	g->point = vn_alloc(cells, sizeof *g->point);
	g->stamp = vn_alloc_zero(cells, sizeof *g->stamp);
	g->stack = vn_alloc(cells, sizeof *g->stack);
	g->carries = vn_alloc(values, sizeof *g->carries);
	g->values = values;
	g->carried = -1;
	for (size_t i = 0; i < cells; i++)
		g->point[i] = -1;
	for (int i = 0; i < all->n; i++) {
		const vn_checkpoint *p = &all->of[i];
		if (!p->m.n || p->value < 0)
			continue;
		int *cell = &g->point[(size_t)p->step * values + (size_t)p->value];
		/* If a value has two names, the one outside counts, and among equals the first. */
		if (*cell < 0 || (p->status == VN_OUTSIDE && all->of[*cell].status != VN_OUTSIDE))
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

int vn_inputs_of(const vn_opened *o, const vn_checkpoints *all, const vn_localised *localised, int point, int *input,
                 int max)
{
	const vn_plan *plan = o->plan;
	vn_graph      *g = localised->graph;
	const int      value = g ? all->of[point].value : -1;
	int            n = 0;
	if (value < 0)
		return g ? -1 : run_inputs_of(all, localised, point, input, max);
	g->now++;
	g->depth = 0;
	push_inputs(g, plan, (size_t)all->of[point].step * g->values + (size_t)value);
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
static bool is_outside(const vn_pools *pools, const vn_checkpoint *p)
{
	return (p->status == VN_OUTSIDE && p->fails) ||
	       (p->pooled_small >= 0 && pools->pooled_small[p->pooled_small].outside) ||
	       (p->channels >= 0 && pools->channel_pool[p->channels].outside);
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

/* What decides where errors start. */
typedef struct start_search {
	const vn_opened      *o;
	const vn_checkpoints *all;
	const vn_pools       *pools;
	const vn_localised   *localised;
	int                  *input; /* room for all->n */
} start_search;

/* A plan's values come after their inputs. From earlier steps only whether anything was outside is
 * used, because each attention reads them all. */
static void carry_errors(const start_search *s, int step)
{
	vn_graph *g = s->localised->graph;
	carried   a = { g, (size_t)step, (size_t)s->all->of[s->localised->first].step, false };
	for (size_t v = 0; v < g->values; v++) {
		const int at = g->point[(size_t)step * g->values + v];
		a.yes = at >= 0 && is_outside(s->pools, &s->all->of[at]);
		if (!a.yes)
			vn_reach_inputs(s->o->plan, (size_t)step, (int)v, true, push_carried, &a);
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
static bool inherits_error(const start_search *s, int point, int n)
{
	vn_graph            *g = s->localised->graph;
	const vn_checkpoint *p = &s->all->of[point];
	double               brought = 0;
	bool                 behind = false;

	if (s->localised->first == point)
		return false;
	if (g->carried != p->step)
		carry_errors(s, p->step);
	for (int i = 0; i < n; i++) {
		const vn_checkpoint *in = &s->all->of[s->input[i]];
		behind = behind ||
		         (in->step == p->step ? g->carries[in->value] : in->step >= s->all->of[s->localised->first].step);
		brought = fmax(brought, brought_error(in));
	}
	return behind && fmax(0, vn_checkpoint_limit_fraction(p)) < ANEW * brought;
}

/* Same by the plan of a run, of which only the order tells what comes behind an error. */
static bool run_starts_here(const start_search *s, int point)
{
	const int n = run_inputs_of(s->all, s->localised, point, s->input, s->all->n);
	double    brought = 0;

	for (int i = 0; i < n; i++) {
		if (is_outside(s->pools, &s->all->of[s->input[i]]))
			return false;
		brought = fmax(brought, brought_error(&s->all->of[s->input[i]]));
	}
	return n >= 0 && (point == s->localised->first ||
	                  !(fmax(0, vn_checkpoint_limit_fraction(&s->all->of[point])) < ANEW * brought));
}

/* Only the name that counts may be an origin: one value is one origin. */
static bool starts_here(const start_search *s, int point)
{
	const vn_checkpoint *p = &s->all->of[point];
	if (!s->localised->graph)
		return run_starts_here(s, point);
	if (p->value < 0 ||
	    s->localised->graph->point[(size_t)p->step * s->localised->graph->values + (size_t)p->value] != point)
		return false;
	const int n = vn_inputs_of(s->o, s->all, s->localised, point, s->input, s->all->n);
	for (int i = 0; i < n; i++)
		if (is_outside(s->pools, &s->all->of[s->input[i]]))
			return false;
	return n >= 0 && !inherits_error(s, point, n);
}

void vn_localise(const vn_opened *o, vn_checkpoints *all, const vn_pools *pools, vn_localised *localised,
                 vn_lines *warnings)
{
	localised->first = -1;
	for (int i = all->n - 1; i >= 0; i--)
		if (all->of[i].status == VN_OUTSIDE && all->of[i].fails)
			localised->first = i;
	if (localised->first < 0)
		return;
	if (o->plan)
		vn_graph_build(o, all, localised);
	else
		build_run_graph(o, all, localised);
	if (!o->plan && !localised->run_graph)
		return;
	if (o->plan && !localised->graph) {
		vn_lines_add(warnings, "too many steps of %d values each: vernier did not look for origins", o->plan->n_values);
		return;
	}
	const start_search s = { o, all, pools, localised, vn_alloc((size_t)all->n, sizeof *s.input) };
	localised->origins = vn_alloc_zero((size_t)all->n, sizeof *localised->origins);
	for (int i = 0; i < all->n; i++) {
		vn_checkpoint *p = &all->of[i];
		if (p->status == VN_OUTSIDE && p->fails && (p->overwritten || starts_here(&s, i))) {
			p->origin = true;
			localised->origins[localised->n_origins++] = i;
		}
	}
	free(s.input);
}
