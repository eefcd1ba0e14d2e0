/* neither.c: counts what the plan computes but neither side recorded, since a comparison of very
 * few tensors is also within its limits. */
#include "compare/match/match.h"

#include "libref/base/alloc.h"
#include "libref/base/order.h"

#include <stdlib.h>

/* Steps with rows kept on either side; a step number counts once. */
static int steps_kept(const vn_opened *o)
{
	const vn_step *s;
	int            kept = 0, n = vn_recording_steps(o->ref, &s);
	for (int i = 0; i < n; i++) {
		const vn_step *other = vn_recording_step(o->cand, s[i].number);
		kept += s[i].rows > 0 || (other && other->rows > 0);
	}
	n = vn_recording_steps(o->cand, &s);
	for (int i = 0; i < n; i++)
		kept += s[i].rows > 0 && !vn_recording_step(o->ref, s[i].number);
	return kept;
}

VN_ORDER_BY(by_key, int64_t, VN_ORDER(*x, *y))

/* Counts the values with names, each under its first name, except those computed
 * only on request. */
static int64_t wanted_of(const vn_opened *o, bool *wanted)
{
	int64_t n = 0;
	for (int v = 0; v < o->plan->n_values; v++) {
		const int root = vn_plan_root(o->plan, v);
		if (!*o->plan->value[v].name || o->plan->value[root].on_demand || wanted[root] ||
		    !vn_match_selects(o, o->plan->value[v].name))
			continue;
		wanted[root] = true;
		n++;
	}
	return n;
}

void vn_match_count_neither(const vn_opened *o, const vn_checkpoints *points, vn_unpaired *unpaired)
{
	if (!o->plan)
		return;
	VN_FREED bool *wanted = vn_alloc_zero((size_t)o->plan->n_values, sizeof *wanted);
	int64_t       *key = vn_alloc((size_t)points->n, sizeof *key), there = 0;
	const int64_t  all = wanted_of(o, wanted) * steps_kept(o);
	int            n = 0;

	for (int i = 0; i < points->n; i++)
		if (points->of[i].value >= 0 && wanted[points->of[i].value])
			key[n++] = (int64_t)points->of[i].step * o->plan->n_values + points->of[i].value;
	qsort(key, (size_t)n, sizeof *key, by_key);
	for (int i = 0; i < n; i++)
		there += i == 0 || key[i] != key[i - 1];
	unpaired->n_neither = all > there ? all - there : 0;
	free(key);
}
