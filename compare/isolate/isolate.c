/* isolate.c: see isolate.h. */
#include "compare/isolate/isolate.h"

#include "libref/base/alloc.h"
#include "libref/base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct isolate_search {
	const vn_isolate_request *q;
	int                       n;
	bool                     *on;   /* (n) the set to test */
	int                      *list; /* (n) numbers of the toggles that may be needed */
	int                       n_list;
	int                      *group; /* (n) the group of list[i] in this pass */
	bool                     *gone;  /* (n) was the group removed in this pass? */
	int                       passes_left;
} isolate_search;

/* ---- asking ------------------------------------------------------------------------- */

/* Asks the oracle about the set in s->on. */
static vn_status test_set(isolate_search *s, bool *good, vn_error *err)
{
	return s->q->ask(s->q->ctx, s->on, false, good, err);
}

/* Tests the set of the list's toggles. */
static vn_status test_list(isolate_search *s, bool *good, vn_error *err)
{
	memset(s->on, 0, (size_t)s->n);
	for (int i = 0; i < s->n_list; i++)
		s->on[s->list[i]] = true;
	return test_set(s, good, err);
}

/* About how many runs it takes to find the needed ones of r groups, k = share * r of them: k log2(r
 * / k). */
static int runs_of(int r, double share)
{
	const double k = fmax(share * r, 1.0);
	return r < 1 ? 0 : (int)ceil(fmin(k * (1.0 + log2(fmax(r / k, 1.0))), 1.5 * r));
}

static void report_progress(const isolate_search *s, int at, int n_groups, int needed)
{
	if (s->q->left)
		*s->q->left = runs_of(n_groups - at, at ? (double)needed / at : 0.0) +
		              s->passes_left * (runs_of(n_groups, 0.0) + 1) + 2;
}

/* ---- one pass ------------------------------------------------------------------------- */

/* Tests the list without the removed groups and without groups [from, to). */
static vn_status test_without(isolate_search *s, int from, int to, bool *good, vn_error *err)
{
	memset(s->on, 0, (size_t)s->n);
	for (int i = 0; i < s->n_list; i++)
		s->on[s->list[i]] = !s->gone[s->group[i]] && (s->group[i] < from || s->group[i] >= to);
	return test_set(s, good, err);
}

/* The state of a pass. Groups before `at` are decided. At least one group of [at, bad_to) is
 * needed. */
typedef struct sweep {
	int  n, at, bad_to;
	int  block;         /* groups to try next if nothing is known about them */
	int  needed, clean; /* needed groups; groups removed since the last needed one */
	bool rest;          /* try all remaining groups at once */
} sweep;

static void find_needed(sweep *w)
{
	w->at++;
	w->needed++;
	w->bad_to = w->at;
	/* Dense culprits are found one by one; sparse ones may have been the last. */
	w->rest = w->needed == 1 || w->clean > 1;
	w->block = w->clean / 2 > 1 ? w->clean / 2 : 1;
	w->clean = 0;
}

static void clear_block(isolate_search *s, sweep *w, int to)
{
	memset(s->gone + w->at, 1, (size_t)(to - w->at));
	w->clean += to - w->at;
	w->at = to;
	w->block *= 2;
}

static vn_status step_sweep(isolate_search *s, sweep *w, vn_error *err)
{
	const bool bisecting = w->bad_to > w->at;
	const int  unknown = w->rest ? w->n - w->at : w->block;
	const int  size = bisecting ? (w->bad_to - w->at) / 2 : unknown;
	const int  to = w->at + size < w->n ? w->at + size : w->n;
	bool       good;

	if (bisecting && size == 0) { /* the last group of a needed block */
		find_needed(w);
		return VN_OK;
	}
	report_progress(s, w->at, w->n, w->needed);
	const vn_status st = test_without(s, w->at, to, &good, err);
	if (st)
		return st;
	if (good)
		clear_block(s, w, to);
	else if (!w->rest || bisecting)
		w->bad_to = to;
	if (!bisecting)
		w->rest = false;
	return VN_OK;
}

/* Removes the groups (n_groups) of the list that are not needed. */
static vn_status remove_groups(isolate_search *s, int n_groups, vn_error *err)
{
	sweep     w = { .n = n_groups, .bad_to = n_groups, .block = 1 };
	vn_status st = VN_OK;
	int       kept = 0;

	memset(s->gone, 0, (size_t)n_groups);
	while (w.at < w.n && !st)
		st = step_sweep(s, &w, err);
	for (int i = 0; i < s->n_list; i++)
		if (!s->gone[s->group[i]])
			s->list[kept++] = s->list[i];
	s->n_list = kept;
	return st;
}

/* Groups the list by key, or each member alone if it is NULL; in order of appearance. */
static int group_by(isolate_search *s, const int *key)
{
	int n = 0;

	for (int i = 0; i < s->n_list; i++) {
		int j = key ? 0 : i;
		while (j < i && key[s->list[j]] != key[s->list[i]])
			j++;
		s->group[i] = j < i ? s->group[j] : n++;
	}
	return n;
}

/* ---- the passes --------------------------------------------------------------------------- */

/* Sorts the list by component and keeps the order within a component. */
static void order_by_component(isolate_search *s, int n_groups)
{
	int *list = s->list, *sorted = vn_alloc((size_t)s->n_list, sizeof *sorted), n = 0;

	for (int g = 0; g < n_groups; g++)
		for (int i = 0; i < s->n_list; i++)
			if (s->group[i] == g)
				sorted[n++] = list[i];
	memcpy(list, sorted, (size_t)n * sizeof *list);
	free(sorted);
}

VN_ORDER_BY(by_number, int, VN_ORDER(*x, *y))

/* Removes members that a small set does not need: tests it without each of them. */
static vn_status tighten_set(isolate_search *s, vn_error *err)
{
	vn_status st = VN_OK;

	for (int i = 0; i < s->n_list && s->n_list > 1 && s->n_list <= VN_TIGHT_SET && !st; i++) {
		bool good;
		memset(s->gone, 0, (size_t)group_by(s, NULL));
		if (!(st = test_without(s, i, i + 1, &good, err)) && good) {
			memmove(s->list + i, s->list + i + 1, (size_t)(--s->n_list - i) * sizeof *s->list);
			i = -1;
		}
	}
	return st;
}

/* Reduces the list, whose set is good, to a minimal one. */
static vn_status minimise_set(isolate_search *s, vn_error *err)
{
	vn_status st = VN_OK;

	s->passes_left = 0;
	if (s->q->component) {
		s->passes_left = 1;
		if ((st = remove_groups(s, group_by(s, s->q->component), err)))
			return st;
		const int components = group_by(s, s->q->component);
		if (components > 3 && (st = remove_groups(s, group_by(s, s->q->layer), err)))
			return st;
		s->passes_left = 0;
		order_by_component(s, group_by(s, s->q->component));
	}
	if (!(st = remove_groups(s, group_by(s, NULL), err)))
		st = tighten_set(s, err);
	qsort(s->list, (size_t)s->n_list, sizeof *s->list, by_number);
	return st;
}

/* Fills the list with the hint's toggles (NULL: all toggles) that are in no set found so far. */
static void fill_list(isolate_search *s, const bool *found, const bool *hint)
{
	s->n_list = 0;
	for (int i = 0; i < s->n; i++)
		if (!found[i] && (!hint || hint[i]))
			s->list[s->n_list++] = i;
}

/* Fills the list with a good set to start from: a hint, or all remaining toggles. *any: false if
 * all remaining toggles together do not repair the run. */
static vn_status start_search(isolate_search *s, const bool *found, bool *any, vn_error *err)
{
	vn_status st;
	bool      good;

	fill_list(s, found, NULL);
	if ((st = test_list(s, any, err)) || !*any)
		return st;
	for (int h = 0; h < s->q->n_hints; h++) {
		fill_list(s, found, s->q->hint[h]);
		if (s->n_list > 0 && ((st = test_list(s, &good, err)) || good))
			return st;
	}
	fill_list(s, found, NULL);
	return VN_OK;
}

/* Adds the list to the found sets after asking the oracle again, which must give the same
 * answer. */
static vn_status join_sets(isolate_search *s, bool *found, vn_isolated *x, vn_error *err)
{
	bool      good;
	vn_status st;
	int       at = x->n_sets;

	memset(s->on, 0, (size_t)s->n);
	for (int i = 0; i < s->n_list; i++)
		s->on[s->list[i]] = found[s->list[i]] = true;
	if ((st = s->q->ask(s->q->ctx, s->on, true, &good, err)))
		return st;
	if (!good)
		return vn_fail(
			err, VN_ERR_UNSUPPORTED,
			"the same replacements gave a good run once and a bad run once: the run or its check is not deterministic");
	bool *set = vn_alloc((size_t)s->n, sizeof *set);
	memcpy(set, s->on, (size_t)s->n);
	for (; at > 0 && x->size[at - 1] > s->n_list; at--) {
		x->set[at] = x->set[at - 1];
		x->size[at] = x->size[at - 1];
	}
	x->set[at] = set;
	x->size[at] = s->n_list;
	x->n_sets++;
	return VN_OK;
}

static vn_status run_repaired(isolate_search *s, bool *found, vn_isolated *x, vn_error *err)
{
	bool      any;
	vn_status st;

	report_progress(s, 0, s->n, 0);
	if ((st = test_set(s, &x->good, err)) || x->good) /* none is on */
		return st;
	memset(s->on, 1, (size_t)s->n);
	if ((st = test_set(s, &x->helps, err)) || !x->helps)
		return st;
	do {
		if ((st = start_search(s, found, &any, err)) || !any || (x->more = x->n_sets == VN_MOST_SETS) ||
		    (st = minimise_set(s, err)) || (st = join_sets(s, found, x, err)))
			return st;
	} while (true);
}

vn_status vn_isolate(const vn_isolate_request *q, vn_isolated *x, vn_error *err)
{
	const size_t   room = (size_t)q->n;
	isolate_search s = { .q = q,
		                 .n = q->n,
		                 .on = vn_alloc_zero(room, sizeof *s.on),
		                 .list = vn_alloc_zero(room, sizeof *s.list),
		                 .group = vn_alloc_zero(room, sizeof *s.group),
		                 .gone = vn_alloc_zero(room, sizeof *s.gone) };
	VN_FREED bool *found = vn_alloc_zero(room, sizeof *found);

	*x = (vn_isolated) { .n = q->n };
	const vn_status st = run_repaired(&s, found, x, err);
	VN_FREE(s.list, s.group, s.gone, s.on);
	return st;
}

void vn_isolated_finish(vn_isolated *x)
{
	for (int i = 0; i < x->n_sets; i++)
		free(x->set[i]);
	*x = (vn_isolated) { 0 };
}
