/* gaps.c: finds what a candidate recorded of every layer but a few, since a fault may have lost it.
 * What it did not record of any layer, of the first ones or of the last ones, it left out. */
#include "compare/match/match.h"

#include "capture/recording/left_out.h"

#include "libref/base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct gaps {
	int         n;
	const char *name;            /* the first */
	int         step, low, high; /* its step; the layers around it that have its point */
} gaps;

/* Marks the values of the plan (aliases resolved) that the candidate has in the step of checkpoint
 * i; returns the first checkpoint of the next step. Absent ones that fail are reported as such, and
 * count as there. */
static int mark_step(const vn_opened *o, const vn_checkpoints *all, int i, bool *has)
{
	const int step = all->of[i].step;

	memset(has, 0, (size_t)o->plan->n_values);
	for (; i < all->n && all->of[i].step == step; i++) {
		const vn_checkpoint *p = &all->of[i];
		if (p->value >= 0 && (p->cand >= 0 || p->fails))
			has[p->value] = true;
	}
	return i;
}

/* Does the candidate lack value v, and have its point in layers before and after it, more than
 * twice as often as it lacks it between these? */
static bool is_gap(const vn_plan *plan, const bool *has, int v, int *low, int *high)
{
	const vn_value *value = plan->value;
	int             with = 0, without = 0, since = 0;

	*low = *high = -1;
	for (int k = 0; k < plan->n_values; k++) {
		if (!*value[k].name || value[k].point != value[v].point)
			continue;
		if (!has[vn_plan_root(plan, k)]) {
			since += with > 0;
			continue;
		}
		with++;
		without += since;
		since = 0;
		if (value[k].layer < value[v].layer)
			*low = value[k].layer;
		else if (*high < 0)
			*high = value[k].layer;
	}
	return *low >= 0 && *high >= 0 && with > 2 * without;
}

static void find_in_step(const vn_opened *o, int step, const bool *has, gaps *g)
{
	const vn_plan *plan = o->plan;

	for (int v = 0; v < plan->n_values; v++) {
		const vn_value *value = &plan->value[v];
		int             low, high;
		if (!*value->name || value->layer < 0 || vn_plan_root(plan, v) != v || has[v] ||
		    !vn_match_selects(o, value->name) || !is_gap(plan, has, v, &low, &high))
			continue;
		if (g->n++ == 0)
			*g = (gaps) { 1, value->name, step, low, high };
	}
}

void vn_match_find_gaps(const vn_opened *o, const vn_checkpoints *all, vn_lines *warnings)
{
	const vn_left_out *left;
	gaps               g = { 0 };

	if (!o->plan || vn_recording_left_out(o->cand, &left))
		return;
	bool *has = vn_alloc((size_t)o->plan->n_values, sizeof *has);
	for (int i = 0; i < all->n;) {
		const int step = all->of[i].step;
		i = mark_step(o, all, i, has);
		find_in_step(o, step, has, &g);
	}
	free(has);
	char more[48] = "", at[24] = "";
	if (g.n > 1)
		snprintf(more, sizeof more, "; %d more like it", g.n - 1);
	if (g.n && g.step)
		snprintf(at, sizeof at, "step.%d/", g.step);
	if (g.n)
		vn_lines_add(warnings,
		             "the candidate has this point of layers %d and %d, but not %s%s: left out, or lost by a fault%s",
		             g.low, g.high, at, g.name, more);
}
