/* trace.c: see trace.h. */
#include "compare/replay/trace.h"

#include "compare/judge/reach.h"

#include "libref/base/alloc.h"

#include <stdlib.h>

/* The number of steps comes from a foreign file; a table of all cells must stay small. */
enum { CELLS_MAX = 1 << 26 };

vn_status vn_trace_init(vn_trace *t, const vn_plan *plan, int steps, vn_error *err)
{
	const size_t cells = (size_t)steps * (size_t)plan->n_values;
	*t = (vn_trace) { .plan = plan };
	if (cells > CELLS_MAX)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%d steps of %d values are too many to replay", steps, plan->n_values);
	t->kept = vn_alloc_zero(cells, sizeof *t->kept);
	t->charged_to = vn_alloc(cells, sizeof *t->charged_to);
	t->stamp = vn_alloc_zero(cells, sizeof *t->stamp);
	for (size_t i = 0; i < cells; i++)
		t->charged_to[i] = -1;
	return VN_OK;
}

void vn_trace_finish(vn_trace *t)
{
	VN_FREE(t->kept, t->charged_to, t->stamp, t->span, t->todo);
	*t = (vn_trace) { 0 };
}

static size_t cell_of(const vn_trace *t, size_t step, int value)
{
	return step * (size_t)t->plan->n_values + (size_t)value;
}

void vn_trace_keep(vn_trace *t, int step, int value, vn_kept_rows rows)
{
	t->kept[cell_of(t, (size_t)step, value)] = (unsigned char)rows;
}

vn_kept_rows vn_trace_kept(const vn_trace *t, int step, int value)
{
	return (vn_kept_rows)t->kept[cell_of(t, (size_t)step, value)];
}

static void append_cell(size_t **list, size_t *n, size_t x)
{
	*list = vn_alloc_grown(*list, *n, sizeof **list);
	(*list)[(*n)++] = x;
}

/* A cell is visited at most twice: for some of its rows, and then for all. */
static void visit_cell(vn_trace *t, size_t cell, bool all_rows)
{
	const uint32_t before = t->stamp[cell];
	if (before == t->now + 1 || (before == t->now && !all_rows))
		return;
	t->stamp[cell] = t->now + all_rows;
	if (before != t->now)
		append_cell(&t->span, &t->n_span, cell);
	append_cell(&t->todo, &t->n_todo, 2 * cell + all_rows);
}

static void reach_value(void *trace, size_t step, int value, bool all_rows)
{
	vn_trace    *t = trace;
	const size_t cell = cell_of(t, step, value);
	if (t->kept[cell] < (all_rows ? VN_KEPT_ALL : VN_KEPT_ROWS))
		visit_cell(t, cell, all_rows);
}

static bool grows_with_tokens(const vn_trace *t, int value)
{
	const int state = t->plan->value[value].state;
	return state >= 0 && t->plan->state[state].input >= 0;
}

/* A view of a state is not an operation. */
static bool counts_cell(const vn_trace *t, size_t cell)
{
	const vn_value *v = &t->plan->value[cell % (size_t)t->plan->n_values];
	return v->state < 0 && v->slot == 0;
}

void vn_trace_span(vn_trace *t, int step, int value, int *nodes, int *charged_to)
{
	const size_t values = (size_t)t->plan->n_values;
	t->now += 2;
	t->n_span = t->n_todo = 0;
	visit_cell(t, cell_of(t, (size_t)step, value), false);
	while (t->n_todo) {
		const size_t x = t->todo[--t->n_todo], cell = x / 2;
		vn_reach_inputs(t->plan, cell / values, (int)(cell % values), x % 2 != 0, reach_value, t);
	}
	*nodes = 0;
	*charged_to = -1;
	for (size_t i = 0; i < t->n_span; i++) {
		const size_t cell = t->span[i];
		*nodes += cell != t->span[0] && counts_cell(t, cell);
		*charged_to = *charged_to < 0 ? t->charged_to[cell] : *charged_to;
	}
	*nodes += 1;
}

void vn_trace_charge(vn_trace *t, int point)
{
	for (size_t i = 0; i < t->n_span; i++) {
		const size_t   cell = t->span[i], values = (size_t)t->plan->n_values;
		const vn_node *node = &t->plan->node[t->plan->value[cell % values].node];
		/* A growing state is only passed on; the values written to it are in the span
		 * themselves. */
		if (i == 0 || !grows_with_tokens(t, (int)(cell % values)))
			t->charged_to[cell] = point;
		/* the operation made all these outputs */
		for (int k = 0; k < node->n_out; k++)
			if (node->out[k] >= 0 && !grows_with_tokens(t, node->out[k]))
				t->charged_to[cell - cell % values + (size_t)node->out[k]] = point;
	}
}
