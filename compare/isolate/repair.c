/* repair.c: see repair.h. */
#include "compare/isolate/repair.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct asking {
	vn_experiment *x;
	vn_repair     *r;
} asking;

/* The run as it is was made already; that with everything replaced is kept. */
static vn_status ask(void *ctx, const bool *on, bool *good, vn_error *err)
{
	const asking *a = ctx;
	vn_isolate_trial      t = { 0 };
	int           n = 0;

	for (int i = 0; i < a->x->n; i++)
		n += on[i];
	if (n == 0) {
		*good = a->r->plain.within;
		return VN_OK;
	}
	const vn_status st = vn_experiment_run(a->x, on, &t, err);
	*good = t.within;
	if (n < a->x->n) {
		vn_trial_finish(&t);
	} else {
		vn_trial_finish(&a->r->whole);
		a->r->whole = t;
	}
	return st;
}

/* ---- the worst first --------------------------------------------------------------- */

static const vn_isolate_trial *sorting; /* by qsort, of one thread */

static int worse(const void *a, const void *b)
{
	const int i = *(const int *)a, j = *(const int *)b;
	const vn_isolate_trial *t = sorting;

	if (t->origin[i] != t->origin[j])
		return t->origin[j] - t->origin[i];
	if (t->bad[i] != t->bad[j])
		return t->bad[j] - t->bad[i];
	if (t->error[i] != t->error[j])
		return t->error[i] < t->error[j] ? 1 : -1;
	return i - j;
}

static vn_status sort(const vn_experiment *x, vn_repair *r, vn_error *err)
{
	if (!(r->order = malloc(((size_t)x->n + 1) * sizeof *r->order)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d toggles", x->n);
	for (int i = 0; i < x->n; i++)
		if (r->plain.error[i] > 0.0)
			r->order[r->n_order++] = i;
	sorting = &r->plain;
	qsort(r->order, (size_t)r->n_order, sizeof *r->order, worse);
	return VN_OK;
}

/* ---- its parts ------------------------------------------------------------------------ */

static vn_status search(vn_experiment *x, vn_repair *r, vn_error *err)
{
	const bool *const hint[] = { r->plain.origin, r->plain.bad };
	asking a = { x, r };

	return vn_isolate(x->n, ask, &a, hint, vn_experiment_compares(x) ? 2 : 0, &r->found, err);
}

static bool in_a_set(const vn_isolated *f, int toggle)
{
	for (int s = 0; s < f->n_sets; s++)
		if (f->set[s][toggle])
			return true;
	return false;
}

/* With what is on. */
static vn_status probe(vn_experiment *x, vn_repair *r, int toggle, int set, const bool *on, vn_isolate_trial *t, vn_error *err)
{
	const vn_status st = vn_experiment_run(x, on, t, err);

	if (!st)
		r->probe[r->n_probes++] = (vn_probe){ toggle, set, !t->bad[toggle], t->outside, t->kl };
	return st;
}

/* Each of a set left out of it: its inputs are right then, as far as that set makes them. */
static vn_status leave_out(vn_experiment *x, vn_repair *r, int set, bool *on, vn_isolate_trial *t, vn_error *err)
{
	vn_status st = VN_OK;

	memcpy(on, r->found.set[set], (size_t)x->n);
	for (int i = 0; i < x->n && !st && r->n_probes < VN_MOST_PROBES - 4; i++) {
		if (!r->found.set[set][i])
			continue;
		on[i] = false;
		st = probe(x, r, i, set, on, t, err);
		on[i] = true;
	}
	return st;
}

static vn_status try_each(vn_experiment *x, vn_repair *r, bool *on, vn_isolate_trial *t, vn_error *err)
{
	vn_status st = VN_OK;
	int       others = 0;

	for (int s = 0; s < r->found.n_sets && !st; s++)
		if (r->found.size[s] > 1)
			st = leave_out(x, r, s, on, t, err);
	for (int i = 0; i < r->n_order && !st && others < 4; i++) {
		if (!r->plain.bad[r->order[i]] || in_a_set(&r->found, r->order[i]))
			continue;
		memset(on, 0, (size_t)x->n);
		on[r->order[i]] = true;
		others++;
		st = probe(x, r, r->order[i], -1, on, t, err);
	}
	return st;
}

static void put_point(vn_repair *r, int k, const vn_isolate_trial *t)
{
	r->curve[r->n_curve++] = (vn_repaired){ k, k ? r->order[k - 1] : -1, t->within, t->outside, t->kl };
}

/* k = 0, 1, 2, 3, 4, 6, 8, 12, 16... of those with an error; after the first that is within no more than one. */
static vn_status draw_curve(vn_experiment *x, vn_repair *r, bool *on, vn_isolate_trial *t, vn_error *err)
{
	int good = 0;

	put_point(r, 0, &r->plain);
	for (int k = 1, step = 1; k <= r->n_order && good < 2 && r->n_curve < VN_MOST_CURVE; k += step) {
		memset(on, 0, (size_t)x->n);
		for (int i = 0; i < k; i++)
			on[r->order[i]] = true;
		const vn_status st = vn_experiment_run(x, on, t, err);
		if (st)
			return st;
		put_point(r, k, t);
		good += t->within;
		step = k < 4 ? 1 : k % 3 ? k / 2 : k / 3;
	}
	return VN_OK;
}

vn_status vn_repair_find(vn_experiment *x, vn_repair *r, vn_error *err)
{
	bool     *on = calloc((size_t)x->n + 1, sizeof *on);
	vn_isolate_trial  t = { 0 };
	vn_status st = on ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for %d toggles", x->n);

	*r = (vn_repair){ 0 };
	if (!st && !(st = vn_experiment_run(x, on, &r->plain, err)) && !(st = sort(x, r, err)))
		st = search(x, r, err);
	if (!st && !r->found.healthy && r->found.helps && vn_experiment_compares(x) && !(st = try_each(x, r, on, &t, err)))
		st = draw_curve(x, r, on, &t, err);
	vn_trial_finish(&t);
	free(on);
	return st;
}

void vn_repair_finish(vn_repair *r)
{
	vn_isolated_finish(&r->found);
	vn_trial_finish(&r->plain);
	vn_trial_finish(&r->whole);
	free(r->order);
	*r = (vn_repair){ 0 };
}

/* ---- in words --------------------------------------------------------------------------- */

const char *vn_repair_says_set(const vn_isolated *f, int set)
{
	if (f->size[set] > 1)
		return "the divergence is gone if all of them are replaced; none can be left out";
	return f->n_sets > 1 ? "the divergence is gone if this operation is replaced, but other replacements repair it too"
	                     : "the divergence is gone if this operation is replaced: its kernel is at fault";
}

const char *vn_repair_says_probe(const vn_probe *p)
{
	if (p->set < 0)
		return p->own ? "replaced alone, its output is within the limits, but others stay outside"
		              : "replaced alone, its output stays outside: its input is already wrong";
	return p->own ? "if only the others are replaced, its output is within the limits, but later outputs are not"
	              : "if only the others are replaced, its output is outside: its kernel is at fault";
}
