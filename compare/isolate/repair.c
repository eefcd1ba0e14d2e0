/* repair.c: see repair.h. */
#include "compare/isolate/repair.h"

#include "capture/run/hybrid.h"
#include "libref/base/alloc.h"
#include "libref/base/system.h"

#include <stdlib.h>
#include <string.h>

typedef struct asking {
	vn_runner *x;
	vn_repair *r;
	bool      *on;   /* (n) for whoever makes up a set */
	int        left; /* runs that the search foresees */
	int        more; /* runs foreseen after the search */
} asking;

/* ---- runs, each set once --------------------------------------------------------------- */

static const vn_isolate_trial *recall_trial(const asking *a, const bool *on)
{
	for (int i = 0; i < a->r->n_past; i++)
		if (memcmp(a->r->past[i]->on, on, (size_t)a->x->n) == 0)
			return &a->r->past[i]->t;
	return NULL;
}

/* Runs a set, unless its outcome is known. */
static vn_status run_set(asking *a, const bool *on, const vn_isolate_trial **t, vn_error *err)
{
	vn_repair *r = a->r;

	if ((*t = recall_trial(a, on)))
		return VN_OK;
	vn_repair_run *run = vn_alloc_zero(1, sizeof *run + (size_t)a->x->n);
	r->past = vn_alloc_grown(r->past, (size_t)r->n_past, sizeof *r->past);
	r->past[r->n_past++] = run;
	memcpy(run->on, on, (size_t)a->x->n);
	*t = &run->t;
	a->x->left = a->left + a->more;
	return vn_runner_run(a->x, on, &run->t, err);
}

static vn_status ask_runner(void *ctx, const bool *on, bool again, bool *good, vn_error *err)
{
	asking                                           *a = ctx;
	VN_ENDS(vn_isolate_trial_finish) vn_isolate_trial fresh = { 0 };
	const vn_isolate_trial                           *t = &fresh;
	const vn_status st = again ? vn_runner_run(a->x, on, &fresh, err) : run_set(a, on, &t, err);

	*good = !st && t->within;
	return st;
}

/* ---- the worst first --------------------------------------------------------------- */

static int compare_worse(const void *a, const void *b, void *trial)
{
	const int               i = *(const int *)a, j = *(const int *)b;
	const vn_isolate_trial *t = trial;

	if (t->origin[i] != t->origin[j])
		return t->origin[j] - t->origin[i];
	if (t->bad[i] != t->bad[j])
		return t->bad[j] - t->bad[i];
	if (t->error[i] != t->error[j])
		return t->error[i] < t->error[j] ? 1 : -1;
	return i - j;
}

static void sort_sets(const vn_runner *x, vn_repair *r)
{
	vn_isolate_trial t = *r->plain;

	r->order = vn_alloc((size_t)x->n, sizeof *r->order);
	for (int i = 0; i < x->n; i++)
		if (t.error[i] > 0.0)
			r->order[r->n_order++] = i;
	vn_sort(r->order, (size_t)r->n_order, sizeof *r->order, compare_worse, &t);
}

/* ---- the person's own switches ------------------------------------------------------------ */

static vn_status run_own(asking *a, const char *globs, vn_error *err)
{
	vn_repair_own *y = &a->r->own[a->r->n_own++];
	vn_status      st;

	*y = (vn_repair_own) { .globs = vn_alloc_text(globs), .on = vn_alloc_zero((size_t)a->x->n, sizeof *y->on) };
	if ((st = vn_runner_select(a->x, globs, y->on, err)))
		return vn_context(err, st, "VERNIER_FORCE_REF");
	for (int i = 0; i < a->x->n; i++)
		y->n += y->on[i];
	return run_set(a, y->on, &y->t, err);
}

/* Runs each glob of VERNIER_FORCE_REF alone, and all together if there are several. */
static vn_status run_all_own(asking *a, const char *globs, vn_error *err)
{
	VN_FREED char        *text = vn_alloc_text(globs);
	int                   n;
	VN_FREED const char **list = vn_toggles_split(text, &n);
	vn_status             st = VN_OK;

	if (n > VN_MOST_OWN)
		st = vn_fail(err, VN_ERR_USAGE, "VERNIER_FORCE_REF has %d globs; isolate takes at most %d", n, VN_MOST_OWN);
	for (int i = 0; i < n && !st; i++)
		st = run_own(a, list[i], err);
	if (n > 1 && !st)
		st = run_own(a, globs, err);
	return st;
}

/* ---- its parts ------------------------------------------------------------------------ */

static vn_status search_sets(asking *a, vn_error *err)
{
	const bool *hint[VN_MOST_OWN + 3];
	vn_repair  *r = a->r;
	int         n = 0;

	for (int i = 0; i < r->n_own; i++)
		if (r->own[i].t->within)
			hint[n++] = r->own[i].on;
	if (vn_runner_compares(a->x)) {
		hint[n++] = r->plain->origin;
		hint[n++] = r->plain->bad;
	}
	const vn_isolate_request q = { .n = a->x->n,
		                           .component = a->x->component,
		                           .layer = a->x->layer,
		                           .ask = ask_runner,
		                           .ctx = a,
		                           .hint = hint,
		                           .n_hints = n,
		                           .left = &a->left };
	vn_status                st = vn_isolate(&q, &r->found, err);
	a->left = 0;
	if (st)
		return st;
	memset(a->on, 1, (size_t)a->x->n);
	r->whole = recall_trial(a, a->on);
	return VN_OK;
}

static bool in_a_set(const vn_isolated *f, int toggle)
{
	for (int s = 0; s < f->n_sets; s++)
		if (f->set[s][toggle])
			return true;
	return false;
}

/* With what is on. */
static vn_status check_toggle(asking *a, int toggle, int set, vn_error *err)
{
	vn_repair_check *check = &a->r->check[a->r->n_checks++];

	*check = (vn_repair_check) { .toggle = toggle, .set = set };
	return run_set(a, a->on, &check->t, err);
}

/* Runs a found set without each of its members. The inputs of the member left out are then right,
 * as far as the set makes them right. */
static vn_status leave_out(asking *a, int set, vn_error *err)
{
	const vn_isolated *f = &a->r->found;
	vn_status          st = VN_OK;

	memcpy(a->on, f->set[set], (size_t)a->x->n);
	for (int i = 0; i < a->x->n && !st && a->r->n_checks < VN_MOST_REPAIR_CHECKS - 4; i++) {
		if (!f->set[set][i])
			continue;
		a->on[i] = false;
		st = check_toggle(a, i, set, err);
		a->on[i] = true;
	}
	return st;
}

static vn_status try_each(asking *a, vn_error *err)
{
	const vn_repair *r = a->r;
	vn_status        st = VN_OK;
	int              others = 0;

	for (int s = 0; s < r->found.n_sets && !st; s++)
		if (r->found.size[s] > 1)
			st = leave_out(a, s, err);
	for (int i = 0; i < r->n_order && !st && others < 4; i++) {
		if (!r->plain->bad[r->order[i]] || in_a_set(&r->found, r->order[i]))
			continue;
		memset(a->on, 0, (size_t)a->x->n);
		a->on[r->order[i]] = true;
		others++;
		st = check_toggle(a, r->order[i], -1, err);
	}
	return st;
}

/* Runs with the first k operations in error replaced, k = 0, 1, 2, 4, 8... Ends after the second
 * run within its limits. */
static vn_status draw_curve(asking *a, vn_error *err)
{
	vn_repair *r = a->r;
	int        good = 0;

	r->curve[r->n_curve++] = (vn_repaired) { 0, -1, r->plain };
	for (int k = 1; k <= r->n_order && good < 2 && r->n_curve < VN_MOST_CURVE; k *= 2) {
		const vn_isolate_trial *t;
		memset(a->on, 0, (size_t)a->x->n);
		for (int i = 0; i < k; i++)
			a->on[r->order[i]] = true;
		const vn_status st = run_set(a, a->on, &t, err);
		if (st)
			return st;
		r->curve[r->n_curve++] = (vn_repaired) { k, r->order[k - 1], t };
		good += t->within;
	}
	return VN_OK;
}

/* Number of runs after the search: checks of other operations, and the curve. */
static int runs_after(const asking *a)
{
	int n = 4;

	for (int k = 1; k <= a->r->n_order; k *= 2)
		n++;
	return vn_runner_compares(a->x) ? n : 0;
}

static vn_status find_repair(asking *a, const char *own, vn_error *err)
{
	vn_runner *x = a->x;
	vn_repair *r = a->r;
	vn_status  st;

	if ((st = run_set(a, a->on, &r->plain, err)))
		return st;
	sort_sets(x, r);
	a->more = runs_after(a);
	if (own && *own && !r->plain->within && (st = run_all_own(a, own, err)))
		return st;
	if ((st = search_sets(a, err)) || r->found.good || !r->found.helps || !vn_runner_compares(x))
		return st;
	st = try_each(a, err);
	return st ? st : draw_curve(a, err);
}

vn_status vn_repair_find(vn_runner *x, const char *own, vn_repair *r, vn_error *err)
{
	asking a = { .x = x, .r = r, .on = vn_alloc_zero((size_t)x->n, sizeof *a.on) };

	*r = (vn_repair) { 0 };
	const vn_status st = find_repair(&a, own, err);
	free(a.on);
	return st;
}

void vn_repair_finish(vn_repair *r)
{
	vn_isolated_finish(&r->found);
	for (int i = 0; i < r->n_past; i++) {
		vn_isolate_trial_finish(&r->past[i]->t);
		free(r->past[i]);
	}
	free(r->past);
	for (int i = 0; i < r->n_own; i++)
		VN_FREE(r->own[i].globs, r->own[i].on);
	free(r->order);
	*r = (vn_repair) { 0 };
}

/* ---- in words --------------------------------------------------------------------------- */

/* Is the set of one component? */
static bool one_component(const vn_runner *x, const bool *on)
{
	int component = -1;

	for (int i = 0; i < x->n; i++) {
		if (on[i] && component >= 0 && x->component[i] != component)
			return false;
		if (on[i])
			component = x->component[i];
	}
	return true;
}

const char *vn_repair_says_set(const vn_runner *x, const vn_isolated *f, int set)
{
	if (f->size[set] > 1 && f->n_sets == 1 && one_component(x, f->set[set]))
		return "the divergence is gone if this component is replaced in all of these layers: its kernel is at fault";
	if (f->size[set] > 1)
		return "the divergence is gone if all of them are replaced; none can be left out";
	return f->n_sets > 1 ? "the divergence is gone if this operation is replaced, but other replacements repair it too"
	                     : "the divergence is gone if this operation is replaced: its kernel is at fault";
}

bool vn_repair_own_within(const vn_repair_check *p)
{
	return !p->t->bad[p->toggle];
}

const char *vn_repair_says_check(const vn_repair_check *p)
{
	if (p->set < 0)
		return vn_repair_own_within(p) ? "replaced alone, its output is within the limits, but others stay outside"
		                               : "replaced alone, its output stays outside: its input is already wrong";
	return vn_repair_own_within(p)
	           ? "if only the others are replaced, its output is within the limits, but later outputs are not"
	           : "if only the others are replaced, its output is outside: its kernel is at fault";
}
